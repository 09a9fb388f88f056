#!/usr/bin/env bash
# short.sh PROGRAM MPI_PROGRAM: runs of 1 to 7 ranks on this machine, over shared memory, in bf16 if the CPU has it,
# end with the same bits; ranks that differ, die or hang end the job. Prints nothing but failures. Environment:
# MPIRUN (mpirun), of the MPI of MPI_PROGRAM, for example mpirun.mpich.
set -euo pipefail
program=$(realpath "$1") mpi_program=$(realpath "$2") mpirun=${MPIRUN:-mpirun}
command -v "$mpirun" > /dev/null || exit 77
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "short.sh: $*" >&2; exit 1; }
. "$root/tests/distributed/specs.sh"

ranks() { timeout 120 $mpirun -n "$1" "$mpi_program" "${@:2}" --set output.directory="$run" > out 2> err < /dev/null; }
same() { [ "$(bits "$1" "$2")" = "$(bits "$run" "$2")" ] || fail "$run and $1 differ"; }

# The same bits as one process, for several kinds of runs; every rank writes to no file but its own.
for kind in lm:pretrain:00000012 class:finetune:00000012 tag:finetune:00000006 lora:finetune:00000006 \
  causal:pretrain:00000006 pairs:finetune:00000006; do
  IFS=: read -r name command steps <<< "$kind"
  "$program" "$command" "$name.textproto" --set output.directory="$name-one" > /dev/null 2> err || fail "$name: $(cat err)"
  for n in 2 3 4 7; do
    [ "$n" = 4 ] || [ "$name" = lm ] || continue
    run=$name-$n
    ranks "$n" "$command" "$name.textproto" --set runtime.threads=$((n % 2 + 1)) || fail "$run: $(cat err)"
    same "$name-one" "$steps"
  done
done
grep -q '"ranks":\[{"tokens_per_second"' lm-4/log.jsonl || fail "no ranks in the log"

# Ranks that train apart: the same bits with any number of threads, and after a resume.
apart="--set distributed.local_steps=4 --set optimizer.ema_decay=0"
run=apart
ranks 3 pretrain lm.textproto $apart || fail "$run: $(cat err)"
cp -r apart resumed
rm -r resumed/step-00000012
run=resumed
ranks 3 pretrain lm.textproto $apart --set runtime.threads=2 || fail "$run: $(cat err)"
grep -q 'resumed at step 8' err || fail "$run: $(cat err)"
same apart 00000012

# Evaluation.
"$program" evaluate --json --model class-one --data classes.tsv > one.json 2> err || fail "evaluation: $(cat err)"
timeout 60 $mpirun -n 3 "$mpi_program" evaluate --json --model class-one --data classes.tsv > three.json 2> err < /dev/null || fail "evaluation: $(cat err)"
cmp one.json three.json || fail "evaluation differs"
# A stream can be read by one of them only.
timeout 60 $mpirun -n 2 "$mpi_program" evaluate --model class-one --data - --set format=TSV > out 2> err < classes.tsv && fail "evaluation of a stream"
grep -q 'can be read only once, but each rank reads it' err || fail "evaluation of a stream: $(cat err)"

# Rank 0 may tokenize for longer than the timeout, but not be silent: then rank 1 ends the job.
for i in $(seq 80); do cat text.txt; done > long.txt
long="pretrain lm.textproto --set train.files=long.txt --set schedule.steps=1 --set distributed.timeout_seconds=1"
run=patient
ranks 2 $long || fail "$run: $(cat err)"
$mpirun -n 2 "$mpi_program" $long --set output.directory=silent > out 2> err < /dev/null &
job=$!
for _ in $(seq 100); do
  children=$(ranks_below $job) && [ -e silent ] && break
  sleep 0.05
done
kill -STOP "$(echo "$children" | head -1)"
status=0
wait $job || status=$?
[ $status = 75 ] || fail "a silent rank 0: exit $status: $(cat err)"
grep -q 'no answer for 1 s from rank 0 on' err || fail "a silent rank 0: $(cat err)"

# A rank is told to stop, is killed, is stopped; mpirun is killed. The next job, of other size, continues.
run=stopped longer="--set schedule.steps=80 --set output.checkpoint_every_steps=10"
"$program" pretrain lm.textproto $longer --set output.directory=long-one > /dev/null 2> err || fail "$(cat err)"
logged() { cat "$run/log.jsonl" 2> /dev/null | wc -l; }
await_log() {  # lines that the log of $run must exceed
  for _ in $(seq 300); do
    [ "$(logged)" -gt "$1" ] && break
    sleep 0.05
  done
}
signal() {  # name ranks expected-exit of mpirun
  $mpirun -n "$2" "$mpi_program" pretrain lm.textproto $longer --set output.directory=$run --set distributed.timeout_seconds=2 > out 2> err < /dev/null &
  local job=$! children=""
  await_log "$lines"
  children=$(ranks_below $job) || fail "$1: no ranks: $(cat err)"
  if [ "$1" = LAUNCHER ]; then kill -9 $job; else kill "-$1" "$(echo "$children" | tail -1)"; fi
  local status=0
  wait $job 2> /dev/null || status=$?
  for _ in $(seq 200); do
    ps -o stat= -p "$(echo $children | tr ' ' ,)" | grep -q '^[^Z]' || break
    sleep 0.1
  done
  ps -o stat= -p "$(echo $children | tr ' ' ,)" | grep -q '^[^Z]' && fail "$1: ranks are left"
  lines=$(logged)
  case " $3 " in *" $status "*) ;; *) fail "$1: exit $status: $(cat err)" ;; esac
}
lines=0
signal TERM 4 "75"
[ -d $run/step-00000080 ] && fail "TERM: the run went on to its end"
signal KILL 2 "137 9"  # Open MPI, MPICH
signal STOP 3 75
grep -q 'no answer for 2 s from rank [0-2] on' err || fail "$(cat err)"
signal LAUNCHER 2 137
ranks 3 pretrain lm.textproto $longer || fail "after the signals: $(cat err)"
same long-one 00000080

# A rank that cannot read its data ends the job by name, and what was learned is saved. Rank 1 has a cache of its own.
mkdir elsewhere
cp lm.textproto text.txt elsewhere
run=$PWD/unread
$mpirun -n 2 sh -c '[ ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} = 0 ] || cd elsewhere; exec "$0" "$@"' "$mpi_program" \
  pretrain lm.textproto --set schedule.steps=1000000 --set output.checkpoint_every_steps=1000000 \
  --set output.cache_directory=cache --set output.directory="$run" > out 2> err < /dev/null &
job=$!
await_log 3
for store in elsewhere/cache/*/; do truncate -s 1 "$store"/*; done
status=0
wait $job || status=$?
[ $status = 65 ] || fail "unreadable data: exit $status: $(cat err)"
grep -q 'rank 1 on .*: cache/' err || fail "unreadable data: $(cat err)"
compgen -G "$run/step-*" > out || fail "unreadable data: nothing was saved"

# Ranks that differ are refused by name, and leave nothing.
run=other
$mpirun -n 2 sh -c '"$0" "$@" --set seed=$((1 + ${OMPI_COMM_WORLD_RANK:-$PMI_RANK}))' \
  "$mpi_program" pretrain lm.textproto --set output.directory=$run > out 2> err < /dev/null && fail "another seed is accepted"
grep -q 'rank 1 on .*: the spec: "seed: 2": expected "seed: 1" as on rank 0' err || fail "$(cat err)"
[ ! -e $run ] || fail "a refused run left a folder"
$mpirun -n 2 "$mpi_program" vocab --text text.txt --out vocab-of-ranks > out 2> err < /dev/null && fail "vocab is accepted"
grep -q 'expected pretrain, finetune or evaluate' err || fail "$(cat err)"
$mpirun -n 2 "$mpi_program" --threads 1 pretrain --plan > out 2> err < /dev/null && fail "no spec is accepted"
grep -q 'cloze pretrain: spec is required' err || fail "$(cat err)"
