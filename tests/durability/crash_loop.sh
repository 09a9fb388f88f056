#!/usr/bin/env bash
# crash_loop.sh [N]: kills runs of a tiny model, of all kinds of tiny.sh in turn, with SIGKILL at N random
# instants (default 20). After each kill the newest announced checkpoint must verify. Each run is
# restarted until it ends, and must end with the bits and the output of a run that was never killed. The
# number of threads changes with each start. Environment: CLOZE, the program (build/cloze).
. "$(dirname "$0")/tiny.sh"
N=${1:-20}
read -r -a all <<< "$kinds"
make_reference "${all[@]}"

killed=0 runs=0 saved=0
while [ $killed -lt "$N" ]; do
  kind=${all[runs % ${#all[@]}]}
  seconds=$(cat "$WORK/seconds-$kind")
  rm -rf crash && mkdir crash && cd crash || exit 2
  while :; do
    (OMP_NUM_THREADS=$((1 + (killed % 4 == 3))) run "$kind") &
    pid=$!
    if [ $killed -lt "$N" ]; then
      sleep "$(random "$(awk -v s="$seconds" 'BEGIN { print 0.8 * s }')")"
      kill -KILL $pid 2> /dev/null
    fi
    wait $pid 2> /dev/null
    code=$?
    [ $code -eq 137 ] || break
    killed=$((killed + 1))
    said=$(announced) found=$(newest "$(announced_run)")
    [ "$found" -ge "$said" ] || fail "kill $killed: step $said was announced, $found is there"
    [ "$said" -lt 0 ] || saved=$((saved + 1))
  done
  [ $code -eq 0 ] || fail "$kind after kill $killed: exit $code: $(tail -n 3 err)"
  [ "$(bits)" = "$(cat "$WORK/bits-$kind")" ] || fail "$kind after kill $killed: other bits"
  ls -d run*.tmp-* run/*.tmp-* run/*/*.tmp-* 2> /dev/null && fail "leftovers"
  runs=$((runs + 1))
  cd "$WORK" || exit 2
done
echo "$killed kills ($saved with a checkpoint announced), $runs runs ended with the same bits, 0 violations"
