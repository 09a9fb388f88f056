#!/usr/bin/env bash
# docs.sh PROGRAM [--update]: checks docs/ against the program.
#   - Runs the tutorials as they are written: of each page, in an empty folder, blocks ```textproto NAME, ```python,
#     ```c and ```cpp NAME are written to the file NAME and blocks ```sh are run; library.md with the library beside
#     the program. Only pretraining and the run of translating.md are shortened.
#   - Trains on each example file of data-formats.md (blocks ```file NAME).
#   - Looks for each message of troubleshooting.md in the sources, and for each local link's file.
#   - Compares the columns of each row of a table with those of its header.
#   - Compares spec-fields.md with `cloze spec explain`; --update writes it and does nothing else.
set -euo pipefail
program=$(realpath "${1:?usage: docs.sh PROGRAM [--update]}")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "docs.sh: $*" >&2; exit 1; }

# Turns `cloze spec explain` into Markdown: a section for each message of TaskSpec, a paragraph for each field.
spec_fields() {
  printf '# Every field of a spec\n\nWritten by `tests/e2e/docs.sh build/cloze --update` from the comments in proto/. `cloze spec explain FIELD` prints the same.\n'
  "$program" spec explain | awk '
    function flush() { if (text != "") print text; text = "" }
    /^[^ ]/ {
      flush()
      name = $1; rest = substr($0, length(name) + 3)
      if (name !~ /\./) printf "\n## %s\n", name
      printf "\n`%s` %s\\\n", name, rest
      next
    }
    /^      [A-Z0-9_]+  / { flush(); value = $1; sub(/^ +[A-Z0-9_]+ +/, ""); text = "- `" value "`: " $0; next }
    { sub(/^ +/, ""); text = text (text == "" ? "" : "\n") $0 }
    END { flush() }' | sed -E 's/^(- `)/\1/'
}

if [ "${2:-}" = --update ]; then
  spec_fields > "$root/docs/spec-fields.md"
  exit 0
fi
spec_fields > "$work/spec-fields.md"
cmp -s "$work/spec-fields.md" "$root/docs/spec-fields.md" || fail "docs/spec-fields.md is old: run tests/e2e/docs.sh build/cloze --update"

# --- Links and messages.

while IFS=: read -r page target; do
  [ -e "$(dirname "$page")/${target%%#*}" ] || fail "${page#"$root"/}: link to $target, which does not exist"
done < <(grep -oE '\]\([^)#:]+[^):]*\)' "$root"/*.md "$root"/{docs,tools/*,tests/*}/*.md | sed -E 's/\]\(([^)]*)\)/\1/')

uneven=$(awk '
  !/^\|/ { columns = 0; next }
  { gsub(/\\\|/, ""); n = gsub(/\|/, "|") }
  columns && n != columns { print FILENAME ":" FNR }
  !columns { columns = n }' "$root"/{README,docs/*,tools/*/*,tests/*/*}.md)
[ -z "$uneven" ] || fail "rows of a table that have more or fewer columns than its header: $uneven"

find "$root"/{core,encoder,tasks,tools,proto} -name '*.cc' -exec cat {} + > "$work/sources"
while IFS= read -r message; do
  quoted=$(sed 's/"/\\"/g' <<< "$message")
  grep -qF -e "$quoted" "$work/sources" || fail "troubleshooting.md: no source has the message: $message"
done < <(sed -nE 's/^\| `([^`]*)` \|.*/\1/p' "$root/docs/troubleshooting.md")

# --- The files that the tutorials begin with.

# Prints sentences of a small made-up language in Cyrillic letters, several per line. Argument: lines.
language() {
  awk -v lines="$1" 'BEGIN { srand(5)
    n = split("Ӧтик Пон Кань Айка Ныв Зонка Вӧр Ю", who, " "); m = split("мунӧ видзӧдӧ кывзӧ сьылӧ узьӧ локтӧ", does, " "); o = split("гортӧ вӧрӧ юын лунын рытын ўлын", where, " ")
    for (i = 0; i < lines; ++i) {
      out = ""
      for (j = 0; j < 4; ++j) out = out (j ? " " : "") who[1 + int(rand() * n)] " " does[1 + int(rand() * m)] " " where[1 + int(rand() * o)] "."
      print out
      if (i % 5 == 4) print ""
    } }'
}
# Makes a treebank of its lines.
treebank() {
  awk 'NF { split($0, s, "[.] ?"); for (k = 1; k <= 4; ++k) { w = split(s[k], word, " "); if (w < 3) continue
      print "# text = " s[k] "."
      for (i = 1; i <= 3; ++i) print i "\t" word[i] "\t_\t" (i == 1 ? "NOUN" : i == 2 ? "VERB" : "ADV") "\t_\t_\t0\t_\t_\t_"
      print "4\t.\t_\tPUNCT\t_\t_\t0\t_\t_\t_\n" } }'
}
tickets() {
  awk 'BEGIN { srand(1); print "text,label"
    split("parcel box courier driver", thing, " "); split("invoice charge refund card", money, " ")
    for (i = 0; i < 1200; ++i) {
      late = rand() < 0.5; w = 1 + int(rand() * 4)
      print "\"Number " i ", the " (late ? thing[w] : money[w]) " is wrong.\"," (late ? "delivery" : "billing")
    } }' > data.csv
}
encoder() {  # a small model folder that stands for a public one
  language 200 > text
  "$program" vocab --text text --size 500 --out vocab
  printf 'model { tokenizer: "vocab" encoder { preset: TINY } } masked_lm {} train { files: "text" format: TEXT } schedule { steps: 2 } output { directory: "%s" }\n' "$1" > start
  "$program" pretrain start && rm -r text vocab start
}
prepare() {
  case $1 in
    first-classifier | coming-from-pandas | library | serving) tickets ;;
    own-language)
      language 2000 > text.txt
      language 100 | treebank > train.conllu
      language 20 | treebank > dev.conllu ;;
    adapting)
      mkdir models && encoder models/minilm
      language 400 > domain.txt
      language 40 | grep . > domain_dev.txt
      tickets && awk 'NR == 1 || NR % 10 != 0' data.csv > train.csv && awk 'NR == 1 || NR % 10 == 0' data.csv > dev.csv ;;
  esac
}

# --- The tutorials.

mkdir "$work/bin"
cat > "$work/bin/cloze" << END
#!/usr/bin/env bash
case \$1 in
  pretrain) exec "$program" "\$@" --set schedule.time_budget_minutes=0.15 ;;
  finetune) [ "\$2" = translate.textproto ] && set -- "\$@" --set schedule.steps=100 --set evaluation.max_examples=50
            exec "$program" "\$@" ;;
  *) exec "$program" "\$@" ;;
esac
END
chmod +x "$work/bin/cloze"
PATH=$work/bin:$PATH
export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive

# Runs the blocks of a page. Argument: its name.
tutorial() {
  mkdir "$work/$1" && cd "$work/$1"
  prepare "$1" 2> prepare.log || { cat prepare.log >&2; fail "$1: preparation failed"; }
  awk '
    /^```(textproto|python|c|cpp) / { file = $2; on = 1; next }
    /^```sh$/ { file = ".commands"; on = 1; next }
    /^```/ { on = 0; next }
    on { print > file }' "$root/docs/$1.md"
  [ -z "${port:-}" ] || sed -i "s/:8080/:$port/g" .commands
  [ -s .commands ] || fail "$1.md has no commands"
  bash -eu -o pipefail .commands > .out 2> .log || { cat .out .log >&2; fail "$1.md: a command failed"; }
}

# --- The example files.

# Arguments: file, task, more about the data.
train_on() {
  local command=finetune
  [[ $2 != masked_lm* ]] || command=pretrain
  printf 'model { tokenizer: "vocab" encoder { preset: TINY max_positions: 64 } } %s train { files: "%s" %s } batch { examples: 2 } schedule { steps: 2 } output { directory: "run-%s" }\n' \
    "$2" "$1" "${3:-}" "$1" > spec
  "$program" "$command" spec > log 2>&1 || { cat log >&2; fail "data-formats.md: $1"; }
  if grep -q 'not UTF-8' log; then cat log >&2; fail "data-formats.md: $1"; fi
}
formats() {
  mkdir "$work/formats" && cd "$work/formats"
  awk '/^```file / { file = $2; on = 1; next } /^```/ { on = 0; next } on { print > file }' "$root/docs/data-formats.md"
  "$program" vocab --text text.txt classes.tsv --size 100 --out vocab 2> /dev/null
  train_on text.txt 'masked_lm { max_tokens: 32 }'
  for file in classes.csv classes.tsv classes.jsonl fasttext.txt; do train_on $file 'sequence_classification { max_tokens: 32 }'; done
  train_on pairs.tsv 'sequence_classification { max_tokens: 32 kind: REGRESSION }' 'text_pair_field: "other"'
  train_on several.jsonl 'sequence_classification { max_tokens: 32 kind: MULTI_LABEL }'
  for file in tags.conll tags.jsonl; do train_on $file 'token_tagging { max_tokens: 32 }'; done
  [ "$(find . -name 'run-*' | wc -l)" -eq 9 ] || fail "data-formats.md: files without a run"
}

formats
(tutorial first-classifier)
grep -q '"label": "billing"' "$work/first-classifier/.out" || fail "first-classifier.md: wrong answer"
[ "$(wc -l < "$work/first-classifier/predictions.csv")" -eq 1201 ] || fail "first-classifier.md: not all rows have an answer"
if command -v python3 > /dev/null; then
  (tutorial coming-from-pandas)
  grep -qxE '1 because of: card|2 because of: courier' "$work/coming-from-pandas/.out" || fail "coming-from-pandas.md: wrong answer: $(grep because "$work/coming-from-pandas/.out")"
  [ "$(wc -l < "$work/coming-from-pandas/labelled.csv")" -eq 1201 ] || fail "coming-from-pandas.md: not all rows have an answer"
fi
if [ -e "${program%/*}/libcloze.so.0" ] && command -v python3 pkg-config cmake cc c++ > /dev/null; then
  cmake --install "${program%/*}" --prefix "$work/prefix" > /dev/null
  libraries=$(dirname "$(find "$work/prefix" -name libcloze.so.0)")
  (export PKG_CONFIG_PATH=$libraries/pkgconfig LD_LIBRARY_PATH=$libraries PYTHONPATH=$work/prefix/lib/python3/dist-packages; tutorial library)
  [ "$(grep -cE '^\{"label": "(billing|delivery)", ' "$work/library/.out")" -eq 4 ] || fail "library.md: wrong answers"
else
  echo "docs: library.md not run: no libcloze.so.0 beside the program, or no compiler, pkg-config or python3"
fi
(tutorial own-language)
grep -q $'\tVERB\t' "$work/own-language/tagged.conllu" || fail "own-language.md: nothing tagged"
(tutorial adapting)
if [ -x "$(dirname "$program")/cloze-serve" ] && command -v curl > /dev/null && command -v python3 > /dev/null; then
  ln -s "$(dirname "$program")/cloze-serve" "$work/bin/cloze-serve"
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  (tutorial serving)
  grep -q '"score": 0[.]9.*delivery.*billing' "$work/serving/answer.json" || fail "serving.md: wrong answer: $(cat "$work/serving/answer.json")"
  grep -q '"object": "embedding"' "$work/serving/vectors.json" || fail "serving.md: no vectors"
  unset port
else
  echo "docs: serving.md not run: no cloze-serve beside the program, no curl or no python3"
fi
(tutorial translating)
grep -q '"exact_match"' "$work/translating/.out" || fail "translating.md: no metrics"
echo "docs: ok"
