#!/usr/bin/env bash
# run.sh [PART...]: ranks on nodes of their own, which a network of 10 Gb/s joins (network.sh). Parts:
#   bits   1, 2, 3, 4 and 7 ranks over TCP, and 4 -> 2 -> 3 ranks by resuming, end with the same bits
#   kills  a random rank is killed at a random moment, $RANKS_KILLED times (50), or mpirun is, $LAUNCHERS_KILLED
#          times (20), or a link is cut: the job ends in time, and the same command ends with the same bits
#   speed  the table of speed.sh
# Without arguments: all. Needs root. Environment: CLOZE, CLOZE_MPI (build/cloze, build/cloze-mpi).
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
self=$root/tests/distributed
program=$(realpath "${CLOZE:-build/cloze}") || exit 2
mpi_program=$(realpath "${CLOZE_MPI:-build/cloze-mpi}") || exit 2
. "$self/network.sh"
work=$(mktemp -d)
cd "$work" || exit 2
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
. "$self/specs.sh"
make_agent

# job RANKS RUN ARGUMENT...: a job with output to out and err. Ends after $LIMIT seconds (120) at the latest.
job() {
  local n=$1 run=$2; shift 2
  timeout -k 5 "${LIMIT:-120}" mpirun -H "$(nodes "$n")" -n "$n" "$mpi_program" "$@" --set output.directory="$run" > out 2> err < /dev/null
}
same() { [ "$(bits "$1" "$3")" = "$(bits "$2" "$3")" ] || fail "$2 and $1 differ"; }
one() { "$program" "$1" "$2.textproto" "${@:3}" > /dev/null 2> err || fail "$2: $(cat err)"; }

test_bits() {
  local name command steps n start=$SECONDS runs=0
  for kind in lm:pretrain:00000012 class:finetune:00000012 tag:finetune:00000006 lora:finetune:00000006; do
    IFS=: read -r name command steps <<< "$kind"
    one "$command" "$name" --set output.directory="$name-one"
    for n in 1 2 3 4 7; do
      job "$n" "$name-$n" "$command" $name.textproto --set runtime.threads=$((n % 2 + 1)) || fail "$name, $n ranks: $(cat err)"
      same "$name-one" "$name-$n" "$steps"
      runs=$((runs + 1))
    done
  done
  for n in 4 2 3; do
    job $n changed pretrain lm.textproto --set output.keep_checkpoints=3 || fail "resume with $n ranks: $(cat err)"
    case $n in
      4) rm -r changed/step-00000008 changed/step-00000012 ;;
      2) grep -q 'resumed at step 4' err && rm -r changed/step-00000012 ;;
      3) grep -q 'resumed at step 8' err ;;
    esac || fail "resume with $n ranks: $(cat err)"
  done
  same lm-one changed 00000012
  echo "bits: $runs runs of 4 kinds with 1, 2, 3, 4 and 7 ranks, and one that continued with 4, 2 and 3: equal ($((SECONDS - start)) s)"
}

# gone SECONDS: waits until no rank is left.
gone() {
  local since=$SECONDS
  while pgrep -f "^$mpi_program" > /dev/null; do
    [ $((SECONDS - since)) -le "$1" ] || fail "ranks are left $1 s later: $(tail -n 3 err) $(ps -fp "$(pgrep -d, -f "^$mpi_program")")"
    sleep 0.1
  done
}

# kill_jobs WHAT N: WHAT is rank, mpirun or link.
kill_jobs() {
  local what=$1 killed=0 runs=0 saved=0 code n worst=0 start=$SECONDS
  rm -rf killed
  while [ $killed -lt "$2" ]; do
    n=$((2 + RANDOM % 3))
    { job $n killed pretrain lm.textproto $longer --set distributed.timeout_seconds=3; } 2> /dev/null &
    sleep "$(awk -v r=$RANDOM -v s=$seconds 'BEGIN { print 0.3 + r / 32768 * s }')"
    case $what in
      rank) kill -KILL "$(pgrep -f "^$mpi_program" | shuf -n 1)" 2> /dev/null ;;
      mpirun) pkill -KILL -f "^mpirun .*$mpi_program" ;;
      link) ip link set veth$n down ;;
    esac
    [ $? = 0 ] && killed=$((killed + 1))
    local since=$SECONDS
    gone 20
    [ $((SECONDS - since)) -le $worst ] || worst=$((SECONDS - since))
    ip link set veth$n up  # mpirun waits for a node that is cut off
    wait $!
    code=$?
    ls -d killed/step-* > /dev/null 2>&1 && saved=$((saved + 1))
    if [ $code = 0 ]; then
      same long-one killed 00000060
      rm -rf killed
      runs=$((runs + 1))
    fi
    [ $code != 124 ] || fail "$what: the job hangs: $(cat err)"
  done
  job 2 killed pretrain lm.textproto $longer || fail "after the last kill: $(cat err)"
  same long-one killed 00000060
  echo "kills of a $what: $killed ($saved with a checkpoint), $((runs + 1)) runs ended with the same bits; all ranks gone within $worst s ($((SECONDS - start)) s)"
}

test_kills() {
  longer="--set schedule.steps=60 --set output.checkpoint_every_steps=10"
  one pretrain lm $longer --set output.directory=long-one
  seconds=$(date +%s.%N)
  job 3 long-three pretrain lm.textproto $longer || fail "$(cat err)"
  seconds=$(awk -v a="$seconds" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')
  kill_jobs rank "${RANKS_KILLED:-50}"
  kill_jobs mpirun "${LAUNCHERS_KILLED:-20}"
  kill_jobs link 3
}

test_speed() { . "$self/speed.sh"; }

limit 10gbit || fail "no tc"
for part in "${@:-bits kills speed}"; do
  for name in $part; do test_"$name" || exit 1; done
done
