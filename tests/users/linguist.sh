#!/usr/bin/env bash
# A linguist: a language in Cyrillic letters that no model knows; text, vocabulary with accents, encoder, a tagger of
# one's own tags (XPOS), and files that keep every other column.
source "$(dirname "$0")/common.sh"
lines=$([ "$full" ] && echo 40000 || echo 3000)
awk -v lines="$lines" 'BEGIN {
  srand(3)
  n = split("Ӧтик Пон Кань Айка Ныв Зонка Вӧр Ю Ӱпӱ Ўрак", who, " "); m = split("мунӧ видзӧдӧ кывзӧ сьылӧ узьӧ локтӧ", does, " ")
  o = split("гортӧ вӧрӧ юын лунын рытын ўлын", where, " ")
  for (i = 0; i < lines; ++i) {
    a = who[1 + int(rand() * n)]; b = does[1 + int(rand() * m)]; c = where[1 + int(rand() * o)]
    print a " " b " " c "."
    if (i % 10) continue
    file = i % 100 ? "train.conllu" : "dev.conllu"
    print "# text = " a " " b " " c "." > file
    printf "1\t%s\t_\tNOUN\tN-Sg\t_\t2\tnsubj\t_\t_\n2\t%s\t_\tVERB\tV-3\t_\t0\troot\t_\t_\n3\t%s\t_\tADV\tA-Loc\t_\t2\tadvmod\t_\tSpaceAfter=No\n4\t.\t_\tPUNCT\tP\t_\t2\tpunct\t_\t_\n\n", a, b, c > file
  } }' > text.txt
cloze vocab --text text.txt --size 300 --no-lowercase --out vocab > /dev/null 2> log
grep -q 'ӧ' vocab/vocab.txt || fail "the vocabulary has lost the letter ӧ"
cat > pretrain.textproto << END
model { tokenizer: "vocab" encoder { preset: TINY max_positions: 64 norm: PRE positions: SINUSOIDAL_START query_key_start: 2 } dropout: 0 attention_dropout: 0 }
masked_lm { max_tokens: 32 }
train { files: "text.txt" documents: LINE }
batch { tokens: 1024 }
optimizer { learning_rate: 1e-3 }
schedule { steps: $([ "$full" ] && echo 1000 || echo 60) }
output { directory: "encoder" }
END
cloze pretrain pretrain.textproto > /dev/null 2> log
cat > tagger.textproto << END
model { start_from: "encoder" dropout: 0.1 }
token_tagging { max_tokens: 64 }
train { files: "train.conllu" tags_field: "XPOS" }
validation { files: "dev.conllu" tags_field: "XPOS" }
batch { examples: 16 }
optimizer { learning_rate: 1e-3 }
schedule { epochs: 6 }
output { directory: "tagger" }
END
cloze finetune tagger.textproto > /dev/null 2> log
cloze evaluate --model tagger --data dev.conllu > scores.json 2> log
check "accuracy" "$(number accuracy scores.json) > 0.95"
# Only XPOS differs from the input, and UPOS stays gold.
sed 's/\tA-Loc\t/\t_\t/' dev.conllu > blank.conllu
cloze tag --model tagger --format conllu blank.conllu > tagged.conllu 2> log
check "lines" "$(wc -l < tagged.conllu) == $(wc -l < dev.conllu)"
diff <(cut -f 1-4,6- dev.conllu) <(cut -f 1-4,6- tagged.conllu) > /dev/null || fail "another column was changed"
check "tags" "$(grep -c $'\tA-Loc\t' tagged.conllu) > 0.9 * $(grep -c $'\tA-Loc\t' dev.conllu)"
# Offsets count code points.
echo 'Ӧтик узьӧ.' | cloze tag --model tagger > words.json 2> log
grep -q '"text": "узьӧ"' words.json || fail "words: $(cat words.json)"
echo "linguist: ok"
