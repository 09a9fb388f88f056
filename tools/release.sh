#!/usr/bin/env bash
# release.sh [DIR]: makes and checks every artefact of a release from this checkout, and prints a table: the download for
# x86-64 Linux, the image, and the Debian package of this release of Debian. They stay in DIR (default: dist). What this machine
# cannot check (no root, no mirror) is told as skipped. Exit: 0 if nothing failed. Takes 20 to 25 minutes on 2 cores.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
out=${1:-dist}
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
version=$(sed -n 's/^project(cloze VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
grep -q "^## $version" CHANGELOG.md || { echo "release.sh: CHANGELOG.md has no section \"## $version\"" >&2; exit 1; }
[ -z "$(git status --porcelain 2> /dev/null)" ] || echo "release.sh: files differ from the commit" >&2
tools/setup.sh dpkg-dev file zstd debootstrap buildah qemu-user || exit 1
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

# Prints its part of the table to standard output.
check_download() {
  table=()
  part "download: unpacked in bare trees, ran" tests/tarball.sh --again "$tarball" bullseye bookworm trixie sid
  part "image: built, ran" tests/image.sh "$tarball"
  printf '%s\n' "${table[@]}"
  exit $failed
}

# The checks of the download leave a core idle for half of their time; the package is built meanwhile.
tarball=$out/cloze-$version-linux-x86_64.tar.zst
checks=
if part "download: built" tools/package/tarball.sh "$out"; then
  (check_download) > "$out/checks" &
  checks=$!
fi
if part "Debian packages: built" package; then
  part "wheel: built" tools/package/wheel.sh "$out/build-deb" "$out"
  part "Debian packages: installed, ran" tests/packages.sh --short "$out/build-deb"
fi
[ -z "$checks" ] || wait "$checks" || failed=1
printf '%s\n' "${table[@]}"
[ -z "$checks" ] || cat "$out/checks"
(cd "$out" && ls -l ./*.tar.zst ./*.deb ./*.whl 2> /dev/null | awk '{ printf "%s %.1f MB\n", $NF, $5 / 1e6 }')
exit $failed
