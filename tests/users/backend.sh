#!/usr/bin/env bash
# A backend engineer: a classifier behind a pipe that stays open, ids, wrong lines, exit codes.
source "$(dirname "$0")/common.sh"
tickets 600 1 > tickets.csv
printf 'model { tokenizer: "vocab" encoder { preset: TINY max_positions: 64 } } sequence_classification { max_tokens: 64 } train { files: "tickets.csv" text_field: "body" label_field: "queue" } schedule { steps: 20 } output { directory: "run" }\n' > t
cloze vocab --text tickets.csv --text-field body --size 1000 --out vocab > /dev/null 2> log
cloze finetune t > /dev/null 2> log

# A request is answered while the pipe stays open.
coproc SERVICE { cloze predict --model run --input-format jsonl 2> log; }
pid=$SERVICE_PID
for id in 7 8; do
  echo "{\"id\": $id, \"text\": \"My parcel is late.\"}" >&"${SERVICE[1]}"
  read -r -t 20 answer <&"${SERVICE[0]}" || fail "no answer while the pipe is open"
  grep -q "\"id\": *$id" <<< "$answer" || fail "no id: $answer"
done
exec {SERVICE[1]}>&-
wait "$pid" || fail "exit code $? at the end of the input"

# A wrong line is answered, the others too, and the exit code tells.
printf '{"id": 1, "text": "parcel"}\nnot json\n{"id": 3, "text": "payment"}\n' > lines.jsonl
code=0
cloze predict --model run --on-error line lines.jsonl > answers.jsonl 2> log || code=$?
check "exit code" "$code == 65"
check "answers" "$(wc -l < answers.jsonl) == 3"
sed -n 2p answers.jsonl | grep -q '"error"' || fail "no error: $(sed -n 2p answers.jsonl)"
# Documented exit codes, one line on stderr, nothing on stdout.
expect() {
  local want=$1 code=0
  shift
  "$@" > out 2> err < /dev/null || code=$?
  check "exit code of $*" "$code == $want"
  [ ! -s out ] && [ "$(grep -c . err)" -eq 1 ] || fail "$*: $(cat out err)"
}
expect 66 cloze predict --model nothing
expect 66 cloze predict --model run nothing.txt
: > empty.csv
code=0; cloze predict --model run --format csv empty.csv > out 2> err || code=$?
check "exit code of an empty table" "$code == 0 || $code == 65"
cp tickets.csv tickets.txt
expect 65 cloze predict --model run tickets.txt
# Two processes give the same bytes, with one thread and with two.
cut -d , -f 2 tickets.csv > plain
cloze predict --input-format text --model run --threads 1 plain > a 2> log
cloze predict --input-format text --model run --threads 2 plain > b 2> log
cmp -s a b || fail "answers depend on the threads"
echo "backend: ok"
