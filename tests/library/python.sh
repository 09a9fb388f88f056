#!/usr/bin/env bash
# python.sh CLOZE LIBCLOZE: runs python_test.py on small models. 77 without python3. CLOZE_PYTHON: the interpreter; default: the system's.
set -euo pipefail
cloze=$(realpath "$1")
export CLOZE_LIBRARY CLOZE_PROGRAM=$cloze PYTHONDONTWRITEBYTECODE=1 OMP_WAIT_POLICY=passive
CLOZE_LIBRARY=$(realpath "$2")
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${CLOZE_PYTHON:-$([ -x /usr/bin/python3 ] && echo /usr/bin/python3 || echo python3)}
command -v "$python" > /dev/null || { echo "skipped: no $python"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
. "$root/tests/library/model.sh"
PYTHONPATH=$root/tools/library/python "$python" "$root/tests/library/python_test.py" "${@:3}"
