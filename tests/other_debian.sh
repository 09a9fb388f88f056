#!/usr/bin/env bash
# other_debian.sh [--root DIR]: builds a clone of HEAD on the other Debian than this machine's (13 on Debian 12, else 12)
# and runs the functional tests there. Prints one line per step. Exit: 0 all passed, 1 something failed, 77 not
# possible on this machine, for example because no package mirror answers.
#
# The tree of the other Debian is kept in DIR (default: ~/.cache/cloze/trees; some 2 GB) for the next run; a tree that
# was not finished is made again. $CLOZE_LIMIT_MINUTES (30) limits each step. Needs root, debootstrap and a network.
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
minutes=${CLOZE_LIMIT_MINUTES:-30} root=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/cloze/trees
while [ $# -gt 0 ]; do
  case $1 in
    --root) root=${2:?"--root needs a folder"}; shift ;;
    *) echo "usage: other_debian.sh [--root DIR]" >&2; exit 2 ;;
  esac
  shift
done
source "$here/tests/trees.sh"

other=trixie
[ "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" = trixie ] && other=bookworm
mkdir -p "$root" || exit 1
tree=$root/$other log=$root/$other.log
exec 9> "$root/$other.lock"
flock 9

prefix="$other: "
source "$here/tests/steps.sh"

# Makes the tree unless an earlier run has finished it.
tree_of_other() {
  [ -e "$tree/finished" ] && return
  rm -rf --one-file-system "$tree" && mkdir -m 755 "$tree" && make_base "$other" "$tree" && touch "$tree/finished"
}

mirror_answers "$other" || skip "no package mirror answers for $other"
step tree tree_of_other || exit 1
rm -rf --one-file-system "$tree/cloze"
step clone git clone --quiet "$here" "$tree/cloze" || exit 1
step packages run_in "$tree" "tools/setup.sh" || exit 1
step build run_in "$tree" "cmake --preset release && cmake --build build --target cloze libcloze cloze-serve e2e_test" || exit 1
step tests run_in "$tree" "build/tests/e2e_test && tests/e2e/readme.sh build/cloze" || exit 1
