# Sourced by run.sh. Prints tokens/s and memory of BERT base (bf16 if the machine has it) for ranks of one core
# each. Needs $RANKS (default 4) free cores. With CLOZE_PYTHON, which runs Python with PyTorch, also of torchrun.
ranks=${RANKS:-4}
awk 'BEGIN { print "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]"; for (i = 5; i < 30522; ++i) print "w" i }' > vocab.txt
awk 'BEGIN { srand(1); for (i = 0; i < 9000; ++i) { for (j = 0; j < 126; ++j) printf "w%d ", 5 + int(rand() * 30517); print "" } }' > words.txt
cat > base.textproto << END
model { tokenizer: 'vocab.txt' encoder { preset: BASE } } masked_lm { max_tokens: 128 } train { files: 'words.txt' documents: LINE }
batch { tokens: 8192 micro_tokens: 2048 } schedule { steps: 8 } runtime { threads: 1 compute: AUTO }
output { directory: 'run' checkpoint_every_steps: 100000 log_every_steps: 1 cache_directory: 'cache' }
END

# Prints the median seconds of a step, but the first two.
step_seconds() {
  grep -o '"seconds":[0-9.]*' "$1/log.jsonl" | cut -d: -f2 | awk 'NR > 2 { print $1 - last } { last = $1 }' | sort -g |
    awk '{ v[NR] = $1 } END { printf "%.3f\n", v[int((NR + 1) / 2)] }'
}
# Writes the most resident memory of a rank, in MB, to ./memory, until it is killed.
watch_memory() {
  local most=0 now
  while sleep 0.5; do
    now=$(cat $(pgrep -f "^($mpi_program|$program) pretrain" | sed 's|.*|/proc/&/status|') 2> /dev/null < /dev/null |
      awk '/VmHWM/ && $2 > most { most = $2 } END { printf "%.0f", most / 1e3 }')
    [ "$now" -le $most ] || { most=$now; echo "$most" > memory; }
  done
}
# watched COMMAND...: runs it, and sets m to the most memory of a rank.
watched() {
  local code
  watch_memory &
  "$@"
  code=$?
  kill $!
  m=$(cat memory)
  return $code
}

# measure NAME RANKS ARGUMENT...: sets s (seconds of a step), t (tokens/s), m (MB). $TOKENS: of a step.
measure() {
  local name=$1 n=$2; shift 2
  PIN=1 LIMIT=900 watched job "$n" "$name" pretrain base.textproto --set batch.tokens="$TOKENS" "$@" || fail "$name: $(cat err)"
  s=$(step_seconds "$name")
  t=$(awk -v s="$s" -v n="$TOKENS" 'BEGIN { printf "%.0f", n / s }')
}
# plan RANKS NETWORK: prints the seconds of a step that the plan expects.
plan() {
  taskset -c 0 "$program" pretrain base.textproto --set batch.tokens="$TOKENS" --plan --ranks "$1" ${2:+--network "$2"} 2> /dev/null |
    sed -n 's/.*a step takes \([0-9.]*\) s.*/\1/p'
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }
row() { printf '%-58s %8s tokens/s %8s s/step %6s MB  %s\n' "$@"; }

# torch RANKS: sets s and t to those of PyTorch with gloo.
torch() {
  local rank
  for rank in $(seq "$1"); do
    PIN=1 timeout 600 ./agent "node$rank" env RANK=$((rank - 1)) WORLD_SIZE="$1" MASTER_ADDR=10.99.0.1 MASTER_PORT=29500 \
      GLOO_SOCKET_IFNAME=eth0 USE_LIBUV=0 OMP_NUM_THREADS=1 "$CLOZE_PYTHON" - < "$self/ddp.py" > "torch-$rank" 2> "torch-$rank.err" &
  done
  wait $(jobs -p)
  s=$(cat torch-1)
  [ -n "$s" ] || fail "PyTorch: $(tail -n 3 torch-1.err)"
  t=$(awk -v s="$s" -v n=$((2048 * $1)) 'BEGIN { printf "%.0f", n / s }')
}

TOKENS=2048
limit none
watched taskset -c 0,1 "$program" pretrain base.textproto --set batch.tokens=2048 --set batch.micro_tokens=1024 --set runtime.threads=2 \
  --set output.directory=two-threads > /dev/null 2> err || fail "$(cat err)"
s=$(step_seconds two-threads)
t1=$(awk -v s="$s" 'BEGIN { printf "%.0f", 2048 / s }')
row "1 rank x 2 threads, passes of 8x128" "$t1" "$s" "$m" ""
OMPI_MCA_btl=self,vader watched taskset -c 0,1 mpirun --bind-to core -n 2 "$mpi_program" pretrain base.textproto --set batch.tokens=2048 \
  --set batch.micro_tokens=1024 --set output.directory=shared > /dev/null 2> err || fail "$(cat err)"
s=$(step_seconds shared)
t=$(awk -v s="$s" 'BEGIN { printf "%.0f", 2048 / s }')
row "2 ranks x 1 core of one machine, passes of 8x128" "$t" "$s" "$m" "$(ratio "$t" "$t1") of one rank"
measure two-ranks 2 --set batch.micro_tokens=1024
row "2 ranks x 1 core, passes of 8x128" "$t" "$s" "$m" "$(ratio "$t" "$t1") of one rank"

TOKENS=$((2048 * ranks))
measure four-passes 1 --set schedule.steps=4
row "1 rank x 1 core, $ranks passes of 16x128" "$t" "$s" "$m" ""
one=$m
measure unlimited "$ranks"
free=$t
row "$ranks ranks x 1 core, 16x128 each, no limit" "$t" "$s" "$m" "memory $(ratio "$m" "$one") of one rank; plan $(plan $ranks '') s"
limit 10gbit
measure ten "$ranks"
row "$ranks ranks x 1 core, 10 Gb/s" "$t" "$s" "$m" "$(ratio "$t" "$free") of no limit; plan $(plan $ranks 10Gb) s"
ten=$t
if [ -n "${CLOZE_PYTHON:-}" ]; then
  torch "$ranks"
  row "PyTorch with gloo, 10 Gb/s" "$t" "$s" "" "Cloze is $(ratio "$ten" "$t") times as fast"
fi
limit 1gbit
measure one-gb "$ranks" --set schedule.steps=5
row "$ranks ranks x 1 core, 1 Gb/s" "$t" "$s" "$m" "$(ratio "$t" "$free") of no limit; plan $(plan $ranks 1Gb) s"
measure apart "$ranks" --set distributed.local_steps=100 --set schedule.steps=101
# The mean: one step of a hundred has the average.
s=$(grep -o '"seconds":[0-9.]*' apart/log.jsonl | cut -d: -f2 | awk 'NR == 1 { a = $1 } NR == 101 { printf "%.3f", ($1 - a) / 100 }')
t=$(awk -v s="$s" -v n="$TOKENS" 'BEGIN { printf "%.0f", n / s }')
row "$ranks ranks x 1 core, 1 Gb/s, local_steps 100" "$t" "$s" "$m" "$(ratio "$t" "$free") of no limit"
