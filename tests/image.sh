#!/usr/bin/env bash
# image.sh [--root DIR] DIST: builds the image of the Dockerfile from the downloads in DIST, which tools/package/tarball.sh made, with
# buildah on a base of debootstrap, and runs it: not as root, a training in /work, the server. Exit: 0 passed, 1 failed,
# 77 not possible on this machine. Needs root, buildah, debootstrap and a network.
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
minutes=${CLOZE_LIMIT_MINUTES:-30} root=${TMPDIR:-/tmp} keep=no
[ "${1:-}" = --root ] && { root=${2:?"--root needs a folder"}; shift 2; }
dist=$(realpath "${1:?usage: image.sh [--root DIR] DIST}") || exit 1
source "$here/tests/trees.sh"
command -v buildah > /dev/null || skip "buildah is not installed"
make_root image
source "$here/tests/steps.sh"
source "$here/tests/await.sh"
# Storage of its own; no images or containers are left on the machine.
storage() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }

base() {
  local container
  make_base bookworm "$work/base" && run_in_base "apt-get install -y -q --no-install-recommends zstd" || return 1
  container=$(storage from scratch) && storage copy -q "$container" "$work/base" / > /dev/null && storage commit -q "$container" base > /dev/null
}
run_in_base() { mkdir -p "$work/base/cloze" && run_in "$work/base" "$1"; }

image() {
  git clone --quiet "$here" "$work/context" && mkdir "$work/context/dist" && cp "$dist"/cloze-*.tar.zst "$work/context/dist/" || return 1
  storage build --isolation chroot --build-arg BASE=localhost/base -t cloze "$work/context"
}

run_image() {
  local container
  mkdir -m 777 "$work/data" && awk 'BEGIN { print "text,label"
    for (i = 0; i < 600; ++i) print "a film " (i % 2 ? "warm,good" : "dull,bad") }' > "$work/data/data.csv"
  printf '%s\n' 'model { encoder { preset: TINY } }' 'sequence_classification {}' 'train { files: "data.csv" format: CSV }' 'output { directory: "run" }' > "$work/data/s.textproto"
  container=$(storage from localhost/cloze) || return 1
  local run=(storage run --isolation chroot -v "$work/data:/work" "$container" /bin/cloze)
  "${run[@]}" version && "${run[@]}" finetune s.textproto && "${run[@]}" predict --model run --out p.csv data.csv &&
    [ "$(wc -l < "$work/data/p.csv")" -eq 601 ] && [ "$(stat -c %u "$work/data/p.csv")" -eq 65534 ] || return 1
  "${run[@]:0:${#run[@]}-1}" /cloze-serve/bin/cloze-serve --model run --listen unix:socket &
  await test -S "$work/data/socket"
  curl -sf --unix-socket "$work/data/socket" http://localhost/predict -d '{"inputs": "a film warm"}'
  local status=$?
  kill $!
  return $status
}

step base base && step image image && step "run" run_image
exit $failed
