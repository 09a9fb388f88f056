#!/usr/bin/env bash
# onnx.sh CLOZE: exports the reference models of each family, in f32 and int8, and compares ONNX Runtime's results with
# transformers'. Exits with 77 (skipped) if Python lacks either. CLOZE_PYTHON, CLOZE_PYTHON_WORK, CLOZE_PYTHON_SEES: see transformers.sh.
set -euo pipefail
cloze=$1
here=$(cd "$(dirname "$0")" && pwd)
python=${CLOZE_PYTHON:-python3}
$python -c 'import onnxruntime, torch, transformers' 2> /dev/null || { echo "skipped: no onnxruntime or transformers in $python"; exit 77; }
work=${CLOZE_PYTHON_WORK:-$(mktemp -d)}
sees=${CLOZE_PYTHON_SEES:-$work}
[ -n "${CLOZE_PYTHON_WORK:-}" ] || trap 'rm -rf "$work"' EXIT

folders=()
for config in "$here"/../golden/*/config.json; do
  name=$(basename "$(dirname "$config")")
  [ -f "$(dirname "$config")/model.safetensors" ] || continue
  grep -qE '"(gpt2|bart|marian|encoder-decoder)"' "$config" && continue  # decoders are not exported
  cp -r "$(dirname "$config")" "$work/$name"
  "$cloze" export --model "$work/$name" --out "$work/onnx-$name" > /dev/null
  "$cloze" export --int8 --model "$work/$name" --out "$work/onnx-$name-int8" > /dev/null
  folders+=("$sees/$name" "$sees/onnx-$name")
done
# An encoder without a head, with its vectors, and with the weights in a file of their own.
cp -r "$work/masked_lm" "$work/bare"
sed -i 's/BertForMaskedLM/BertModel/' "$work/bare/config.json"
"$cloze" export --model "$work/bare" --out "$work/onnx-bare" --pool mean --external-data > /dev/null
"$cloze" export --model "$work/bare" --out "$work/onnx-bare-int8" --pool mean --external-data --int8 > /dev/null
folders+=("$sees/bare" "$sees/onnx-bare")
# The program's own check, where it was built with ONNX Runtime.
if "$cloze" export --check --pool mean --model "$work/bare" --out "$work/onnx-checked" > /dev/null 2>&1; then
  for opset in 18 19 20 21 22 23; do
    "$cloze" export --check --opset $opset --pool mean --model "$work/bare" --out "$work/opset-$opset" > /dev/null
  done
  "$cloze" export --check --pool cls --model "$work/bare" --out "$work/checked-cls" > /dev/null
  for config in "$here"/../golden/*/config.json; do
    name=$(basename "$(dirname "$config")")
    [ -d "$work/onnx-$name" ] || continue
    "$cloze" export --check --model "$work/$name" --out "$work/checked-$name" > /dev/null
    "$cloze" export --check --int8 --model "$work/$name" --out "$work/checked-$name-int8" > /dev/null
  done
fi
cp "$here/onnx_check.py" "$work"
$python "$sees/onnx_check.py" "${folders[@]}"
