#!/usr/bin/env bash
# wheel.sh CLOZE BUILD: makes the wheel twice, with the same bytes, installs it into an empty folder and answers with the
# libraries inside. 77 without patchelf.
set -euo pipefail
cloze=$(realpath "$1") build=$(realpath "$2")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "wheel.sh: $*" >&2; exit 1; }
"$root/tools/package/wheel.sh" "$build" one || exit $?
"$root/tools/package/wheel.sh" "$build" two > /dev/null
cmp one/*.whl two/*.whl || fail "other bytes the second time"
. "$root/tests/library/model.sh"
python=$([ -x /usr/bin/python3 ] && echo /usr/bin/python3 || echo python3)
if "$python" -m pip --version > /dev/null 2>&1; then
  "$python" -m pip install -q --no-index --no-deps --target installed one/*.whl  # checks RECORD
else
  "$python" -m zipfile -e one/*.whl installed
fi
PYTHONPATH=installed "$python" - <<< '
import cloze
print(cloze.load("model").predict("card")["label"])
maps = open("/proc/self/maps").read()
for library in ("libcloze", "libdnnl", "libprotobuf", "libabsl_strings"):
    assert f"installed/cloze.libs/{library}.so" in maps, library' > found
[ "$("$cloze" predict --model model <<< card | sed -nE 's/^\{"label": "([a-z]+)".*/\1/p')" = "$(cat found)" ] || fail "answer: $(cat found)"
echo "wheel: ok"
