#!/usr/bin/env bash
# peft.sh CLOZE: checks that LoRA runs of Cloze, of all families, give in transformers what PEFT's formula gives, and that an
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
"$cloze" vocab --kind bpe --text "$work/text.txt" --size 330 --out "$work/bpe" 2> /dev/null
cp "$here/transformers_check.py" "$here/peft_check.py" "$work/"
train() {  # command, name, data, model and task
  printf '%s train { files: "%s" } batch { tokens: 256 } optimizer { learning_rate: 0.01 } schedule { steps: 20 } output { directory: "%s" }\n' \
    "$4" "$work/$3" "$work/$base-$2" > "$work/$base-$2.textproto"
  "$cloze" "$1" "$work/$base-$2.textproto" > /dev/null 2>&1
}
adapters() {  # kinds
  start="model { start_from: \"$work/$base-base\" } sequence_classification { max_tokens: 24 }"
  for kind; do
    case $kind in
      default) lora="rank: 4" ;;
      every) lora="rank: 3 alpha: 5 dropout: 0.2 rslora: true embeddings: true
        targets: [QUERY, KEY, VALUE, ATTENTION_OUTPUT, INTERMEDIATE, OUTPUT]" ;;
      output) lora="rank: 2 targets: [OUTPUT]" ;;
    esac
    train finetune "$kind" classes.tsv "$start trainable { lora { $lora } }"
    run=$work/$base-$kind
    "$cloze" merge --adapter "$run" --out "$run-merged" > /dev/null
    "$cloze" tokenize --model "$run" < "$work/sentences.txt" > "$run.ids.jsonl"
    "$cloze" predict --compute f32 --model "$run" < "$work/sentences.txt" > "$run.out.jsonl"
    "$cloze" predict --compute f32 --model "$run-merged" < "$work/sentences.txt" > "$run-merged.out.jsonl"
  done
}
for base in post pre; do
  train pretrain base text.txt "model { tokenizer: \"$work/vocab\" encoder { preset: CUSTOM layers: 2 hidden: 48 heads: 3 intermediate: 96
    max_positions: 32 norm: ${base^^} } } masked_lm { max_tokens: 24 }"
  adapters default every output
done
# Other families, from folders written by transformers.
for family in mpnet:bpe distilbert:vocab electra:vocab albert-groups:vocab deberta-v2:vocab modernbert:vocab nomic_bert:vocab; do
  name=${family%:*} vocab=${family#*:} base=${family%%[-:]*}
  $python "$sees/transformers_check.py" "$sees" make "$name" "$vocab"
  mv "$work/$name-start" "$work/$base-base"
  cp "$work/$vocab/"* "$work/$base-base/"
  adapters default every
done
# GPT-2, whose folders hold linear layers transposed (fan_in_fan_out), with query, key and value in one.
base=gpt2
$python "$sees/transformers_check.py" "$sees" make gpt2 bpe
mv "$work/gpt2-start" "$work/gpt2-base"
cp "$work/bpe/"* "$work/gpt2-base/"
train pretrain lora text.txt "model { start_from: \"$work/gpt2-base\" } causal_lm { max_tokens: 24 }
  trainable { lora { rank: 3 targets: [QUERY, ATTENTION_OUTPUT, INTERMEDIATE, OUTPUT] } }"
"$cloze" tokenize --model "$work/gpt2-lora" < "$work/sentences.txt" > "$work/gpt2-lora.ids.jsonl"
"$cloze" encode --compute f32 --model "$work/gpt2-lora" --out "$work/gpt2-lora.hidden.safetensors" < "$work/sentences.txt"
$python "$sees/peft_check.py" "$sees"
"$cloze" predict --compute f32 --model "$work/post-base" --adapter "$work/python" < "$work/sentences.txt" > "$work/python.out.jsonl"
$python "$sees/peft_check.py" "$sees" python
