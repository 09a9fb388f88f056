#!/usr/bin/env bash
# short.sh PROGRAM MPI_PROGRAM: runs of 1 to 7 ranks on this machine, over shared memory, end with the same
# bits; ranks that differ, die or hang end the job. Prints nothing but failures.
set -euo pipefail
program=$(realpath "$1") mpi_program=$(realpath "$2")
command -v mpirun > /dev/null || exit 77
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "short.sh: $*" >&2; exit 1; }
# For Open MPI: as root, and more ranks than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none  # Open MPI 5

cat "$root"/docs/*.md > text.txt
{ printf 'text\tlabel\n'; for i in $(seq 120); do printf 'the %s sat on mat %d\t%s\n' "$((i % 3))" "$i" "l$((i % 3))"; done; } > classes.tsv
for i in $(seq 60); do printf 'the\tO\ncat\tB-ANIMAL\nsat\tO\n%d\tO\n\n' "$i"; done > tags.conll
encoder="tokenizer: '$root/tests/golden/release_0.1/vocab' encoder { preset: CUSTOM layers: 3 hidden: 128 heads: 2 intermediate: 512 max_positions: 64 }"
common="runtime { threads: 1 } distributed { timeout_seconds: 20 } output { directory: 'run' checkpoint_every_steps: 4 log_every_steps: 1 }"
cat > lm.textproto << END
model { $encoder } masked_lm { max_tokens: 64 } train { files: 'text.txt' } validation { share: 0.05 }
batch { tokens: 1024 micro_tokens: 192 } schedule { steps: 12 } optimizer { ema_decay: 0.9 clip_updates: true } $common
END
cat > class.textproto << END
model { $encoder } sequence_classification { max_tokens: 32 } train { files: 'classes.tsv' } validation { files: 'classes.tsv' }
batch { examples: 20 micro_tokens: 64 } schedule { steps: 12 } $common
END
cat > tag.textproto << END
model { $encoder } token_tagging { max_tokens: 32 crf: true } train { files: 'tags.conll' } validation { files: 'tags.conll' }
batch { examples: 20 micro_tokens: 64 } schedule { steps: 6 } $common
END
cat > lora.textproto << END
model { start_from: 'lm-one' } trainable { lora { rank: 2 } } sequence_classification { max_tokens: 32 }
train { files: 'classes.tsv' } batch { examples: 20 micro_tokens: 64 } schedule { steps: 6 } $common
END

ranks() { timeout 120 mpirun -n "$1" "$mpi_program" "${@:2}" --set output.directory="$run" > out 2> err < /dev/null; }
bits() { (cd "$1" && cat ./*model.safetensors metrics.json "step-$2"/*model.safetensors "step-$2"/optimizer.safetensors | sha256sum); }
same() { [ "$(bits "$1" "$2")" = "$(bits "$run" "$2")" ] || fail "$run and $1 differ"; }

# The same bits as one process, for several kinds of runs; every rank writes to no file but its own.
for kind in lm:pretrain:00000012 class:finetune:00000012 tag:finetune:00000006 lora:finetune:00000006; do
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
timeout 60 mpirun -n 3 "$mpi_program" evaluate --json --model class-one --data classes.tsv > three.json 2> err < /dev/null || fail "evaluation: $(cat err)"
cmp one.json three.json || fail "evaluation differs"

# A rank is told to stop, is killed, is stopped; mpirun is killed. The next job, of other size, continues.
run=stopped longer="--set schedule.steps=80 --set output.checkpoint_every_steps=10"
"$program" pretrain lm.textproto $longer --set output.directory=long-one > /dev/null 2> err || fail "$(cat err)"
logged() { cat $run/log.jsonl 2> /dev/null | wc -l; }
signal() {  # name ranks expected-exit of mpirun
  mpirun -n "$2" "$mpi_program" pretrain lm.textproto $longer --set output.directory=$run --set distributed.timeout_seconds=2 > out 2> err < /dev/null &
  local job=$! children=""
  for _ in $(seq 300); do
    [ "$(logged)" -gt "$lines" ] && break
    sleep 0.05
  done
  children=$(pgrep -P $job -f "$mpi_program") || fail "$1: no ranks: $(cat err)"
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
signal KILL 2 137
signal STOP 3 75
grep -q 'no answer for 2 s from rank [0-2] on' err || fail "$(cat err)"
signal LAUNCHER 2 137
ranks 3 pretrain lm.textproto $longer || fail "after the signals: $(cat err)"
same long-one 00000080

# Ranks that differ are refused by name, and leave nothing.
run=other
mpirun -n 2 sh -c '"$0" "$@" --set seed=$((1 + ${OMPI_COMM_WORLD_RANK:-$PMI_RANK}))' \
  "$mpi_program" pretrain lm.textproto --set output.directory=$run > out 2> err < /dev/null && fail "another seed is accepted"
grep -q 'rank 1 on .*: the spec: "seed: 2": expected "seed: 1" as on rank 0' err || fail "$(cat err)"
[ ! -e $run ] || fail "a refused run left a folder"
mpirun -n 2 "$mpi_program" vocab > out 2> err < /dev/null && fail "vocab is accepted"
grep -q 'expected pretrain, finetune or evaluate' err || fail "$(cat err)"
