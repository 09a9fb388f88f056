# Sourced by the scripts of this folder. Moves to an empty folder and makes tiny models there. Needs $cloze, the program,
# and $here, the folder of the script.
source "$here/../await.sh"
work=$(mktemp -d)
cd "$work"
export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive LC_ALL=C.UTF-8

# Prints texts. Argument: how many.
texts() {
  awk -v n="$1" 'BEGIN { srand(1)
    split("parcel box courier driver", thing, " "); split("invoice charge refund card", money, " ")
    for (i = 0; i < n; ++i) { late = rand() < 0.5; w = 1 + int(rand() * 4); r = 3 + int(rand() * 9)
      out = "Number " i ", the " (late ? thing[w] : money[w])
      for (j = 0; j < r; ++j) out = out " " (j % 2 ? "is" : "was")
      print out " wrong" (i % 7 ? "." : " \303\251!") } }'
}

# Trains a model named $1 with the task $2, on the data $3, for $4 steps, from the folder $5 if it is given.
train() {
  local command=finetune
  [[ $2 != masked_lm* ]] || command=pretrain
  local model='tokenizer: "vocab" encoder { preset: TINY max_positions: 64 }'
  [ -z "${5:-}" ] || model="start_from: \"$5\""
  printf 'model { %s } %s train { %s } schedule { steps: %d } output { directory: "%s" }\n' \
    "$model" "$2" "$3" "${4:-12}" "$1" > spec
  OMP_NUM_THREADS=1 "$cloze" "$command" spec > log 2>&1 || { cat log >&2; exit 1; }
}

# Makes the models cls, pairs, number, tags, mlm and vectors, and the adapters of mlm late and size.
make_models() {
  texts 200 > text.txt
  awk '{ print $0 "\t" ($0 ~ /parcel|box|courier|driver/ ? "delivery" : "billing") }' text.txt | sed '1i text\tlabel' > cls.tsv
  awk -F '\t' 'NR == 1 { print "text\tother\tlabel"; next } { print $1 "\t" last "x\t" ($2 == "billing" ? "no" : "yes"); last = $1 }' cls.tsv > pairs.tsv
  awk -F '\t' 'NR == 1 { print "text\tlabel"; next } { print $1 "\t" NR / 100 }' cls.tsv > number.tsv
  awk '{ n = split($0, w, " "); for (i = 1; i <= n; ++i) print w[i] "\t" (w[i] ~ /parcel|box|courier|driver/ ? "B-THING" : w[i] ~ /wrong/ ? "B-BAD" : "O"); print "" }' text.txt > tags.conll
  "$cloze" vocab --text text.txt --size 300 --out vocab > log 2>&1
  train cls 'sequence_classification { max_tokens: 64 }' 'files: "cls.tsv"'
  train pairs 'sequence_classification { max_tokens: 64 }' 'files: "pairs.tsv" text_pair_field: "other"'
  train number 'sequence_classification { max_tokens: 64 kind: REGRESSION }' 'files: "number.tsv"'
  train tags 'token_tagging { max_tokens: 64 }' 'files: "tags.conll"' 60
  train mlm 'masked_lm { max_tokens: 64 }' 'files: "text.txt" format: TEXT'
  awk -F '\t' 'NR == 1 { print "text\tlabel"; next } { print $1 "\t" (NR % 3 == 0 ? "small" : NR % 3 == 1 ? "big" : "middle") }' cls.tsv > size.tsv
  train late 'sequence_classification { max_tokens: 64 } trainable { lora { rank: 4 } }' 'files: "cls.tsv"' 12 mlm
  train size 'sequence_classification { max_tokens: 64 } trainable { lora { rank: 4 } }' 'files: "size.tsv"' 12 mlm
  train vectors 'sentence_embedding { max_tokens: 64 loss: SIMCSE }' 'files: "text.txt"'
}
