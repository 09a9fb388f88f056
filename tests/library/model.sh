# shellcheck shell=bash disable=SC2154
# Sourced by the tests of the library: trains small models for calls of "$cloze" into the folders model (a classifier),
# tagger, masked and adapter (of `model`'s encoder), in the current folder.
awk 'BEGIN { srand(1); print "text,label"
  split("parcel box courier driver", thing, " "); split("invoice charge refund card", money, " ")
  for (i = 0; i < 300; ++i) {
    late = rand() < 0.5; w = 1 + int(rand() * 4)
    print "\"Number " i ", the " (late ? thing[w] : money[w]) " is wrong.\"," (late ? "delivery" : "billing")
  } }' > data.csv
awk -F, 'NR > 1 { gsub(/"/, ""); n = split($1 " is wrong .", w, " "); for (i = 1; i <= n; ++i) print w[i] "\t" (w[i] ~ /[0-9]/ ? "B-NUM" : "O"); print "" }' data.csv > tags.conll
cut -d'"' -f2 data.csv | sed 1d > text.txt
train() {  # folder, command, rest of the spec
  printf '%s batch { examples: 16 } output { directory: "%s" }\n' "$3" "$1" > "$1.textproto"
  "$cloze" "$2" "$1.textproto" > "$1.log" 2>&1 || { cat "$1.log" >&2; exit 1; }
}
"$cloze" vocab --text text.txt --size 200 --out vocab > vocab.log 2>&1
new='model { tokenizer: "vocab" encoder { preset: TINY max_positions: 64 } } schedule { steps: 20 } optimizer { learning_rate: 0.003 }'
train masked pretrain "$new masked_lm { max_tokens: 32 } train { files: 'text.txt' format: TEXT }"
train model finetune "$new sequence_classification { max_tokens: 32 } train { files: 'data.csv' }"
train tagger finetune "$new token_tagging { max_tokens: 32 } train { files: 'tags.conll' }"
train adapter finetune "model { start_from: 'masked' } trainable { lora { rank: 2 } } schedule { steps: 20 } sequence_classification { max_tokens: 32 } train { files: 'data.csv' }"
