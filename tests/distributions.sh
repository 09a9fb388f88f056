#!/usr/bin/env bash
# distributions.sh [--root DIR] [--keep] [bookworm] [trixie] [sid]: runs the two commands at the top of README.md,
# quickstart and tests, on fresh trees of Debian 12, Debian 13 and sid (default: all three). debootstrap makes
# the trees, from the mirror that this machine's apt uses; each gets a clone of HEAD. Prints one line per distribution:
# versions, exit code and seconds of quickstart, and what the tests ended with. Exit: 0 all passed, 1 something
# failed, 77 not possible on this machine.
#
# Trees and logs go to a new folder in DIR (default: $TMPDIR), some 5 GB per tree. They are removed at the end,
# except with --keep. $CLOZE_PRETRAIN_STEPS and $CLOZE_FINETUNE_STEPS shorten quickstart;
# $CLOZE_LIMIT_MINUTES (120) limits each command. Needs root, debootstrap and a network.
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
minutes=${CLOZE_LIMIT_MINUTES:-120}
root=${TMPDIR:-/tmp} keep=no names=()

while [ $# -gt 0 ]; do
  case $1 in
    --root) root=${2:?"--root needs a folder"}; shift ;;
    --keep) keep=yes ;;
    bookworm | trixie | sid) names+=("$1") ;;
    *) echo "usage: distributions.sh [--root DIR] [--keep] [bookworm] [trixie] [sid]" >&2; exit 2 ;;
  esac
  shift
done
[ ${#names[@]} -gt 0 ] || names=(bookworm trixie sid)

source "$here/tests/trees.sh"

# README's commands: the indented lines that begin with tools/ and have a comment.
mapfile -t commands < <(sed -n 's,^    \(tools/[^ ]*\) *#.*,\1,p' "$here/README.md")
[ "${commands[*]}" = "tools/quickstart.sh tools/test.sh" ] || { echo "README.md has other commands: ${commands[*]}" >&2; exit 1; }

make_root distributions

# Prints the version of a package without epoch and revision. Arguments: folder, package.
version() {
  local all
  all=$(dpkg-query --admindir="$1/var/lib/dpkg" -W -f='${Version}' "$2" 2> /dev/null) || all=none
  sed -E 's/^[0-9]+://; s/[-+].*//' <<< "$all"
}

# The package g++ only names a major version for certain; the compiler knows its own. Argument: folder.
compiler() { chroot "$1" g++ -dumpfullversion 2> /dev/null || echo none; }

row() { printf '%-9s %-12s %-8s %-8s %-14s %-10s %-16s %s\n' "$@"; }

# Runs both commands on a distribution and prints its line. Argument: its name.
distribution() {
  local name=$1 tree=$work/$1 log=$work/$1.log began code quickstart tests release status=0
  mkdir -m 755 "$tree"
  if make_tree "$name" "$tree" > "$log" 2>&1; then
    began=$(date +%s)
    run_in "$tree" "${commands[0]}" >> "$log" 2>&1
    code=$?
    quickstart="$code in $(($(date +%s) - began)) s"
    [ $code -eq 0 ] || { status=1; tail -n 40 "$log" >&2; }
    run_in "$tree" "${commands[1]}" > "$work/$name-tests.log" 2>&1
    code=$?
    tests=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$work/$name-tests.log" | tail -n 1)
    [ $code -eq 0 ] || { status=1; grep -E 'error:|FAILED|Failed|Failure' "$work/$name-tests.log" | head -n 60 >&2; }
    release=$(cat "$tree/etc/debian_version")
  else
    tail -n 20 "$log" >&2
    status=1 quickstart="no tree" code=-
  fi
  row "$name" "${release:--}" "$(compiler "$tree")" "$(version "$tree" libdnnl-dev)" "$(version "$tree" libabsl-dev)" \
    "$(version "$tree" libprotobuf-dev)" "$quickstart" "${tests:-no result, exit $code}"
  [ "$keep" = yes ] || rm -rf --one-file-system "$tree"
  return $status
}

row name release g++ oneDNN Abseil protobuf quickstart tests
failed=0
for name in "${names[@]}"; do distribution "$name" || failed=1; done
exit $failed
