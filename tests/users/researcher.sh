#!/usr/bin/env bash
# A researcher: seeds with mean and deviation, one setting changed on the command line, runs that are killed and
# resumed, and the same bits for any number of threads.
source "$(dirname "$0")/common.sh"
tickets "$([ "$full" ] && echo 5000 || echo 400)" 1 > tickets.csv
cat > t.textproto << END
model { tokenizer: "vocab" encoder { preset: TINY max_positions: 64 } }
sequence_classification { max_tokens: 64 }
train { files: "tickets.csv" text_field: "body" label_field: "queue" }
validation { files: "tickets.csv" text_field: "body" label_field: "queue" max_examples: 200 }
batch { examples: 16 }
optimizer { learning_rate: 5e-4 }
schedule { steps: 60 }
output { directory: "run" checkpoint_every_steps: 10 }
END
cloze vocab --text tickets.csv --text-field body --size 1000 --out vocab > /dev/null 2> log
cloze finetune t.textproto --threads 1 > one.json 2> log
cloze finetune t.textproto --threads 2 --set output.directory=run2 > two.json 2> log
cmp -s run/model.safetensors run2/model.safetensors || fail "weights depend on the threads"
# Killed twice, then resumed.
for checkpoint in step-00000010 step-00000030; do
  cloze finetune t.textproto --set output.directory=run3 > /dev/null 2> log & pid=$!
  for _ in $(seq 3000); do
    [ ! -e run3/$checkpoint ] && kill -0 $pid 2> /dev/null || break
    sleep 0.01
  done
  kill -9 $pid 2> /dev/null || fail "the run ended before it could be killed"
  wait $pid 2> /dev/null || true
done
cloze finetune t.textproto --set output.directory=run3 > /dev/null 2> log
cmp -s run/model.safetensors run3/model.safetensors || fail "a resumed run has other weights"
cloze verify run3 > /dev/null 2> log
# A grid by hand, and seeds.
for rate in 1e-4 1e-3; do
  cloze finetune t.textproto --set optimizer.learning_rate=$rate --set output.directory="grid-$rate" > "grid-$rate.json" 2> log
  [ -n "$(number accuracy "grid-$rate.json")" ] || fail "no accuracy in the result"
done
cloze finetune t.textproto --set repeat=3 --set output.directory=seeds > seeds.json 2> log
grep -qE '"(mean|deviation|stddev|std)' seeds.json || fail "no mean: $(cut -c 1-300 seeds.json)"
echo "researcher: ok"
