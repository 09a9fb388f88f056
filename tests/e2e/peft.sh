#!/usr/bin/env bash
# peft.sh CLOZE: checks that a LoRA run of Cloze gives in transformers what PEFT's formula gives, and that an
# adapter written by Python gives the same numbers in Cloze. If PEFT is installed, compares with it too. Exits
# with 77 (skipped) if Python has no transformers. CLOZE_PYTHON, CLOZE_PYTHON_WORK, CLOZE_PYTHON_SEES: see
# transformers.sh.
set -euo pipefail
cloze=$1
here=$(cd "$(dirname "$0")" && pwd)
python=${CLOZE_PYTHON:-python3}
$python -c 'import torch, transformers, safetensors' 2> /dev/null || { echo "skipped: no transformers in $python"; exit 77; }
work=${CLOZE_PYTHON_WORK:-$(mktemp -d)}
sees=${CLOZE_PYTHON_SEES:-$work}
[ -n "${CLOZE_PYTHON_WORK:-}" ] || trap 'rm -rf "$work"' EXIT

printf 'The good film was a great joy to see.\n\nThis bad movie is a dull waste of time.\n\n%.0s' $(seq 40) > "$work/text.txt"
{ printf 'text\tlabel\n'; printf 'a great film\tpositive\na dull movie\tnegative\nso so\tneutral\n%.0s' $(seq 20); } > "$work/classes.tsv"
printf 'The film was dull.\nA great, great joy!\nx\n' > "$work/sentences.txt"
"$cloze" vocab --text "$work/text.txt" --size 120 --out "$work/vocab" 2> /dev/null
for norm in post pre; do
  train() {  # command, name, data, model and task
    printf '%s train { files: "%s" } batch { tokens: 256 } optimizer { learning_rate: 0.01 } schedule { steps: 20 } output { directory: "%s" }\n' \
      "$4" "$work/$3" "$work/$norm-$2" > "$work/$norm-$2.textproto"
    "$cloze" "$1" "$work/$norm-$2.textproto" > /dev/null 2>&1
  }
  train pretrain base text.txt "model { tokenizer: \"$work/vocab\" encoder { preset: CUSTOM layers: 2 hidden: 48 heads: 3 intermediate: 96
    max_positions: 32 norm: ${norm^^} } } masked_lm { max_tokens: 24 }"
  start="model { start_from: \"$work/$norm-base\" } sequence_classification { max_tokens: 24 }"
  train finetune default classes.tsv "$start trainable { lora { rank: 4 } }"
  train finetune every classes.tsv "$start trainable { lora { rank: 3 alpha: 5 dropout: 0.2 rslora: true embeddings: true
    targets: [QUERY, KEY, VALUE, ATTENTION_OUTPUT, INTERMEDIATE, OUTPUT] } }"
  train finetune output classes.tsv "$start trainable { lora { rank: 2 targets: [OUTPUT] } }"
  for name in default every output; do
    run=$work/$norm-$name
    "$cloze" merge --adapter "$run" --out "$run-merged" > /dev/null
    "$cloze" tokenize --model "$run" < "$work/sentences.txt" > "$run.ids.jsonl"
    "$cloze" predict --compute f32 --model "$run" < "$work/sentences.txt" > "$run.out.jsonl"
    "$cloze" predict --compute f32 --model "$run-merged" < "$work/sentences.txt" > "$run-merged.out.jsonl"
  done
done
cp "$here/peft_check.py" "$work/"
$python "$sees/peft_check.py" "$sees"
"$cloze" predict --compute f32 --model "$work/post-base" --adapter "$work/python" < "$work/sentences.txt" > "$work/python.out.jsonl"
$python "$sees/peft_check.py" "$sees" python
