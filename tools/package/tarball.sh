#!/usr/bin/env bash
# tarball.sh DIR [PARTS]: makes the downloads DIR/NAME-VERSION-linux-x86_64.tar.zst, each with man pages or headers, pages,
# licences, a list of its parts (SPDX) and checksums. NAME:
#   cloze        the program, static: it runs on any x86-64 Linux
#   cloze-serve  the server, static, and its units
#   libcloze     the library for C, C++ and Python, with the libraries it needs; it wants a C library as new as here
# Commits that are built with the same packages give the same bytes. PARTS: where the static oneDNN and libmicrohttpd are
# made or were made before (default: DIR/parts). The build stays in DIR/build.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -ge 1 ] && [ $# -le 2 ] || { echo "usage: tarball.sh DIR [PARTS]" >&2; exit 2; }
mkdir -p "$1" "${2:-$1/parts}"
out=$(cd "$1" && pwd) parts=$(cd "${2:-$1/parts}" && pwd)
"$here/tools/setup.sh" dpkg-dev zstd patchelf
for part in onednn microhttpd; do "$here/tools/package/$part.sh" "$parts/$part"; done

version=$(sed -n 's/^project(cloze VERSION \([0-9.]*\).*/\1/p' "$here/CMakeLists.txt")
SOURCE_DATE_EPOCH=$(git -C "$here" log -1 --format=%ct 2> /dev/null || date -r "$here/CHANGELOG.md" +%s)
export SOURCE_DATE_EPOCH

echo "tarball.sh: compiles" >&2
{ cmake -S "$here" -B "$out/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCLOZE_STATIC=ON -DCLOZE_TESTS=OFF -DCLOZE_MPI=OFF \
    -DCLOZE_ONEDNN_ROOT="$parts/onednn" -DCLOZE_MICROHTTPD_ROOT="$parts/microhttpd" -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_CXX_FLAGS="-ffile-prefix-map=$here=. -ffile-prefix-map=$out/build=build" &&
  cmake --build "$out/build" --target cloze cloze-serve libcloze; } > "$out/build.log" 2>&1 || { tail -n 30 "$out/build.log" >&2; exit 1; }

# The contents of every download, from the packages that it was linked with: name, package, licence.
compiler=$(g++ -dumpversion)
contents=(
  "libstdc++ libstdc++-$compiler-dev GPL-3.0-or-later WITH GCC-exception-3.1"
  "libgomp libgcc-$compiler-dev GPL-3.0-or-later WITH GCC-exception-3.1"
  "protobuf libprotobuf-dev BSD-3-Clause"
  "abseil libabsl-dev Apache-2.0"
  "nlohmann-json nlohmann-json3-dev MIT"
  "utf8proc libutf8proc-dev MIT AND Unicode-DFS-2015"
  "xxHash libxxhash-dev BSD-2-Clause"
  "zlib zlib1g-dev Zlib"
  "liblzma liblzma-dev 0BSD"
  "zstd libzstd-dev BSD-3-Clause")
program=("glibc libc6-dev LGPL-2.1-or-later" "CLI11 libcli11-dev BSD-3-Clause")

# Prints a package of the SPDX document. Arguments: identifier, name, version, licence, more members.
spdx_package() {
  printf '    {"SPDXID": "SPDXRef-%s", "name": "%s", "versionInfo": "%s", "licenseDeclared": "%s", "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION", "downloadLocation": "NOASSERTION", "filesAnalyzed": false%s}' \
    "$1" "$2" "$3" "$4" "${5:-}"
}

# Writes licenses/ and sbom.spdx.json. Arguments: folder, name, its main file, contents.
describe() {
  local stage=$1 name=$2 sum entry part package licence found relations
  sum=$(sha256sum < "$stage/$3" | cut -c1-64)
  shift 3
  mkdir -p "$stage/licenses"
  for licence in GPL-3 LGPL-2.1 Apache-2.0; do cp "/usr/share/common-licenses/$licence" "$stage/licenses/"; done
  cat << END
{
  "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "$(basename "$stage")",
  "documentNamespace": "urn:cloze:$(basename "$stage"):${sum:0:32}",
  "creationInfo": {"created": "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)", "creators": ["Tool: tools/package/tarball.sh"]},
  "packages": [
END
  spdx_package "$name" "$name" "$version" Apache-2.0 ", \"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": \"$sum\"}]"
  relations="    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", \"relatedSpdxElement\": \"SPDXRef-$name\"}"
  for entry in "$@" "oneDNN onednn.sh Apache-2.0"; do
    read -r part package licence <<< "$entry"
    case $package in
      *.sh)
        cp -r "$parts/${package%.sh}/licenses" "$stage/licenses/$part"
        found=$(sed -n 's/^version=//p' "$here/tools/package/$package" | cut -d' ' -f1) ;;
      *)
        cp "/usr/share/doc/$package/copyright" "$stage/licenses/$part"
        found=$(dpkg-query -W -f='${Version}' "$package") ;;
    esac
    echo ,
    spdx_package "${part//+/}" "$part" "$found" "$licence"
    relations+=$',\n'"    {\"spdxElementId\": \"SPDXRef-$name\", \"relationshipType\": \"CONTAINS\", \"relatedSpdxElement\": \"SPDXRef-${part//+/}\"}"
  done
  printf '\n  ],\n  "relationships": [\n%s\n  ]\n}\n' "$relations"
}

# Starts the folder $stage of a download. Arguments: name, components of the installation.
begin() {
  stage=$out/$1-$version-linux-x86_64
  rm -rf "$stage"
  shift
  local component
  for component in "$@"; do cmake --install "$out/build" --strip --prefix "$stage" --component "$component" > /dev/null; done
  cp "$here"/{CHANGELOG.md,LICENSE,NOTICE} "$stage/"
}

# Completes $stage and packs it, in the background. Arguments: name, main file, contents.
packing=()
pack() {
  describe "$stage" "$@" > "$stage.json"
  mv "$stage.json" "$stage/sbom.spdx.json"
  rm -rf "$stage"/share/{cloze,doc,lintian}
  chmod -R u=rwX,go=rX "$stage"
  (cd "$stage" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum > SHA256SUMS)
  (
    cd "$out"
    name=$(basename "$stage")
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -cf - "$name" |
      zstd -q -19 -T1 -f -o "$name.tar.zst"
    sha256sum "$name.tar.zst" > "$name.tar.zst.sha256"
    echo "$out/$name.tar.zst"
  ) &
  packing+=($!)
}

begin cloze cloze
mkdir "$stage/tools"
mv "$stage/share/cloze/specs" "$stage/tools/specs"
mv "$stage/share/doc/cloze/docs" "$stage/docs"
cp "$here/README.md" "$stage/"
pack cloze bin/cloze "${contents[@]}" "${program[@]}"

begin cloze-serve cloze_serve
cp "$here/docs/serving.md" "$stage/README.md"
pack cloze-serve bin/cloze-serve "${contents[@]}" "${program[@]}" "libmicrohttpd microhttpd.sh LGPL-2.1-or-later"

begin libcloze libcloze0 libcloze_dev python3_cloze
"$here/tools/package/bundle.sh" "$stage/lib/libcloze.so.0" "$stage/lib/cloze" > /dev/null
cp "$here/docs/library.md" "$stage/README.md"
pack libcloze lib/libcloze.so.0 "${contents[@]}"
for pid in "${packing[@]}"; do wait "$pid"; done
