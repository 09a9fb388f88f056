#!/usr/bin/env bash
# conditions.sh: tests the conditions around a run: signals in each of its phases, a second process,
# directories that cannot be created or written, full disks, a stopped process. Prints which parts are
# skipped because they need root. Environment: CLOZE, the program (build/cloze).
. "$(dirname "$0")/tiny.sh"
make_reference
mkdir full
cleanup() { kill -KILL "${pid:-}" 2> /dev/null; umount -l "$WORK"/here/{mnt,run/log.jsonl} "$WORK"/{full,readonly,logs} 2> /dev/null; }

fresh() { cd "$WORK" && rm -rf here && mkdir here && cd here && : > err && : > out; }
start() { "$CLOZE" pretrain "$WORK/pretrain.textproto" "$@" >> out 2>> err & pid=$!; }
# Waits, at most 20 s, until a command succeeds. Arguments: the command.
until_ok() { for _ in $(seq 2000); do "$@" > /dev/null 2>&1 && return; sleep 0.01; done; fail "never: $*: $(tail -n 3 err)"; }
ends_with() {
  wait "$pid" 2> /dev/null
  local code=$?
  [ $code -eq "$1" ] || fail "$2: exit $code, $1 expected: $(tail -n 3 err)"
}
says() { grep -q -- "$1" err || fail "nothing says '$1': $(tail -n 3 err)"; }
same_bits() { [ "$(bits)" = "$(cat "$WORK/bits-pretrain")" ] || fail "$1: other bits"; }
ok() { echo "ok: $*"; }

# Starts a run that does not end by itself.
LONG="--set schedule.steps=1000000 --set evaluation.every_steps=1000000 --set output.checkpoint_every_steps=1000000"

for signal in TERM INT HUP; do
  fresh
  # shellcheck disable=SC2086
  start $LONG
  until_ok grep -q '^step 5/' err
  kill -$signal $pid
  ends_with 75 "SIG$signal"
  says '^saved run/step-'
  says 'stopping as soon as possible'
  says 'run the same command again'
  [ "$(announced)" = "$(newest)" ] || fail "SIG$signal: announced $(announced), there is $(newest)"
done
ok "SIGTERM, SIGINT and SIGHUP save, say so and end with 75"

# Limits of the system: a documented exit code and one line.
limited() {  # what is said, exit code, the limit, arguments of cloze
  local says=$1 code=$2 limit=$3
  shift 3
  fresh
  (eval "$limit" && exec "$CLOZE" "$@") >> out 2>> err
  local got=$?
  [ $got -eq "$code" ] || fail "$limit: exit $got, $code expected: $(tail -n 3 err)"
  says "$says"
}
limited 'the stack is limited to 64 kB' 77 'ulimit -s 64' predict --model "$WORK/straight-finetune/run" "$WORK/text.txt"
limited 'system error: Resource temporarily unavailable' 77 'ulimit -v 2000000' --threads 4096 predict --model "$WORK/straight-finetune/run" "$WORK/text.txt"
limited 'File too large' 74 'ulimit -f 50' pretrain "$WORK/pretrain.textproto"
ok "ulimit -s, -v and -f end with a documented code and say why"

fresh
sed "s,text.txt,long.txt," "$WORK/pretrain.textproto" > "$WORK/long.textproto"
for _ in $(seq 2000); do cat "$WORK/text.txt"; done > "$WORK/long.txt"
"$CLOZE" pretrain "$WORK/long.textproto" >> out 2>> err & pid=$!
until_ok compgen -G 'run/cache/*.tmp-*/tokens'
kill -TERM $pid
ends_with 75 "SIGTERM while tokenizing"
[ ! -e run ] || fail "SIGTERM while tokenizing left $(find run)"
ok "SIGTERM while tokenizing ends with 75 and leaves nothing"

fresh
sed -e 's,text.txt" max_examples: 40,long.txt" max_examples: 100000,' -e 's/every_steps: 6/every_steps: 3/' "$WORK/pretrain.textproto" > "$WORK/eval.textproto"
"$CLOZE" pretrain "$WORK/eval.textproto" --set output.log_every_steps=3 >> out 2>> err & pid=$!
until_ok grep -q '^step 3/' err  # step 3 is followed by an evaluation of 100,000 sequences
kill -TERM $pid
ends_with 75 "SIGTERM while evaluating"
says 'saved run/step-00000003'
ok "SIGTERM while evaluating saves and ends with 75"

fresh
start --set batch.tokens=4000000 --set output.log_every_steps=1 # a step takes seconds
until_ok grep -q '^step 1/' err
sleep 0.2 # the next step begins
kill -STOP $pid
kill -TERM $pid
kill -INT $pid # of the same request
kill -CONT $pid
until_ok grep -q 'stopping as soon as possible' err
sleep 0.6
kill -INT $pid
ends_with 130 "a later signal"
ok "a second signal within half a second is ignored, a later one ends the run at once"

fresh
start
until_ok grep -q '^step ' err
kill -STOP $pid
sleep 1
kill -CONT $pid
ends_with 0 "stopped and continued"
same_bits "stopped and continued"
ok "SIGSTOP and SIGCONT change nothing"

fresh
# shellcheck disable=SC2086
start $LONG
until_ok grep -q '^step 5/' err
"$CLOZE" pretrain "$WORK/pretrain.textproto" > second 2>&1
code=$?
[ $code -eq 73 ] || fail "a second process: exit $code"
grep -q 'another process is running in this directory' second || fail "a second process: $(cat second)"
kill -KILL $pid
wait $pid 2> /dev/null
start
ends_with 0 "after the first was killed"
same_bits "after the first was killed"
ok "a second process in the run directory ends with 73; after kill -9 of the first the next one runs"

fresh
echo x > file
ln -s nowhere link
for bad in file/run link/run file link; do
  start --set output.directory=$bad
  ends_with 73 "output.directory $bad"
done
[ "$(cat file)" = x ] && [ ! -e nowhere ] || fail "a wrong directory was touched"
start --set train.files=absent.txt --set output.directory=new/run
ends_with 66 "missing data"
[ ! -e new ] || fail "missing data left $(find new)"
ok "directories that cannot be made end with 73, missing data with 66, and nothing is left"

if [ "$(id -u)" -ne 0 ] || ! mount -t tmpfs -o size=16k tmpfs "$WORK/full" 2> /dev/null; then
  ok "full disks and read-only file systems left out: they need root"
  exit 0
fi
umount "$WORK/full"

fresh
mkdir "$WORK/readonly" && mount -t tmpfs -o ro tmpfs "$WORK/readonly"
start --set output.directory="$WORK/readonly/run"
ends_with 73 "a read-only file system"
start --set output.directory="$WORK/readonly"
ends_with 73 "a read-only directory"
says 'Read-only file system'
ok "a read-only file system ends with 73"

fresh
mkdir "$WORK/logs" run && mount -t tmpfs -o size=4k tmpfs "$WORK/logs"
head -c 4096 /dev/zero > "$WORK/logs/fill"
: > "$WORK/logs/log" 2> /dev/null
touch run/log.jsonl && mount --bind "$WORK/logs/log" run/log.jsonl || fail "no log on a full disk"
start --set output.log_every_steps=1
ends_with 0 "a log on a full disk"
says 'cannot write the log'
same_bits "a log on a full disk"
umount run/log.jsonl "$WORK/logs"
ok "a log on a full disk is given up; the run goes on"

# A disk with less and less space: the run exits with 74 or finishes, announced checkpoints exist, and
# with more space the run resumes.
for kb in 60 200 400 800 1400 1700 2000 2300 2600 3000; do
  fresh
  mount -t tmpfs -o size=${kb}k tmpfs "$WORK/full"
  start --set output.directory="$WORK/full/run"
  wait $pid
  code=$?
  said=$(announced) found=$(cd "$WORK/full" && newest)
  case $code in
    0) [ "$found" -eq 40 ] || fail "$kb kB: done, but the newest is $found" ;;
    74) says 'No space left\|MB free' ;;
    *) fail "$kb kB: exit $code: $(tail -n 3 err)" ;;
  esac
  [ "$found" -ge "$said" ] || fail "$kb kB: step $said was announced, $found is there"
  mount -o remount,size=100m "$WORK/full"
  start --set output.directory="$WORK/full/run"
  ends_with 0 "$kb kB, with more room"
  ln -s "$WORK/full/run" run
  sed -i "s,$WORK/full/run,run," out
  same_bits "$kb kB"
  umount "$WORK/full"
  ok "a disk of $kb kB: exit $code, step $found kept; with more room it ends with the same bits"
done

# A failing disk: a file system in a file that cannot grow, so that delayed writes are lost and fsync
# returns EIO.
if command -v mkfs.ext4 > /dev/null; then
  fresh
  mount -t tmpfs -o size=2600k tmpfs "$WORK/full"
  truncate -s 64M "$WORK/full/image"
  mkfs.ext4 -q -F -E lazy_itable_init=1,lazy_journal_init=1 -J size=4 "$WORK/full/image" && mkdir mnt ||
    fail "no file system on a small disk"
  if ! mount -o loop "$WORK/full/image" mnt; then
    ok "the rest is skipped: this system mounts no files"
    umount "$WORK/full"
    exit 0
  fi
  start --set output.directory=mnt/run
  wait $pid
  code=$?
  [ $code -eq 74 ] || fail "a failing disk: exit $code: $(tail -n 3 err)"
  says 'Input/output error\|Read-only file system'
  said=$(announced)
  mount -o remount,size=100m "$WORK/full"
  umount mnt && mount -o loop "$WORK/full/image" mnt || fail "the failed disk cannot be mounted again"
  found=$(cd mnt && newest)
  [ "$found" -ge "$said" ] || fail "a failing disk: step $said was announced, $found is there"
  start --set output.directory=mnt/run
  ends_with 0 "a disk that failed, repaired"
  ln -s mnt/run run
  sed -i "s,mnt/run,run," out
  same_bits "a disk that failed"
  umount mnt "$WORK/full"
  ok "a disk that fails: exit $code, step $found kept (announced: $said); repaired, it ends with the same bits"
fi
