#!/usr/bin/env bash
# tarball.sh [--root DIR] [--again] TARBALL [TREE...]: tries the download of tools/package/tarball.sh. Checks what it holds, then
# runs it in an empty folder with /proc alone, and in fresh trees of Debian that have no library of ours (TREE: bullseye,
# bookworm, trixie, sid). --again: builds it a second time, from a clone in another place, and compares the bytes.
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
name=$(basename "$tarball" .tar.zst)

unpack() { mkdir -p "$1" && tar -C "$1" --zstd -xf "$tarball" && mv "$1/$name" "$1/cloze-program"; }

content() {
  (cd "$work/unpacked/cloze-program" && sha256sum --quiet -c SHA256SUMS && grep -q '"SPDX-2.3"' sbom.spdx.json &&
    [ -s share/man/man1/cloze-finetune.1.gz ] && [ -s tools/specs/sst2.textproto ] && [ -s docs/commands.md ] && [ -s licenses/oneDNN ]) || return 1
  ! readelf -d -l "$work/unpacked/cloze-program/bin/cloze" | grep -E 'NEEDED|INTERP' || return 1
  local kilobytes
  kilobytes=$(du -sk "$work/unpacked" | cut -f1)
  echo "unpacked: $((kilobytes / 1024)) MB"
  [ "$kilobytes" -le $((35 * 1024)) ]
}

same_bytes() {
  git clone --quiet "$here" "$work/clone" && "$work/clone/tools/package/tarball.sh" "$work/again" "$(dirname "$tarball")/onednn" &&
    cmp "$tarball" "$work/again/$name.tar.zst"
}

# A small training and its use, and the stored logits of other models, in a folder without anything else.
alone() {
  local tree=$work/alone cloze="/cloze-program/bin/cloze"
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
  run $cloze report run --out r.html && run $cloze bench start
END
  unshare --mount --pid --fork --kill-child bash "$work/alone.sh" && [ "$(wc -l < "$tree/p.csv")" -eq 2001 ]
}

# Emulated CPUs: one too old, one with the baseline's instructions.
cpus() {
  local cloze=$work/unpacked/cloze-program/bin/cloze error
  error=$(qemu-x86_64 -cpu core2duo "$cloze" version 2>&1 > /dev/null)
  [ $? -eq 69 ] && grep -q "^cloze: this CPU has no SSE4.2" <<< "$error" && qemu-x86_64 -cpu Nehalem "$cloze" version | grep baseline
}

# The commands of README in a tree of Debian.
in_tree() {
  local tree=$work/$1
  make_tree "$1" "$tree" && unpack "$tree" && run_in "$tree" "tests/e2e/readme.sh /cloze-program/bin/cloze"
}

step unpacked unpack "$work/unpacked" && step content content || exit 1
if command -v qemu-x86_64 > /dev/null; then step "old CPUs" cpus; else echo "old CPUs: skipped, qemu-user is not installed"; fi
step "empty folder" alone
[ $again = no ] || step "same bytes" same_bytes
for tree in "$@"; do
  if mirror_answers "$tree"; then step "$tree" in_tree "$tree"; else echo "$tree: skipped, no mirror has it"; fi
done
exit $failed
