#!/usr/bin/env bash
# quickstart.sh [TEXT...]: builds Cloze and trains from nothing, in five to ten minutes, an encoder that fills blanks, a
# classifier and a tagger.
#
# Without arguments it learns from WordNet (Debian package wordnet-base): definitions and example sentences
# are the text; the classes are the parts of speech of the definitions. With text files it learns from those;
# with two or more, the classes are the files that sentences come from. Any text makes the tagging task: words
# are given in lower case and without punctuation, and the tags say what was removed. A tenth of the text is held
# out for evaluation.
#
# Results go to $CLOZE_RUNS/quickstart (runs/quickstart). $CLOZE_PRETRAIN_STEPS (1200) and $CLOZE_FINETUNE_STEPS (400)
# set the lengths of the trainings, which do not depend on the speed of the machine.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
build=${CLOZE_BUILD:-$here/build}
out=${CLOZE_RUNS:-$here/runs}/quickstart
pretrain_steps=${CLOZE_PRETRAIN_STEPS:-1200}
finetune_steps=${CLOZE_FINETUNE_STEPS:-400}
wordnet=/usr/share/wordnet
sentence_limit=200000  # most sentences of the labelled tasks

say() { printf '\n== %s\n' "$*" >&2; }
fail() { printf 'quickstart: %s\n' "$*" >&2; exit 1; }

case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
for text in "$@"; do
  [ -s "$text" ] || fail "$text: no such file, or empty"
done

# --- Data, by awk and sed. Each maker writes $data/{train,heldout}.txt, one document per line, and the files
# of the tasks.

# Prints the lines in a fixed order that separates neighbours.
mixed() { awk '{ printf "%d\t%s\n", NR * 7919 % 104729, $0 }' "$@" | sort -s -n -k 1,1 | cut -f 2-; }

# Prints WordNet's synsets: part of speech TAB words TAB definition TAB example TAB example ...
wordnet_synsets() {
  for part in noun verb adj adv; do
    awk -v part="$part" '
      /^  / { next }  # the licence
      {
        bar = index($0, " | ")
        gloss = substr($0, bar + 3)
        gsub(/[\t\r]/, " ", gloss)
        sub(/ +$/, "", gloss)
        words = ""
        count = (index("0123456789abcdef", substr($4, 1, 1)) - 1) * 16 + index("0123456789abcdef", substr($4, 2, 1)) - 1
        for (i = 0; i < count && i < 3; ++i) {
          word = $(5 + 2 * i)
          sub(/\((a|p|ip)\)$/, "", word)
          gsub(/_/, " ", word)
          words = words (i ? ", " : "") word
        }
        n = split(gloss, piece, "\"")
        definition = piece[1]
        sub(/[; ,:]+$/, "", definition)
        if (definition == "") next
        line = part "\t" words "\t" definition
        for (i = 2; i <= n; i += 2) if (piece[i] ~ / /) line = line "\t" piece[i]
        print line
      }' "$wordnet/data.$part"
  done
}

wordnet_data() {
  wordnet_synsets | mixed > "$data/synsets"
  awk -F '\t' -v dir="$data" '
    BEGIN { print "text\tlabel" > (dir "/classify-train.tsv"); print "text\tlabel" > (dir "/classify-heldout.tsv") }
    {
      set = NR % 10 == 0 ? "heldout" : "train"
      line = $2 ": " $3
      for (i = 4; i <= NF; ++i) line = line "; \"" $i "\""
      print line > (dir "/" set ".txt")
      print $3 > (dir "/sentences-" set)
      for (i = 4; i <= NF; ++i) print $i > (dir "/sentences-" set)
      # Only a quarter of the nouns, so that no class has the majority.
      if ($1 != "noun" || int(NR / 10) % 4 == 0) print $3 "\t" $1 > (dir "/classify-" set ".tsv")
    }' "$data/synsets"
}

# Prints the paragraphs of a text file, one per line: split at blank lines, or at line ends in files that have
# hardly any.
paragraphs() {
  local lines blanks
  lines=$(wc -l < "$1")
  blanks=$(grep -c -E '^[[:space:]]*$' "$1" || true)
  sed -e '1s/^\xEF\xBB\xBF//' -e 's/[[:space:]]\{1,\}/ /g' -e 's/^ //' -e 's/ $//' "$1" |
    awk -v by_line=$((blanks * 200 < lines)) '
      by_line { if ($0 != "") print; next }
      $0 == "" { if (text != "") print text; text = ""; next }
      { text = text == "" ? $0 : text " " $0 }
      END { if (text != "") print text }'
}

# Prints the sentences of 4 to 60 words in paragraphs: ends them after . ! ? and a closing quote, before a
# capital letter, digit or opening quote.
sentences() {
  awk '
    function flush() { if (words >= 4 && words <= 60) print text; text = ""; words = 0 }
    {
      n = split($0, word, " ")
      for (i = 1; i <= n; ++i) {
        text = text == "" ? word[i] : text " " word[i]
        ++words
        if (word[i] ~ /[.!?]["\047)\]]*$/ && (i == n || word[i + 1] ~ /^["\047(\[]?[A-Z0-9]/)) flush()
      }
      flush()
    }' "$1"
}

text_data() {
  local number=0 text name set
  : > "$data/labelled"
  for text in "$@"; do
    number=$((number + 1))
    paragraphs "$text" > "$data/paragraphs"
    awk 'NR % 10 == 0' "$data/paragraphs" > "$data/paragraphs-heldout"
    awk 'NR % 10 != 0' "$data/paragraphs" > "$data/paragraphs-train"
    # The label: the name up to the first dot; a second file of that name gets a number.
    name=$(basename "$text" | sed -e 's/\..*//' | tr -c 'A-Za-z0-9_\n-' '_')
    if grep -q -x -F -- "$name" "$data/labelled"; then name=$name-$number; fi
    printf '%s\n' "$name" >> "$data/labelled"
    for set in train heldout; do
      cat "$data/paragraphs-$set" >> "$data/$set.txt"
      sentences "$data/paragraphs-$set" > "$data/sentences"
      cat "$data/sentences" >> "$data/sentences-$set"
      awk -v label="$name" -v limit=$((sentence_limit / $#)) 'NR <= limit { print $0 "\t" label }' "$data/sentences" >> "$data/labelled-$set"
    done
  done
  [ -s "$data/sentences-heldout" ] || fail "too little text: no held-out sentence was found; give at least some pages"
  for set in train heldout; do
    mixed "$data/sentences-$set" > "$data/sentences"
    mv "$data/sentences" "$data/sentences-$set"
  done
  [ $# -ge 2 ] || return 0
  for set in train heldout; do
    { printf 'text\tlabel\n'; mixed "$data/labelled-$set"; } > "$data/classify-$set.tsv"
  done
}

# Prints sentences as CoNLL: words in lower case without marks; the tag is "Cap" for a capital first letter, then
# the mark after the word, or "O" for neither.
tagging_data() {
  awk -v limit="$sentence_limit" '
    BEGIN { name[","] = "COMMA"; name[";"] = "SEMICOLON"; name[":"] = "COLON"; name["."] = "PERIOD"; name["?"] = "QUESTION"; name["!"] = "EXCLAMATION" }
    NR > limit { exit }
    {
      out = ""; words = 0
      n = split($0, word, " ")
      for (i = 1; i <= n; ++i) {
        w = word[i]
        mark = ""
        gsub(/^["\047`(\[{<*_-]+/, "", w)
        if (match(w, /[]"\047`)}>*_,;:.?!-]+$/)) {
          tail = substr(w, RSTART)
          w = substr(w, 1, RSTART - 1)
          if (match(tail, /[,;:.?!]/)) mark = substr(tail, RSTART, 1)
        }
        if (w == "") continue
        tag = w ~ /^[A-Z]/ ? "Cap" : ""
        if (mark != "") tag = tag (tag == "" ? "" : "+") name[mark]
        out = out tolower(w) " " (tag == "" ? "O" : tag) "\n"
        ++words
      }
      if (words >= 4 && words <= 60) print out
    }' "$1"
}

# --- Specs.

# The recipe of tools/specs/pretrain_hour.textproto, with a smaller encoder.
encoder_spec() {
  cat << END
model {
  tokenizer: "$out/vocab"
  encoder {
    architecture: MODERN preset: CUSTOM layers: 4 hidden: 192 heads: 3 intermediate: 384 max_positions: 128
    initializer_range: 0.04
  }
}
masked_lm { max_tokens: 64 mask_share: 0.4 final_mask_share: 0.15 causal_share: 1 causal_until: 0.5 }
train { files: "$data/train.txt" documents: LINE }
validation { files: "$data/heldout.txt" documents: LINE }
evaluation { max_examples: 500 }
batch { tokens: 2048 micro_tokens: 2048 }
optimizer { learning_rate: 4e-3 beta2: 0.98 epsilon: 1e-6 weight_decay: 0.1 muon_rate: 1 }
schedule { warmup_share: 0.02 }
END
}

# Arguments: task, extension of its files, its name.
finetune_spec() {
  cat << END
model { start_from: "$out/pretrain" }
$1 { max_tokens: 96 }
train { files: "$data/$3-train.$2" }
validation { files: "$data/$3-heldout.$2" }
evaluation { max_examples: 1000 }
batch { tokens: 2048 micro_tokens: 2048 }
optimizer { learning_rate: 0.001 }
END
}

# Trains. Arguments: sub-command, spec, steps, name of the run.
train() {
  rm -rf "${out:?}/$4"
  "$cloze" "$1" "$2" --set "schedule.steps=$3" --set "output.directory=$out/$4" \
    --set "output.cache_directory=$out/cache" --set output.log_every_steps=100 --set evaluation.every_steps=500 > "$out/$4.log"
}

# Writes metrics on held-out data to a JSON file. Arguments: name of the run, data.
evaluate() { "$cloze" evaluate --model "$out/$1" --data "$2" --set max_examples=4000 > "$out/$1.json"; }

# Prints a number of a JSON file. Arguments: its name, the file.
json_number() { sed -n "s/.*\"$1\"[[:space:]]*:[[:space:]]*\([-+0-9.eE]*\).*/\1/p" "$2" | tail -n 1; }
rounded() { awk -v x="${1:-0}" 'BEGIN { printf "%.3f", x }'; }
percent() { awk -v x="${1:-0}" 'BEGIN { printf "%.1f %%", 100 * x }'; }

# Prints the share of the most frequent label in the last column of a file: the accuracy of always guessing it.
majority() { awk -F "$2" 'NF > 1 { ++count[$NF]; ++all } END { for (l in count) if (count[l] > best) best = count[l]; print best / all }' "$1"; }

# --- Build and train.

began=$(date +%s)
extra=()
[ $# -gt 0 ] || extra=(wordnet-base)
say "packages and build"
"$here/tools/setup.sh" "${extra[@]}"
mkdir -p "$build"
cmake -S "$here" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release > "$build/configure.log" 2>&1 || { cat "$build/configure.log" >&2; exit 1; }
cmake --build "$build" -j "$(nproc)" --target cloze >&2
cloze=$build/cloze

say "data"
data=$out/data
mkdir -p "$out"
rm -rf "${out:?}"/{data,cache,vocab}
mkdir -p "$data"
if [ $# -gt 0 ]; then text_data "$@"; else wordnet_data; fi
for set in train heldout; do
  tagging_data "$data/sentences-$set" > "$data/tag-$set.conll"
done
wc -l "$data"/{train,heldout}.txt >&2
tasks=(tag)
[ -s "$data/classify-train.tsv" ] && tasks=(classify tag)
[ ${#tasks[@]} -eq 2 ] || echo "One file: no classification task (give two or more to tell them apart)." >&2

say "vocabulary"
"$cloze" vocab --text "$data/train.txt" --size 8192 --out "$out/vocab" >&2

say "pretraining, $pretrain_steps steps"
encoder_spec > "$out/pretrain.textproto"
train pretrain "$out/pretrain.textproto" "$pretrain_steps" pretrain
evaluate pretrain "$data/heldout.txt"

say "fillings"
blanks=()
if [ $# -eq 0 ]; then
  blanks=("whale: a very large <mask> that lives in the sea" "baker: someone who <mask> bread" "happily: in a <mask> manner" "He opened the <mask> and went out")
fi
# Fills the blanks of a sentence and prints the likeliest tokens.
fill() {
  printf '%s\n    ' "$1"
  "$cloze" fill-mask --model "$out/pretrain" "$1" | grep -o -E '"token": "(\\.|[^"\\])*", "id": [0-9]+, "score": [-0-9.e]+' |
    sed -E 's/"token": "(.*)", "id": [0-9]+, "score": (.*)/\1 \2/' | awk '{ printf "%s%s (%.0f %%)", (NR > 1 ? ", " : ""), $1, 100 * $2 } END { print "" }'
}
for sentence in "${blanks[@]}"; do fill "$sentence"; done
# Held-out sentences with one word hidden.
while IFS=$'\t' read -r sentence hidden; do
  fill "$sentence"
  printf '    hidden was: %s\n' "$hidden"
done < <(awk 'NF >= 8 && NF <= 16 && (++n) % 97 == 0 && shown < 3 {
  i = int(NF / 2); while (i < NF && ($i !~ /^[a-z]+$/ || length($i) < 4)) ++i
  if ($i ~ /^[a-z]+$/) { word = $i; $i = "<mask>"; print $0 "\t" word; ++shown } }' "$data/sentences-heldout")

for task in "${tasks[@]}"; do
  say "fine-tuning: $task, $finetune_steps steps"
  case $task in
    classify) kind=sequence_classification extension=tsv ;;
    tag) kind=token_tagging extension=conll ;;
  esac
  finetune_spec "$kind" "$extension" "$task" > "$out/$task.textproto"
  train finetune "$out/$task.textproto" "$finetune_steps" "$task"
  evaluate "$task" "$data/$task-heldout.$extension"
done

say "trying them"
if [ ${#tasks[@]} -eq 2 ]; then
  if [ $# -eq 0 ]; then
    printf '%s\n' "a small animal with soft fur" "move quickly through the air" "in a careless manner" "having the color of fresh snow"
  else
    awk '(++n) % 53 == 0 && ++shown <= 4' "$data/sentences-heldout"
  fi | "$cloze" predict --model "$out/classify"
fi
echo "in 1879 thomas edison showed his lamp to mary but george did not come why not" | "$cloze" tag --model "$out/tag" |
  sed -E -e 's/.*"words": \[//' -e 's/\{[^{}]*"label": "([^"]*)"[^{}]*"text": "([^"]*)"[^{}]*\}/\2 [\1]/g' -e 's/,? *\]?\}?$//' -e 's/ \[O\]//g' -e 's/, / /g'

say "results on held-out text, $(($(date +%s) - began)) seconds after the start"
row() { printf '%-44s %12s %12s\n' "$@"; }
row "" model "most common"
row "masked words guessed right" "$(percent "$(json_number accuracy "$out/pretrain.json")")" ""
row "  loss, nats per masked token" "$(rounded "$(json_number loss "$out/pretrain.json")")" ""
[ ${#tasks[@]} -eq 1 ] || row "texts classified right" "$(percent "$(json_number accuracy "$out/classify.json")")" \
  "$(percent "$(sed 1d "$data/classify-heldout.tsv" | majority - '\t')")"
row "words tagged right (case and punctuation)" "$(percent "$(json_number accuracy "$out/tag.json")")" "$(percent "$(majority "$data/tag-heldout.conll" ' ')")"
row "  macro F1 over the tags" "$(rounded "$(json_number macro_f1 "$out/tag.json")")" ""
cat << END

Everything is in $out: pretrain, classify and tag are model folders. Next:
  echo "a small animal with soft fur" | $cloze predict --model $out/classify
  $cloze fill-mask --model $out/pretrain "a kind of <mask>"
  train on your own data: README.md, "Your own CSV", with model { start_from: "$out/pretrain" }
END
