#!/usr/bin/env bash
# curves.sh TEXT [STEPS]: checks that speed does not cost quality. TEXT has one document per line. Trains a mini
# encoder in bf16, in f32 and, with the same initial weights, batches and rates, in PyTorch (f32), and
# compares the loss curves, smoothed over 100 steps. Dropout is 0, so they differ only by rounding.
# A second f32 run, with the kernels of another instruction set, shows how far rounding in the last bit
# drives two runs apart: little at a rate of 2e-4; at 5e-4 such differences grow tenfold in 30 steps, and any
# two runs are up to 0.08 nats apart while the loss falls.
# Fails if bf16 and f32 are ever more than 0.02 nats apart, or f32 and PyTorch more than 0.01. Without PyTorch
# checks only the first.
# CLOZE, BATCHES: the programs; CLOZE_PYTHON, CLOZE_PYTHON_WORK, CLOZE_PYTHON_SEES: see tests/e2e/transformers.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
text=${1:?usage: curves.sh TEXT [STEPS]} steps=${2:-2000}
cloze=${CLOZE:-$here/../../build/cloze} batches=${BATCHES:-$here/../../build/tests/batches}
python=${CLOZE_PYTHON:-python3}
work=${CLOZE_PYTHON_WORK:-$(mktemp -d)} sees=${CLOZE_PYTHON_SEES:-}
[ -n "$sees" ] || sees=$work
[ -n "${CLOZE_PYTHON_WORK:-}" ] || trap 'rm -rf "$work"' EXIT

"$cloze" vocab --text "$text" --size 8192 --out "$work/vocab" 2> /dev/null
cat > "$work/spec.textproto" << END
model {
  tokenizer: "$work/vocab"
  encoder { preset: MINI max_positions: 128 positions: SINUSOIDAL_START query_key_start: 2 initializer_range: 0.04 }
  dropout: 0
  attention_dropout: 0
}
masked_lm { max_tokens: 64 }
train { files: "$text" documents: LINE }
batch { tokens: 2048 }
optimizer { learning_rate: 2e-4 }
schedule { steps: $steps }
output { directory: "$work/run" log_every_steps: 1 checkpoint_every_steps: $steps cache_directory: "$work/cache" }
END
# Arguments: name of the curve, compute type, best instruction set.
train() {
  rm -rf "$work/run"
  CLOZE_MAX_ISA=$3 "$cloze" pretrain "$work/spec.textproto" --set "runtime.compute=$2" > /dev/null 2> "$work/$1.log"
  cp "$work/run/log.jsonl" "$work/$1.jsonl"
}
train f32 F32 amx
train f32_avx2 F32 avx2
train bf16 BF16 amx
if $python -c 'import torch, transformers' 2> /dev/null; then
  "$batches" "$work/spec.textproto" "$steps" "$work"
  cp "$here/curves.py" "$work/"
  $python "$sees/curves.py" "$sees" > "$work/torch.jsonl"
else
  echo "no PyTorch in $python: f32 is compared with bf16 only" >&2
fi

# Compares the means of two curves over 100 steps. Arguments: name, log, name, log, bound of their distance.
compare() {
  local numbers='s/.*"loss": *\([-+0-9.e]*\).*/\1/p'
  paste <(grep '"step"' "$2" | sed -n "$numbers") <(grep '"step"' "$4" | sed -n "$numbers") | awk -v a="$1" -v b="$3" -v bound="$5" '
    { d = $1 - $2; sum += d; past[NR] = d; n = NR
      if (NR > 100) sum -= past[NR - 100]
      if (NR >= 100) { x = sum / 100; if (x < 0) x = -x; if (x > most) { most = x; at = NR } } ; last1 = $1; last2 = $2 }
    END {
      printf "%s and %s over %d steps: at most %.5f nats apart (step %d; bound %s); last losses %.4f and %.4f\n", a, b, n, most, at, bound, last1, last2
      exit !(n >= 100 && most <= bound)
    }'
}
compare f32_avx2 "$work/f32_avx2.jsonl" f32 "$work/f32.jsonl" none || true
compare bf16 "$work/bf16.jsonl" f32_avx2 "$work/f32_avx2.jsonl" none || true
compare bf16 "$work/bf16.jsonl" f32 "$work/f32.jsonl" 0.02
[ ! -s "$work/torch.jsonl" ] || compare f32 "$work/f32.jsonl" PyTorch "$work/torch.jsonl" 0.01
