#!/usr/bin/env bash
# peers.sh CLOZE CLOZE_SERVE MODEL TEXTS [GGUF]: what 64 clients wait for vectors of the lines of TEXTS: from cloze-serve, from ONNX
# Runtime behind FastAPI (fastapi_server.py; int8), and from llama.cpp's server with the same model as GGUF. Each runs
# alone, three times in turn; prints requests per second, median and 99th percentile.
# REQUESTS (20000), ROUNDS (3): shorter or longer. $LOAD_CLIENT: tests/serve/load_client, built. CLOZE_PYTHON, CLOZE_PYTHON_WORK, CLOZE_PYTHON_SEES: see
# tests/e2e/transformers.sh; the interpreter has fastapi, uvicorn, onnxruntime and tokenizers. CLOZE_LLAMA: its server
# (default: llama-server), which sees GGUF. Skipped (77) without them.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
source "$here/../await.sh"
cloze=$(realpath "${1:?usage: peers.sh CLOZE CLOZE_SERVE MODEL TEXTS [GGUF]}") serve=$(realpath "${2:?}") model=$(realpath "${3:?}")
texts=$(realpath "${4:?}") gguf=${5:-} python=${CLOZE_PYTHON:-python3} llama=${CLOZE_LLAMA:-llama-server}
client=$(realpath "${LOAD_CLIENT:-$(dirname "$serve")/tests/load_client}")
$python -c 'import fastapi, onnxruntime, tokenizers, uvicorn' 2> /dev/null || { echo "skipped: no fastapi and onnxruntime in $python"; exit 77; }
work=${CLOZE_PYTHON_WORK:-$(mktemp -d)}
sees=${CLOZE_PYTHON_SEES:-$work}
requests=${REQUESTS:-20000} pid=
trap 'kill "$pid" 2> /dev/null || true; [ -n "${CLOZE_PYTHON_WORK:-}" ] || rm -rf "$work"' EXIT
cd "$work"

rm -rf onnx
"$cloze" export --model "$model" --out onnx > export.log 2>&1
cp "$here/fastapi_server.py" .
$python -c 'import sys
import onnx  # first: copies of ONNX collide otherwise
from onnxruntime.quantization import quantize_dynamic
quantize_dynamic(onnx.load(sys.argv[1] + "/onnx/model.onnx"), sys.argv[1] + "/int8.onnx")' "$sees" > quantize.log 2>&1
for member in inputs input; do
  python3 -c 'import json, sys
for line in open(sys.argv[1], encoding="utf-8"): print(json.dumps({sys.argv[2]: line.rstrip("\n")}))' "$texts" $member > bodies.$member
done

# Starts a server and measures it. Arguments: name, path, bodies, command with "PORT" for the port.
measure() {
  local name=$1 path=$2 bodies=$3 port=$((20000 + RANDOM % 10000))
  shift 3
  "${@//PORT/$port}" > server.log 2>&1 &
  pid=$!
  await curl -sf -o answer -d "$(head -n 1 "$bodies")" "http://127.0.0.1:$port$path" ||
    { echo "$name does not answer" >&2; tail -n 5 server.log >&2; exit 1; }
  "$client" "$port" 64 $((requests / 4)) "$path" "$bodies" > /dev/null || true  # answers of other programs depend on their company
  echo "$name: $("$client" "$port" 64 "$requests" "$path" "$bodies" || true)"
  kill "$pid" && wait "$pid" 2> /dev/null || true
  rm -f answer
}

for _ in $(seq "${ROUNDS:-3}"); do
  measure "cloze-serve, int8" /embed bodies.inputs "$serve" --model "$model" --compute int8 --listen 127.0.0.1:PORT --quiet
  measure "cloze-serve, f32" /embed bodies.inputs "$serve" --model "$model" --listen 127.0.0.1:PORT --quiet
  measure "ONNX Runtime, int8" /embed bodies.inputs $python "$sees/fastapi_server.py" "$sees/int8.onnx" "$sees/onnx/tokenizer.json" PORT
  [ -z "$gguf" ] || measure "llama.cpp" /v1/embeddings bodies.input $llama -m "$gguf" --embeddings --pooling mean -t 2 -np 64 -c 32768 -b 8192 -ub 8192 --host 127.0.0.1 --port PORT
done
