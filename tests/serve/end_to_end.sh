#!/usr/bin/env bash
# end_to_end.sh CLOZE CLOZE_SERVE: trains tiny models, serves them and compares every answer with that of the program, alone
# and among 16 clients; then everything that a client can do wrong. Skipped (77) without python3.
set -euo pipefail
command -v python3 > /dev/null || { echo "no python3"; exit 77; }
here=$(realpath "$(dirname "$0")")
cloze=$(realpath "${1:?usage: end_to_end.sh CLOZE CLOZE_SERVE}") serve=$(realpath "${2:?}")
source "$here/models.sh"
trap 'rm -rf "$work"' EXIT
make_models
python3 "$here/end_to_end.py" "$cloze" "$serve"
if command -v systemd-analyze > /dev/null; then
  # `verify` wants the program where the unit names it.
  sed "s|/usr/bin/cloze-serve|$serve|" "$here/../../tools/serve/cloze-serve.service" > cloze-serve.service
  cp "$here/../../tools/serve/cloze-serve.socket" .
  systemd-analyze verify --man=no ./cloze-serve.service ./cloze-serve.socket 2> units.log || true
  ! grep cloze-serve units.log || { echo "end_to_end.sh: wrong units" >&2; exit 1; }
fi
echo "serve: ok"
