#!/usr/bin/env bash
# A data scientist: from a CSV of tickets to predictions in a CSV with all columns, and a report, in four commands.
source "$(dirname "$0")/common.sh"
rows=$([ "$full" ] && echo 7000 || echo 1500)
tickets "$rows" 1 > tickets.csv
tickets 200 2 > new.csv
cat > t.textproto << END
model { tokenizer: "vocab" encoder { preset: TINY max_positions: 128 } }
sequence_classification { max_tokens: 96 balance_classes: true }
train { files: "tickets.csv" text_field: "subject" text_pair_field: "body" label_field: "queue" }
validation { share: 0.1 }
batch { examples: 32 }
optimizer { learning_rate: 1e-3 }
schedule { epochs: 6 }
output { directory: "run" }
END
cloze vocab --text tickets.csv --text-field body --size 2000 --out vocab > /dev/null 2> log
cloze finetune t.textproto > result.json 2> log
cloze predict --model run --format csv new.csv > predictions.csv 2> log
if cloze help report > /dev/null 2>&1; then
  cloze report run --out report.html 2> log
  grep -q '<svg' report.html || fail "the report has no picture"
fi

check "records" "$(records predictions.csv) == 201"
head -n 1 predictions.csv | grep -qE '^id,subject,body,queue,(predicted_)?label,score' || fail "header: $(head -n 1 predictions.csv)"
check "quoted cells" "$(grep -c '""' predictions.csv) == $(grep -c '""' new.csv)"
right=$(awk -F , '{ quotes += gsub(/"/, "\"") } quotes % 2 == 0 && NR > 1 && $(NF - 2) == $(NF - 1) { ++n } END { print n + 0 }' predictions.csv)
check "right answers" "$right >= 180"
cloze evaluate --model run --data new.csv > scores.json 2> log
check "accuracy of evaluate" "$(number accuracy scores.json) == $right / 200"
# A typing error in the spec names the field.
! cloze finetune t.textproto --set optimizer.learning_rat=1 2> wrong || fail "a wrong field was taken"
grep -q 'learning_rate' wrong || fail "no guess: $(cat wrong)"
echo "data scientist: ok, $right of 200 right"
