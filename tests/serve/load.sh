#!/usr/bin/env bash
# load.sh CLOZE CLOZE_SERVE [--full [MODEL...]]: cloze-serve under load.
#   - Throughput of 64 clients against `cloze predict` or `encode` on the same texts, and the latency of 1 client and of 64.
#     With --full, on the folders MODEL; without, on a tiny one, without bars.
#   - Soak on tiny models: slow readers, half-open sockets, garbage, many connections, SIGHUP every second; no wrong answer, no
#     growth of memory and descriptors. 15 seconds; with --full 1 M requests and 2,000 connections.
# $LOAD_CLIENT: tests/serve/load_client, built. Skipped (77) without python3.
set -euo pipefail
command -v python3 > /dev/null || { echo "no python3"; exit 77; }
here=$(realpath "$(dirname "$0")")
cloze=$(realpath "${1:?usage: load.sh CLOZE CLOZE_SERVE [--full [MODEL...]]}") serve=$(realpath "${2:?}")
full=${3:-}
models=()
for model in "${@:4}"; do models+=("$(realpath "$model")"); done
client=$(realpath "${LOAD_CLIENT:-$(dirname "$serve")/tests/load_client}")
source "$here/models.sh"
pid=
trap 'kill "$pid" $(jobs -p) 2> /dev/null || true; rm -rf "$work"' EXIT
fail() { echo "load.sh: $*" >&2; tail -n 5 serve.log >&2; exit 1; }

# Starts a server with these arguments; sets pid and port.
start() {
  : > serve.log
  "$serve" "$@" --listen 127.0.0.1:0 2> serve.log &
  pid=$!
  await grep -q listening serve.log || fail "does not start"
  port=$(sed -n 's/.*listening on .*://p' serve.log)
}
stop() { kill "$pid" && wait "$pid" || fail "exit code $?"; }

# Writes requests for the texts of a file. Argument: file.
bodies() { python3 -c 'import json, sys
for line in open(sys.argv[1], encoding="utf-8"): print(json.dumps({"inputs": line.rstrip("\n"), "truncate": True}))' "$1"; }

# Prints the rows of the table for a model. Arguments: folder, texts, requests.
throughput() {
  local kind path command seconds
  start --model "$1" --quiet --max-queue 4096
  kind=$(python3 -c 'import json, sys, urllib.request
print(json.load(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/info"))["models"][0]["kind"])' "$port")
  if [ "$kind" = sequence_classification ]; then path=/predict command=(predict); else path=/embed command=(encode --force --out v.npy); fi
  bodies "$2" > bodies
  "$client" "$port" 64 2000 "$path" bodies > /dev/null  # warm
  # The program's own start, on one text, is no throughput.
  seconds=$(python3 -c 'import subprocess, sys, time
def run(text):
    begin = time.time()
    subprocess.run(sys.argv[2:] + ["--input-format", "text", text], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.time() - begin
open("one", "w").write("one\n")
print(min(run(sys.argv[1]) for _ in range(3)) - min(run("one") for _ in range(3)))' "$2" "$cloze" "${command[0]}" --model "$1" "${command[@]:1}")
  awk -v s="$seconds" -v n="$(wc -l < "$2")" -v m="$(basename "$1")" -v c="${command[0]}" 'BEGIN { printf "%s, cloze %s: %.0f texts/s\n", m, c, n / s }'
  for clients in 1 64; do
    printf '%s, %d clients: ' "$(basename "$1")" "$clients"
    "$client" "$port" "$clients" $((clients == 1 ? $3 / 20 : $3)) "$path" bodies || fail "wrong answers"
  done
  stop
}

if [ "$full" = --full ]; then
  texts 5000 > many
  for model in "${models[@]}"; do throughput "$model" many 40000; done
fi

make_models
[ "$full" = --full ] || throughput cls text.txt 2000

# The soak.
bodies text.txt > bodies
connections=100 timeout=3 rounds=2 requests=2000
[ "$full" != --full ] || connections=2000 timeout=25 rounds=20 requests=50000
start --model cls --timeout "$timeout" --quiet --max-queue 8192
state() { echo "$(awk '/VmRSS/ { print $2 }' "/proc/$pid/status") $(find "/proc/$pid/fd" -mindepth 1 | wc -l)"; }
python3 "$here/bad_clients.py" "$port" "$connections" &
bad=$!
(while sleep 1; do kill -HUP "$pid" 2> /dev/null || break; touch cls/config.json; done) &
reloads=$!
sleep "$timeout"  # until large batches have been, too
for round in $(seq "$rounds"); do
  "$client" "$port" 64 "$requests" /predict bodies "answers-$round" > client.log || fail "round $round: $(cat client.log)"
  cmp -s "answers-$round" answers-1 || fail "answers changed"
  echo "soak $round: $(cat client.log); kB and descriptors: $(state)"
  [ "$round" -ne 1 ] || before=$(state)
done
kill "$reloads" && wait "$reloads" 2> /dev/null || true
kill "$bad" && wait "$bad" 2> /dev/null || true
sleep $((timeout + 3))  # all late connections are closed
after=$(state)
awk -v before="$before" -v after="$after" 'BEGIN { split(before, b, " "); split(after, a, " "); exit !(a[1] < b[1] * 1.25 + 8000 && a[2] < 64) }' ||
  fail "memory (kB) and descriptors grew from $before to $after"
stop
! grep -E 'not loaded|error|Sanitizer' serve.log || fail "errors"
echo "load: ok"
