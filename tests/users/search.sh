#!/usr/bin/env bash
# A search engineer: vectors of a column of a table, one per row, that put like beside like.
source "$(dirname "$0")/common.sh"
tickets "$([ "$full" ] && echo 5000 || echo 400)" 1 > tickets.csv
tickets 60 2 > new.csv
printf 'model { tokenizer: "vocab" encoder { preset: TINY max_positions: 64 } } sequence_classification { max_tokens: 64 } train { files: "tickets.csv" text_field: "body" label_field: "queue" } batch { examples: 16 } optimizer { learning_rate: 1e-3 } schedule { epochs: 4 } output { directory: "run" }\n' > t
cloze vocab --text tickets.csv --text-field body --size 1000 --out vocab > /dev/null 2> log
cloze finetune t > /dev/null 2> log
if cloze encode --help | grep -q npy; then
  cloze encode --model run new.csv --text-field body --pool mean --out v.npy 2> log
  [ "$(head -c 6 v.npy | tail -c 5)" = NUMPY ] || fail "v.npy is not in NumPy's format"
  head -c 128 v.npy | grep -aq "'shape': (60, 128)" || fail "shape: $(head -c 128 v.npy)"
else
  cloze encode --model run new.csv --text-field body --pool mean --out v.safetensors 2> log
  check "vectors" "$(head -c 20000 v.safetensors | grep -ao '"shape":\[128\]' | wc -l) == 60"
fi
# The file is not overwritten by accident.
before=$(cat v.* | cksum)
! cloze encode --model run new.csv --text-field body --pool mean --out "$(ls v.* | head -n 1)" 2> wrong || fail "a file was replaced"
[ "$before" = "$(cat v.* | cksum)" ] || fail "a file was changed"
# Reranking: a number for each pair.
awk 'BEGIN { srand(4); print "query\tdoc\tscore"; n = split("parcel payment password refund", w, " ")
  for (i = 0; i < 300; ++i) { a = 1 + int(rand() * n); b = rand() < 0.5 ? a : 1 + int(rand() * n); print "where is my " w[a] "\tall about the " w[b] " here\t" (a == b) } }' > rank.tsv
printf 'model { start_from: "run" } sequence_classification { kind: REGRESSION labels: "relevance" max_tokens: 64 } train { files: "rank.tsv" text_field: "query" text_pair_field: "doc" label_field: "score" } batch { examples: 16 } optimizer { learning_rate: 1e-3 } schedule { epochs: 12 } output { directory: "rank" }\n' > r
cloze finetune r > /dev/null 2> log
printf 'where is my parcel\tall about the parcel here\nwhere is my parcel\tall about the refund here\n' | cloze predict --model rank --pairs > scores 2> log
check "the right document first" "$(sed -n 1p scores | sed 's/.*"score": *\([-0-9.e]*\).*/\1/') > $(sed -n 2p scores | sed 's/.*"score": *\([-0-9.e]*\).*/\1/')"
echo "search: ok"
