#!/usr/bin/env bash
# wheel.sh BUILD DIR: makes DIR/cloze-VERSION-py3-none-linux_x86_64.whl from a build with libcloze: cloze.py and, in
# cloze.libs, the library with those that it needs and a bare system lacks. The same build gives the same bytes. The
# wheel runs where the C library is as new as here. Exit: 77 without patchelf or python3.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -eq 2 ] || { echo "usage: wheel.sh BUILD DIR" >&2; exit 2; }
for tool in patchelf python3; do
  command -v $tool > /dev/null || { echo "skipped: $tool is not installed (apt-get install $tool)"; exit 77; }
done
[ -e "$1/libcloze.so.0" ] || { echo "wheel.sh: $1/libcloze.so.0: not built (cmake --build $1 --target libcloze)" >&2; exit 1; }
version=$(sed -n 's/^project(cloze VERSION \([0-9.]*\).*/\1/p' "$here/CMakeLists.txt")
SOURCE_DATE_EPOCH=$(git -C "$here" log -1 --format=%ct 2> /dev/null || date -r "$here/CHANGELOG.md" +%s)
export SOURCE_DATE_EPOCH
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
info=$stage/cloze-$version.dist-info
mkdir -p "$2" "$stage/cloze.libs" "$info/licenses"
cp "$here/tools/library/python/cloze.py" "$stage/"
cp "$here/LICENSE" "$here/NOTICE" "$info/licenses/"
cp "$1/libcloze.so.0" "$stage/cloze.libs/"
"$here/tools/package/bundle.sh" "$stage/cloze.libs/libcloze.so.0" "$stage/cloze.libs" | while read -r package; do
  cp "/usr/share/doc/$package/copyright" "$info/licenses/$package"
done
onednn=$(sed -n 's/^CLOZE_ONEDNN_ROOT:PATH=//p' "$1/CMakeCache.txt")
[ -z "$onednn" ] || cp -r "$onednn/licenses" "$info/licenses/oneDNN"

printf 'Wheel-Version: 1.0\nGenerator: cloze\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n' > "$info/WHEEL"
cat > "$info/METADATA" << END
Metadata-Version: 2.1
Name: cloze
Version: $version
Summary: Classifiers, taggers, encoders and masked language models on CPUs
License: Apache-2.0
Requires-Python: >=3.9
Provides-Extra: arrays
Requires-Dist: numpy; extra == "arrays"
END
python3 - "$stage" "$2/cloze-$version-py3-none-linux_x86_64.whl" << 'END'
import base64, hashlib, os, sys, time, zipfile
stage, wheel = sys.argv[1:]
files = sorted(os.path.relpath(os.path.join(folder, name), stage) for folder, _, names in os.walk(stage) for name in names)
info = next(os.path.dirname(name) for name in files if name.endswith("/WHEEL"))
record, when = "", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
    def add(name, data):
        entry = zipfile.ZipInfo(name, when)
        entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (0o100755 if ".so" in name else 0o100644) << 16
        out.writestr(entry, data)
    for name in files:
        with open(os.path.join(stage, name), "rb") as file:
            data = file.read()
        add(name, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    add(info + "/RECORD", record + info + "/RECORD,,\n")
END
echo "$2/cloze-$version-py3-none-linux_x86_64.whl"
