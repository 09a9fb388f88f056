#!/usr/bin/env bash
# release.sh [DIR]: makes and checks every artefact of a release from this checkout, and prints a table: the downloads for
# x86-64 Linux (program, server, library), the wheel, the image, and the Debian packages of this release of Debian. They stay in
# DIR (default: dist). What this machine cannot check (no root, no mirror) is told as skipped. Exit: 0 if nothing failed.
# Takes 20 to 25 minutes on 2 cores. That two builds give the same bytes: tests/tarball.sh --again.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
out=${1:-dist}
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
version=$(sed -n 's/^project(cloze VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
grep -q "^## $version" CHANGELOG.md || { echo "release.sh: CHANGELOG.md has no section \"## $version\"" >&2; exit 1; }
[ -z "$(git status --porcelain 2> /dev/null)" ] || echo "release.sh: files differ from the commit" >&2
tools/setup.sh dpkg-dev file zstd patchelf curl debootstrap buildah qemu-user || exit 1
table=() failed=0

# Runs a part and notes how it ended. Arguments: name, command.
part() {
  local name=$1 began status result
  began=$(date +%s)
  shift
  echo "== $name" >&2
  "$@" >&2
  status=$?
  case $status in
    0) result=ok ;;
    77) result=skipped ;;
    *) result=FAILED failed=1 ;;
  esac
  table+=("$(printf '%-36s %-8s %5d s' "$name" $result $(($(date +%s) - began)))")
  return $status
}

package() {
  cmake --preset release -DCLOZE_TESTS=OFF -DCLOZE_MPI=OFF -B "$out/build-deb" > "$out/deb.log" 2>&1 &&
    cmake --build "$out/build-deb" --target cloze libcloze cloze-serve >> "$out/deb.log" 2>&1 &&
    (cd "$out" && cpack --config build-deb/CPackConfig.cmake -G DEB >> deb.log 2>&1) || { tail -n 30 "$out/deb.log"; return 1; }
}

# Runs functions side by side: each leaves a core idle for much of its time. Arguments: their names.
beside() {
  local name pids=() pid
  for name in "$@"; do
    (
      table=() failed=0
      "$name"
      printf '%s\n' "${table[@]}" > "$out/$name.table"
      exit $failed
    ) &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  for name in "$@"; do mapfile -t -O ${#table[@]} table < "$out/$name.table"; done
}

trees() { part "downloads: unpacked in bare trees, ran" tests/tarball.sh "$out/cloze-$version-linux-x86_64.tar.zst" bullseye bookworm trixie sid; }
image() { part "image: built, ran" tests/image.sh "$out"; }
downloads() {
  part "downloads: built" tools/package/tarball.sh "$out" || return
  part "wheel: built" tools/package/wheel.sh "$out/build" "$out"
  beside trees image
}
packages() { part "Debian packages: built" package && part "Debian packages: installed, ran" tests/packages.sh --short "$out/build-deb"; }

beside downloads packages
printf '%s\n' "${table[@]}"
(cd "$out" && ls -l ./*.tar.zst ./*.deb ./*.whl 2> /dev/null | awk '{ printf "%s %.1f MB\n", $NF, $5 / 1e6 }')
exit $failed
