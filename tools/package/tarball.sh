#!/usr/bin/env bash
# tarball.sh DIR [ONEDNN]: makes DIR/cloze-VERSION-linux-x86_64.tar.zst, which runs on any x86-64 Linux: a static
# program, man pages, completion, specs, pages, licences, a list of its parts (SPDX) and checksums. Commits that are
# built with the same packages give the same bytes. ONEDNN: where the static oneDNN is made or was made before
# (default: DIR/onednn). The build stays in DIR/build.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -ge 1 ] && [ $# -le 2 ] || { echo "usage: tarball.sh DIR [ONEDNN]" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
onednn=${2:-$out/onednn}
"$here/tools/setup.sh" dpkg-dev zstd
"$here/tools/package/onednn.sh" "$onednn"
onednn=$(cd "$onednn" && pwd)

version=$(sed -n 's/^project(cloze VERSION \([0-9.]*\).*/\1/p' "$here/CMakeLists.txt")
name=cloze-$version-linux-x86_64
stage=$out/$name
SOURCE_DATE_EPOCH=$(git -C "$here" log -1 --format=%ct 2> /dev/null || date -r "$here/CHANGELOG.md" +%s)
export SOURCE_DATE_EPOCH

echo "tarball.sh: compiles" >&2
{ cmake -S "$here" -B "$out/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCLOZE_STATIC=ON -DCLOZE_TESTS=OFF -DCLOZE_MPI=OFF \
    -DCLOZE_ONEDNN_ROOT="$onednn" -DCMAKE_CXX_FLAGS="-ffile-prefix-map=$here=. -ffile-prefix-map=$out/build=build" &&
  cmake --build "$out/build" --target cloze; } > "$out/build.log" 2>&1 || { tail -n 30 "$out/build.log" >&2; exit 1; }

rm -rf "$stage"
cmake --install "$out/build" --strip --prefix "$stage" > /dev/null
mkdir -p "$stage/tools" "$stage/licenses"
mv "$stage/share/cloze/specs" "$stage/tools/specs"
mv "$stage/share/doc/cloze/docs" "$stage/docs"
cp "$here"/{README.md,CHANGELOG.md,LICENSE,NOTICE} "$stage/"
rm -rf "$stage"/share/{cloze,doc,lintian}

# The parts, from the packages that the program was linked with: name, package, licence.
parts=(
  "glibc libc6-dev LGPL-2.1-or-later"
  "libstdc++ libstdc++-$(g++ -dumpversion)-dev GPL-3.0-or-later WITH GCC-exception-3.1"
  "libgomp libgcc-$(g++ -dumpversion)-dev GPL-3.0-or-later WITH GCC-exception-3.1"
  "protobuf libprotobuf-dev BSD-3-Clause"
  "abseil libabsl-dev Apache-2.0"
  "nlohmann-json nlohmann-json3-dev MIT"
  "CLI11 libcli11-dev BSD-3-Clause"
  "utf8proc libutf8proc-dev MIT AND Unicode-DFS-2015"
  "xxHash libxxhash-dev BSD-2-Clause"
  "zlib zlib1g-dev Zlib"
  "liblzma liblzma-dev 0BSD"
  "zstd libzstd-dev BSD-3-Clause")
cp "$onednn/LICENSE" "$stage/licenses/oneDNN"
cp "$onednn/THIRD-PARTY-PROGRAMS" "$stage/licenses/oneDNN-third-party"
for licence in GPL-3 LGPL-2.1 Apache-2.0; do cp "/usr/share/common-licenses/$licence" "$stage/licenses/"; done

# Prints a package of the SPDX document. Arguments: identifier, name, version, licence, more members.
spdx_package() {
  printf '    {"SPDXID": "SPDXRef-%s", "name": "%s", "versionInfo": "%s", "licenseDeclared": "%s", "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION", "downloadLocation": "NOASSERTION", "filesAnalyzed": false%s}' \
    "$1" "$2" "$3" "$4" "${5:-}"
}
{
  cat << END
{
  "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "$name",
  "documentNamespace": "urn:cloze:$name:$(sha256sum < "$stage/bin/cloze" | cut -c1-32)",
  "creationInfo": {"created": "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)", "creators": ["Tool: tools/package/tarball.sh"]},
  "packages": [
END
  spdx_package cloze cloze "$version" Apache-2.0 \
    ", \"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": \"$(sha256sum < "$stage/bin/cloze" | cut -c1-64)\"}]"
  relations='    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-cloze"}'
  parts+=("oneDNN - Apache-2.0")
  for part in "${parts[@]}"; do
    read -r part package licence <<< "$part"
    if [ "$package" = - ]; then
      found=$(sed -n 's/^version=//p' "$here/tools/package/onednn.sh" | cut -d' ' -f1)
    else
      cp "/usr/share/doc/$package/copyright" "$stage/licenses/$part"
      found=$(dpkg-query -W -f='${Version}' "$package")
    fi
    echo ,
    spdx_package "${part//+/}" "$part" "$found" "$licence"
    relations+=$',\n'"    {\"spdxElementId\": \"SPDXRef-cloze\", \"relationshipType\": \"STATIC_LINK\", \"relatedSpdxElement\": \"SPDXRef-${part//+/}\"}"
  done
  printf '\n  ],\n  "relationships": [\n%s\n  ]\n}\n' "$relations"
} > "$stage/sbom.spdx.json"

chmod -R u=rwX,go=rX "$stage"
(cd "$stage" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum > SHA256SUMS)
tar -C "$out" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -cf - "$name" |
  zstd -q -19 -T1 -f -o "$stage.tar.zst"
(cd "$out" && sha256sum "$name.tar.zst" > "$name.tar.zst.sha256")
echo "$stage.tar.zst"
