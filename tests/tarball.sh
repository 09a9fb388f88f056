#!/usr/bin/env bash
# tarball.sh [--root DIR] [--again] TARBALL [TREE...]: tries the downloads of tools/package/tarball.sh: TARBALL, of the program,
# and those beside it, of server and library. Checks what they hold, then runs program and server in an empty folder
# with /proc alone, and all of them in fresh trees of Debian that have no library of ours (TREE: bullseye, bookworm,
# trixie, sid). --again: builds them a second time, from a clone in another place, and compares the bytes.
# Prints one line per step. Exit: 0 all passed, 1 something failed, 77 not possible on this machine. Needs root and,
# for the trees, debootstrap and a network.
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
minutes=${CLOZE_LIMIT_MINUTES:-30} root=${TMPDIR:-/tmp} keep=no again=no
while [ $# -gt 0 ]; do
  case $1 in
    --root) root=${2:?"--root needs a folder"}; shift ;;
    --again) again=yes ;;
    -*) echo "usage: tarball.sh [--root DIR] [--again] TARBALL [TREE...]" >&2; exit 2 ;;
    *) break ;;
  esac
  shift
done
tarball=$(realpath "${1:?usage: tarball.sh [--root DIR] [--again] TARBALL [TREE...]}") || exit 1
shift
source "$here/tests/trees.sh"
make_root tarball
source "$here/tests/steps.sh"
folder=$(dirname "$tarball")
tail=$(basename "$tarball") && tail=${tail#cloze-}  # of all names

# Unpacks the downloads into the folders cloze, cloze-serve and libcloze. Argument: where.
unpack() {
  local name
  mkdir -p "$1"
  for name in cloze cloze-serve libcloze; do
    tar -C "$1" --zstd -xf "$folder/$name-$tail" && mv "$1/$name-${tail%.tar.zst}" "$1/$name" || return 1
  done
}

content() {
  local name kilobytes
  for name in cloze cloze-serve libcloze; do
    (cd "$work/unpacked/$name" && sha256sum --quiet -c SHA256SUMS && grep -q '"SPDX-2.3"' sbom.spdx.json && [ -s licenses/oneDNN/LICENSE ] && [ -s README.md ]) || return 1
    kilobytes=$(du -sk "$work/unpacked/$name" | cut -f1)
    echo "$name: $((kilobytes / 1024)) MB"
    [ "$kilobytes" -le $((35 * 1024)) ] || return 1
  done
  cd "$work/unpacked" || return 1
  [ -s cloze/share/man/man1/cloze-finetune.1.gz ] && [ -s cloze/tools/specs/sst2.textproto ] && [ -s cloze/docs/commands.md ] &&
    [ -s cloze-serve/lib/systemd/system/cloze-serve.service ] && [ -s libcloze/include/cloze.h ] && [ -s libcloze/lib/python3/dist-packages/cloze.py ] &&
    ! readelf -d -l cloze/bin/cloze cloze-serve/bin/cloze-serve | grep -E 'NEEDED|INTERP'
}

same_bytes() {
  local name
  git clone --quiet "$here" "$work/clone" && "$work/clone/tools/package/tarball.sh" "$work/again" "$folder/parts" || return 1
  for name in cloze cloze-serve libcloze; do cmp "$folder/$name-$tail" "$work/again/$name-$tail" || return 1; done
}

# A small training and its use, and the stored logits of other models, in a folder without anything else.
alone() {
  local tree=$work/alone cloze="/cloze/bin/cloze"
  unpack "$tree" && mkdir -p "$tree/proc" "$tree/tmp" && cp -r "$here/tests/golden/release_0.1" "$tree/" || return 1
  awk 'BEGIN { srand(1); print "text,label"
    for (i = 0; i < 2000; ++i) { like = rand() < 0.5; print "a film " (like ? "warm" : "dull") " and number " i "," (like ? "good" : "bad") } }' > "$tree/data.csv"
  printf '%s\n' 'model { encoder { preset: TINY } }' 'sequence_classification {}' 'train { files: "data.csv" format: CSV }' 'output { directory: "run" }' > "$tree/s.textproto"
  cat > "$work/alone.sh" << END
mount -t proc proc $tree/proc && cd $tree || exit 1
run() { echo "+ \$*"; chroot "$tree" "\$@"; }
run $cloze version && run $cloze spec check s.textproto && run $cloze finetune s.textproto &&
  run $cloze predict --model run data.csv --out p.csv && run $cloze verify run &&
  for model in release_0.1/runs/[!l]*; do run $cloze verify \$model || exit 1; done &&
  run $cloze report run --out r.html && run $cloze bench start || exit 1
chroot "$tree" /cloze-serve/bin/cloze-serve --model run --listen unix:/socket &
for _ in \$(seq 100); do [ -S socket ] && break; sleep 0.1; done
curl -sf --unix-socket socket http://localhost/predict -d '{"inputs": "a warm film"}' && kill \$! && wait \$!
END
  unshare --mount --pid --fork --kill-child bash "$work/alone.sh" && [ "$(wc -l < "$tree/p.csv")" -eq 2001 ]
}

# Emulated CPUs: one too old, one with the baseline's instructions.
cpus() {
  local cloze=$work/unpacked/cloze/bin/cloze error
  error=$(qemu-x86_64 -cpu core2duo "$cloze" version 2>&1 > /dev/null)
  [ $? -eq 69 ] && grep -q "^cloze: this CPU has no SSE4.2" <<< "$error" && qemu-x86_64 -cpu Nehalem "$cloze" version | grep baseline
}

# The commands of README in a tree of Debian and, where the C library is as new as here, Python with the library.
in_tree() {
  local tree=$work/$1 python="apt-get update && apt-get install -y --no-install-recommends python3 &&
    tests/library/python.sh /downloads/cloze/bin/cloze /downloads/libcloze/lib/libcloze.so.0"
  [ "$1" != bullseye ] || python=true
  make_tree "$1" "$tree" && unpack "$tree/downloads" && run_in "$tree" "tests/e2e/readme.sh /downloads/cloze/bin/cloze && $python"
}

step unpacked unpack "$work/unpacked" && step content content || exit 1
if command -v qemu-x86_64 > /dev/null; then step "old CPUs" cpus; else echo "old CPUs: skipped, qemu-user is not installed"; fi
step "empty folder" alone
[ $again = no ] || step "same bytes" same_bytes
pids=()
for tree in "$@"; do
  if mirror_answers "$tree"; then
    log=$work/$tree.log step "$tree" in_tree "$tree" &
    pids+=($!)
  else
    echo "$tree: skipped, no mirror has it"
  fi
done
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
exit $failed
