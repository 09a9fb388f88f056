#!/usr/bin/env bash
# defaults.sh [--quick] [--cases A,B] [--starts random,minilm] [--seeds N] [--grid 0]: compares the settings that
# `cloze finetune` chooses (default_rule 2) with the best of 3 rates x 3 lengths, on 12 data sets, from random weights
# (a TINY encoder with its own vocabulary) and from MiniLM. The grid is searched with one seed; then the best of it and
# the defaults run with N seeds (3). Trains without validation data, and measures the last model on rows of its own.
# Prints a table and fails if defaults are more than 1.5 points below a best with an MCC (of taggers and regressions: a
# score) of at least 0.1, or give one label to all rows there. --quick: three small sets, one seed. --grid 0: only the
# defaults. A set that is not there is left out; without any, the exit code is 77.
# CLOZE: the program (a Release build). DATA: the folder of the sets. WORK: keeps finished runs, one line of results.tsv
# each, so that the same command goes on after a stop; the rows of other versions of the program must be deleted there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cloze=$(realpath "${CLOZE:-$here/../../build/cloze}") data=$(realpath -m "${DATA:-$here/../../../shared/data}")
work=${WORK:-defaults-work} cases=sst2_60,sst2_1000,xquad,mrpc,sst5,stsb,ewt,wnut17,types,mnli,imdb,sst2_60000
starts=random,minilm seeds=3 grid=1
while [ $# -gt 0 ]; do
  case $1 in
    --quick) cases=sst2_60,sst2_1000,xquad seeds=1 ;;
    --cases) cases=$2; shift ;;
    --starts) starts=$2; shift ;;
    --seeds) seeds=$2; shift ;;
    --grid) grid=$2; shift ;;
    *) echo "defaults.sh: unknown option $1" >&2; exit 64 ;;
  esac
  shift
done
mkdir -p "$work/data"
work=$(realpath "$work") d=$(realpath "$work/data")
minilm=$data/models/all-MiniLM-L6-v2-fp16
touch "$work/results.tsv"

# -- Data. make_data writes CASE.random.EXT and CASE.minilm.EXT (training rows) and CASE.test.EXT; false if the set is
# not there.
some_rows() { # FILE ROWS: the header and so many rows, evenly spaced
  awk -v n="$2" -v all="$(($(wc -l < "$1") - 1))" 'NR == 1 || int((NR - 2) * n / all) != int((NR - 1) * n / all)' "$1"
}
every_nth() { # FILE N: every nth row, of taggers every nth sentence, and the header
  case $1 in
    *.conll*) awk -v RS='' -v ORS='\n\n' -v n="$2" 'NR % n == 1' "$1" ;;
    *.jsonl) awk -v n="$2" 'NR % n == 1' "$1" ;;
    *) awk -v n="$2" 'NR == 1 || NR % n == 0' "$1" ;;
  esac
}
types_of() { # FILE ROWS: sentences with the types of their entities
  awk -F'\t' -v most="$2" 'BEGIN { print "text\tlabel" }
    NF < 2 { if (n && ++rows <= most) { l = ""
               for (i = 1; i < 9; i += 3) { t = substr("PERLOCORG", i, 3); if (t in seen) l = l (l == "" ? "" : ",") t }
               print text "\t" l }
             text = ""; n = 0; delete seen; next }
    { text = text (n++ ? " " : "") $1; if ($2 != "O") seen[substr($2, 3)] = 1 }' "$1"
}
questions() { # questions with the titles of their articles, which come after them in the files
  cat "$data"/questions/xquad_en_{train,dev}.json | grep -oE '"(title|question)": "([^"\\]|\\.)*"' | awk '
    { key = $0; sub(/^"[a-z]*": "/, "", key); sub(/"$/, "", key) }
    /^"title"/ { for (i = 1; i <= n; ++i) print text[i] "\t" key; n = 0; next }
    { text[++n] = key }'
}
make_data() { # CASE
  describe "$1" random
  local train=$d/$1.random.$ext test=$d/$1.test.$ext
  [ -s "$d/$1.minilm.$ext" ] && return
  case $1 in
    sst2_*) [ -f "$data/sentiment/sst2/train.tsv" ] || return 1
      some_rows "$data/sentiment/sst2/train.tsv" "${1#sst2_}" > "$train"; cp "$data/sentiment/sst2/dev.tsv" "$test" ;;
    sst5) cp "$data/sentiment/sst5/train.tsv" "$train" && cp "$data/sentiment/sst5/dev.tsv" "$test" ;;
    imdb) xz -dc "$data/sentiment/imdb/train.tsv.xz" > "$train" && cp "$data/sentiment/imdb/dev.tsv" "$test" ;;
    mrpc) cat "$data"/pairs/mrpc.{train,dev}.jsonl > "$d/all" || return 1
      awk 'NR % 7' "$d/all" > "$train"; awk 'NR % 7 == 0' "$d/all" > "$test" ;;
    mnli) cp "$data/pairs/mnli.train.jsonl" "$train" && head -n 2000 "$data/pairs/mnli.dev.jsonl" > "$test" ;;
    stsb) cp "$data/similarity/stsb_train.csv" "$train" && cp "$data/similarity/stsb_dev.csv" "$test" ;;
    ewt) cp "$data/tagging/ud_english_ewt/en_ewt-ud-train.conllu" "$train" &&
      cp "$data/tagging/ud_english_ewt/en_ewt-ud-dev.conllu" "$test" ;;
    wnut17) cp "$data/tagging/wnut17/train.conll" "$train" && cp "$data/tagging/wnut17/dev.conll" "$test" ;;
    types) [ -f "$data/tagging/wikiann_en/dev.conll" ] || return 1
      types_of "$data/tagging/wikiann_en/train.conll" 20000 > "$train"
      types_of "$data/tagging/wikiann_en/dev.conll" 2000 > "$test" ;;
    xquad) [ -f "$data/questions/xquad_en_dev.json" ] || return 1
      questions | awk 'BEGIN { print "text\tlabel" } NR % 7 < 4' > "$train"
      questions | awk 'BEGIN { print "text\tlabel" } NR % 7 > 3' > "$test" ;;
  esac 2> /dev/null || return
  describe "$1" minilm
  if [ "$nth" = 1 ]; then cp "$train" "$d/$1.minilm.$ext"; else every_nth "$train" "$nth" > "$d/$1.minilm.$ext"; fi
}

# Sets the extension of the files, task, fields, metric, the epochs of the grid, and that MiniLM trains on every nth row.
describe() { # CASE START
  task='sequence_classification { max_tokens: 128 }' fields='' metric=accuracy ext=tsv nth=1
  local from_random='2 4 8' from_minilm='2 4 8'
  case $1 in
    sst2_60) fields+=' text_field: "sentence"' from_random='10 25 60' from_minilm='10 25 60' ;;
    sst2_1000) fields+=' text_field: "sentence"' from_random='5 12 30' from_minilm='3 6 15' ;;
    sst2_60000) fields+=' text_field: "sentence"' from_random='1 2 3' from_minilm='1 2 3' nth=3 ;;
    sst5) fields+=' text_field: "sentence"' from_minilm='1 2 4' ;;
    imdb) from_random='1 2 4' nth=20 ;;
    mrpc) ext=jsonl fields='text_field: "sentence1" text_pair_field: "sentence2"' from_random='3 6 15' nth=2 ;;
    mnli) ext=jsonl fields='text_field: "premise" text_pair_field: "hypothesis"' nth=4 ;;
    stsb) task='sequence_classification { max_tokens: 128 kind: REGRESSION }' metric=pearson nth=3
      ext=csv fields='header: false text_field: "1" text_pair_field: "2" label_field: "3"' ;;
    ewt) task='token_tagging { max_tokens: 128 }' ext=conllu nth=3 ;;
    wnut17) task='token_tagging { max_tokens: 128 }' ext=conll metric=span_f1 nth=2
      from_random='3 8 20' from_minilm='3 6 15' ;;
    types) task='sequence_classification { max_tokens: 128 kind: MULTI_LABEL }' metric=micro_f1 nth=4 ;;
    xquad) from_random='10 25 60' from_minilm='5 12 30' ;;
    *) echo "defaults.sh: unknown case $1" >&2; exit 64 ;;
  esac
  if [ "$2" = random ]; then epochs=$from_random; else epochs=$from_minilm; fi
}

number() { sed -n "s/.*\"$1\": *\([-0-9.e]*\).*/\1/p" "$2" | head -n 1; }

# Trains and measures unless results.tsv has it: case, start, settings, seed, score, MCC, seconds.
train() { # CASE START SETTINGS SEED
  local key run=$work/run model begin seconds chosen
  key=$1$'\t'$2$'\t'$3$'\t'$4
  grep -qF "$key"$'\t' "$work/results.tsv" && return
  describe "$1" "$2"
  model='encoder { preset: TINY max_positions: 128 }'
  [ "$2" = random ] || model="start_from: \"$minilm\""
  rm -rf "$run"
  printf 'model { %s } %s train { files: "%s" %s } %s seed: %s\noutput { directory: "%s" log_every_steps: 1000 }\n' \
    "$model" "$task" "$d/$1.$2.$ext" "$fields" "${3#default}" "$4" "$run" > "$work/spec.textproto"
  begin=$(date +%s)
  "$cloze" finetune "$work/spec.textproto" > "$work/out" 2> "$work/log" || { cat "$work/log" >&2; exit 1; }
  seconds=$(($(date +%s) - begin)) chosen=$(grep -o 'chosen: .*' "$work/log" || true)
  "$cloze" evaluate --model "$run" --data "$d/$1.test.$ext" > "$work/evaluation" 2> "$work/log" || { cat "$work/log" >&2; exit 1; }
  local score mcc
  score=$(number "$metric" "$work/evaluation") mcc=$(number mcc "$work/evaluation")
  printf '%s\t%s\t%s\t%s\n' "$key" "${score:-0}" "${mcc:-${score:-0}}" "$seconds" >> "$work/results.tsv"
  echo "$1 $2 ${3} seed $4: $metric ${score:-nan}, $seconds s; $chosen" >&2
}
# Prints the mean score and the least MCC, which is 0 for one label for all rows. CASE START SETTINGS
mean() {
  awk -F'\t' -v c="$1" -v s="$2" -v g="$3" '$1 == c && $2 == s && $3 == g { n++; a += $5; if (n == 1 || $6 < m) m = $6 }
    END { if (n) printf "%.4f %.4f\n", a / n, m }' "$work/results.tsv"
}

compare() { # CASE START: prints a row of the table
  local settings rate length best='' seed
  for ((seed = 1; seed <= seeds; ++seed)); do train "$1" "$2" default "$seed"; done
  read -r score mcc <<< "$(mean "$1" "$2" default)"
  describe "$1" "$2"
  if [ "$grid" = 1 ]; then
    local rates='3e-4 1e-3 3e-3'
    [ "$2" = random ] || rates='3e-5 1e-4 3e-4'
    for rate in $rates; do
      for length in $epochs; do
        settings="batch { examples: 32 } optimizer { learning_rate: $rate } schedule { epochs: $length }"
        train "$1" "$2" "$settings" 1
      done
    done
    best=$(awk -F'\t' -v c="$1" -v s="$2" '$1 == c && $2 == s && $3 != "default" && $4 == 1 && (best == "" || $5 > most) { most = $5; best = $3 }
      END { print best }' "$work/results.tsv")
    for ((seed = 2; seed <= seeds; ++seed)); do train "$1" "$2" "$best" "$seed"; done
  fi
  awk -v c="$1" -v s="$2" -v m="$metric" -v score="$score" -v mcc="$mcc" -v best="$(mean "$1" "$2" "$best")" -v how="$best" 'BEGIN {
    split(best, b, " "); gsub(/[a-z_]+ \{ | \}/, "", how)
    verdict = best == "" ? "" : b[2] < 0.1 ? "reported" : score < b[1] - 0.015 || mcc == 0 ? "MISSED" : "ok"
    printf "| %s | %s | %s | %.1f | %s | %s | %s |\n", c, s, m, 100 * score, best == "" ? "" : sprintf("%.1f", 100 * b[1]), how, verdict }'
}

rows=()
for case in ${cases//,/ }; do
  if ! make_data "$case"; then echo "$case: no data in $data: left out" >&2; continue; fi
  for start in ${starts//,/ }; do
    [ "$start" = random ] || [ -d "$minilm" ] || { echo "$case: no model $minilm: left out" >&2; continue; }
    rows+=("$(compare "$case" "$start")")
  done
done
[ ${#rows[@]} -gt 0 ] || { echo "defaults.sh: no data: skipped"; exit 77; }
echo "| data | start | metric | defaults | best of the grid | its settings | |"
echo "| --- | --- | --- | --- | --- | --- | --- |"
printf '%s\n' "${rows[@]}"
! printf '%s\n' "${rows[@]}" | grep -q MISSED
