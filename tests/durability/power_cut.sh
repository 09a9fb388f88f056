#!/usr/bin/env bash
# power_cut.sh [N]: cuts the power of a file system N times (default 3) at random instants of a run on it,
# on ext4 and on XFS. The file system is a loop mount and is stopped by the shutdown ioctl; half of the
# times its log in memory is lost. After mounting it again, the newest announced checkpoint must verify, the
# model of a finished run must be sound, and each run must end with the bits of an undisturbed run. Needs
# root and loop devices (otherwise exits with 77). Environment: CLOZE, SHUTDOWN_FS.
. "$(dirname "$0")/tiny.sh"
N=${1:-3}
SHUTDOWN_FS=$(realpath "${SHUTDOWN_FS:-$(dirname "$CLOZE")/tests/shutdown_fs}") || exit 2
skip() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "needs root"
mkdir mnt
cleanup() { umount -l "$WORK/mnt" 2> /dev/null; }
make_reference

# cut TYPE OPTIONS: cuts the power N times on a file system of that type.
cut_power() {
  local cuts=0 runs=0 type=$1 kind pid how said found code
  rm -f image
  truncate -s 400M image
  case $type in
    ext4) mkfs.ext4 -q image || return 77 ;;
    xfs) mkfs.xfs -q image || return 77 ;;
  esac
  mount -o "loop$2" image mnt 2> mount.err || { cat mount.err; return 77; }
  : > err
  : > out
  while [ $cuts -lt "$N" ] || [ -d mnt/run ]; do
    kind=$([ $((runs % 2)) -eq 0 ] && echo pretrain || echo finetune)
    "$CLOZE" $kind "$kind.textproto" --set output.directory="$WORK/mnt/run" >> out 2>> err &
    pid=$!
    if [ $cuts -ge "$N" ]; then
      wait $pid || fail "$type: exit $?: $(tail -n 3 err)"
      code=0
    else
      sleep "$(random "$(awk -v s="$seconds" 'BEGIN { print 0.8 * s }')")"
      how=$([ $((cuts % 2)) -eq 0 ] && echo drop || echo log)
      said=$(announced)  # before the cut: afterwards fsync of a directory on XFS may report success
      "$SHUTDOWN_FS" mnt $how || fail "no shutdown of $type"
      cuts=$((cuts + 1))
      kill -KILL $pid 2> /dev/null
      wait $pid 2> /dev/null
      code=$?
      umount mnt || fail "no umount"
      mount -o "loop$2" image mnt || fail "$type, cut $cuts: cannot be mounted again"
      found=$(cd mnt && newest)
      [ "$found" -ge "$said" ] || fail "$type, cut $cuts ($how): step $said was announced, $found is there"
    fi
    if [ $code -eq 0 ]; then  # the run had finished before the cut
      "$CLOZE" verify mnt/run > /dev/null || fail "$type, cut $cuts: the finished run is not sound"
      [ "$(cd mnt && sed "s,$WORK/mnt/run,run," ../out > out && bits)" = "$(cat "bits-$kind")" ] || fail "$type, cut $cuts: other bits"
      rm -rf mnt/run
      sync
      : > err
      : > out
      runs=$((runs + 1))
    elif [ $code -ne 137 ] && ! grep -q 'Input/output error\|Read-only' err; then
      fail "$type, cut $cuts: exit $code: $(tail -n 3 err)"
    fi
  done
  umount mnt
  echo "$type$2: $cuts cuts, $runs runs ended with the same bits, 0 violations"
}

done=0
for type in ext4 xfs; do
  command -v mkfs.$type > /dev/null || { echo "no mkfs.$type"; continue; }
  if cut_power $type ""; then done=$((done + 1)); elif [ $? -ne 77 ]; then exit 1; fi
done
[ $done -gt 0 ] || skip "no loop mount"
