#!/usr/bin/env bash
# transformers.sh CLOZE: checks that models saved by Cloze load in transformers and give the same numbers. Exits
# with 77 (skipped) if Python has no transformers.
# CLOZE_PYTHON: the interpreter (default python3), which may run in a chroot. CLOZE_PYTHON_WORK: an empty
# folder, which the interpreter sees as CLOZE_PYTHON_SEES.
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
printf 'film\tNOUN\nwas\tVERB\n\nmovie\tNOUN\nis\tVERB\ndull\tADJ\n\n%.0s' $(seq 20) > "$work/tags.conll"
{ for _ in $(seq 20); do
    printf '{"text":"a great film","label":["good","short"]}\n{"text":"a dull movie","label":["bad"]}\n{"text":"so so","label":[]}\n'
  done; } > "$work/several.jsonl"
{ printf 'text\tother\tlabel\n'; printf 'a great film\ta great joy\t4.5\na dull movie\ta great joy\t-0.5\nso so\tso\t2\n%.0s' $(seq 20); } > "$work/pairs.tsv"
{ printf '{"data": [{"title": "films", "paragraphs": [{"context": "the good film was a great joy to see", "qas": ['
  printf '{"id": "a", "question": "what was a joy ?", "answers": [{"text": "good film", "answer_start": 4}]}, '
  printf '{"id": "b", "question": "what was the film ?", "answers": [{"text": "great joy", "answer_start": 20}]}]}]}]}\n'; } > "$work/questions.json"
printf 'what was a joy ?\tthe good film was a great joy to see\nwhat is dull ?\tthis bad movie is a dull waste of time\n' > "$work/questions.txt"
printf 'The film was dull.\nA great, great joy!\nx\n' > "$work/sentences.txt"
printf 'The film was dull.\tA great joy!\nA great, great joy! Is it the good movie of all the time and all the films to see?\tIt was a film.\n' > "$work/pairs.txt"
"$cloze" vocab --text "$work/text.txt" --size 120 --out "$work/vocab" 2> /dev/null
run() {  # name, data, model and task, more about the data
  printf '%s train { files: "%s" '"${4:-}"' } batch { tokens: 256 } optimizer { learning_rate: 0.003 } schedule { steps: 20 } runtime { threads: 1 } output { directory: "%s" }\n' \
    "$3" "$work/$2" "$work/$norm-$1" > "$work/$norm-$1.textproto"
  "$cloze" "$([[ $3 = *_lm\ * ]] && echo pretrain || echo finetune)" "$work/$norm-$1.textproto" > /dev/null 2>&1
  "$cloze" tokenize --model "$work/$norm-$1" < "$work/sentences.txt" > "$work/$norm-$1.ids.jsonl"
  "$cloze" encode --compute f32 --model "$work/$norm-$1" --out "$work/$norm-$1.hidden.safetensors" < "$work/sentences.txt"
  [ "$1" != mlm ] || "$cloze" score --compute f32 --model "$work/$norm-$1" < "$work/sentences.txt" > "$work/$norm-$1.score.jsonl"
}
for norm in post pre; do
  encoder="encoder { preset: CUSTOM layers: 2 hidden: 48 heads: 3 intermediate: 96 max_positions: 32 norm: ${norm^^} }"
  run mlm text.txt "model { tokenizer: \"$work/vocab\" $encoder } masked_lm { max_tokens: 24 }"
  run classifier classes.tsv "model { start_from: \"$work/$norm-mlm\" } sequence_classification { max_tokens: 24 }"
  run tagger tags.conll "model { start_from: \"$work/$norm-mlm\" } token_tagging { max_tokens: 24 }"
  run crf tags.conll "model { start_from: \"$work/$norm-mlm\" } token_tagging { max_tokens: 24 crf: true }"
  run several several.jsonl "model { start_from: \"$work/$norm-mlm\" } sequence_classification { max_tokens: 24 kind: MULTI_LABEL }"
  run question questions.json "model { start_from: \"$work/$norm-mlm\" } question_answering { max_tokens: 24 }"
  run number pairs.tsv "model { start_from: \"$work/$norm-mlm\" } sequence_classification { max_tokens: 24 kind: REGRESSION }" 'text_pair_field: "other"'
  "$cloze" predict --compute f32 --model "$work/$norm-question" < "$work/questions.txt" > "$work/$norm-question.out.jsonl"
  for kind in classifier several; do
    "$cloze" predict --compute f32 --model "$work/$norm-$kind" < "$work/sentences.txt" > "$work/$norm-$kind.out.jsonl"
  done
  for kind in tagger crf; do
    "$cloze" tag --compute f32 --model "$work/$norm-$kind" < "$work/sentences.txt" > "$work/$norm-$kind.tags.jsonl"
  done
  "$cloze" predict --compute f32 --model "$work/$norm-number" < "$work/pairs.txt" > "$work/$norm-number.out.jsonl"
  "$cloze" evaluate --compute f32 --model "$work/$norm-classifier" --data "$work/classes.tsv" > "$work/$norm-classifier.metrics.json" 2> /dev/null
  "$cloze" evaluate --compute f32 --model "$work/$norm-several" --data "$work/several.jsonl" > "$work/$norm-several.metrics.json" 2> /dev/null
  "$cloze" evaluate --compute f32 --model "$work/$norm-number" --data "$work/pairs.tsv" > "$work/$norm-number.metrics.json" 2> /dev/null
done

# Other families: a folder written by transformers, with a vocabulary of ours (WordPiece or byte-level BPE); continues
# its masked-LM training, then trains the labelled tasks.
"$cloze" vocab --kind bpe --text "$work/text.txt" --size 330 --out "$work/bpe" 2> /dev/null
cp "$here/transformers_check.py" "$work/"
family() {  # name, vocabulary, more about the masked-LM task
  norm=$1
  $python "$sees/transformers_check.py" "$sees" make "$norm" "$2"
  cp "$work/$2/"* "$work/$norm-start/"
  "$cloze" encode --compute f32 --model "$work/$norm-start" --out "$work/$norm-start.hidden.safetensors" < "$work/sentences.txt"
  "$cloze" tokenize --model "$work/$norm-start" < "$work/sentences.txt" > "$work/$norm-start.ids.jsonl"
  run mlm text.txt "model { start_from: \"$work/$norm-start\" } masked_lm { max_tokens: 24 ${3:-} }"
  run classifier classes.tsv "model { start_from: \"$work/$norm-mlm\" } sequence_classification { max_tokens: 24 }"
  run tagger tags.conll "model { start_from: \"$work/$norm-mlm\" } token_tagging { max_tokens: 24 }"
  run question questions.json "model { start_from: \"$work/$norm-mlm\" } question_answering { max_tokens: 24 }"
  "$cloze" predict --compute f32 --model "$work/$norm-classifier" < "$work/sentences.txt" > "$work/$norm-classifier.out.jsonl"
}
family roberta bpe "unit: WORD"
family xlm-roberta bpe
family camembert bpe
family distilbert vocab
family electra vocab
family albert vocab
family albert-groups vocab
family mpnet bpe
family deberta-v2 vocab
family deberta-v2-xlarge vocab
family modernbert vocab
family nomic_bert vocab

# New encoders of other architectures: ELECTRA, with a generator too, ALBERT and DeBERTa-v2.
for norm in new-electra new-albert new-deberta; do
  more="architecture: $(tr a-z A-Z <<< "${norm#new-}")"
  [ $norm = new-deberta ] || more+=" embedding: 24"
  run mlm text.txt "model { tokenizer: \"$work/vocab\" encoder { preset: CUSTOM layers: 2 hidden: 48 heads: 3 intermediate: 96 max_positions: 32 $more } } masked_lm { max_tokens: 24 }"
  run classifier classes.tsv "model { start_from: \"$work/$norm-mlm\" } sequence_classification { max_tokens: 24 }"
  "$cloze" predict --compute f32 --model "$work/$norm-classifier" < "$work/sentences.txt" > "$work/$norm-classifier.out.jsonl"
done

norm=new-electra
run replaced text.txt "model { start_from: \"$work/$norm-mlm\" } masked_lm { max_tokens: 24 replaced_tokens { generator_size: 0.5 } }"

# A new encoder of architecture MODERN, which loads as ModernBERT.
norm=modern
run mlm text.txt "model { tokenizer: \"$work/vocab\" encoder { preset: CUSTOM architecture: MODERN layers: 4 hidden: 48 heads: 3 intermediate: 64 max_positions: 32 window: 6 } } masked_lm { max_tokens: 24 }"
run classifier classes.tsv "model { start_from: \"$work/modern-mlm\" } sequence_classification { max_tokens: 24 }"
run question questions.json "model { start_from: \"$work/modern-mlm\" } question_answering { max_tokens: 24 }"
"$cloze" predict --compute f32 --model "$work/modern-classifier" < "$work/sentences.txt" > "$work/modern-classifier.out.jsonl"
"$cloze" predict --compute f32 --model "$work/modern-question" < "$work/questions.txt" > "$work/modern-question.out.jsonl"
# Decoders: a folder written by transformers, which training and an adapter continue, and a new one.
norm=gpt2
$python "$sees/transformers_check.py" "$sees" make gpt2 bpe
cp "$work/bpe/"* "$work/gpt2-start/"
"$cloze" encode --compute f32 --model "$work/gpt2-start" --out "$work/gpt2-start.hidden.safetensors" < "$work/sentences.txt"
"$cloze" tokenize --model "$work/gpt2-start" < "$work/sentences.txt" > "$work/gpt2-start.ids.jsonl"
run causal text.txt "model { start_from: \"$work/gpt2-start\" } causal_lm { max_tokens: 24 }"
run lora text.txt "model { start_from: \"$work/gpt2-causal\" } trainable { lora { rank: 3 targets: [QUERY, ATTENTION_OUTPUT, INTERMEDIATE, OUTPUT] } } causal_lm { max_tokens: 24 }"
"$cloze" merge --adapter "$work/gpt2-lora" --out "$work/gpt2-merged" > /dev/null
for file in ids.jsonl hidden.safetensors; do cp "$work/gpt2-lora.$file" "$work/gpt2-merged.$file"; done
norm=new-gpt2
run causal text.txt "model { tokenizer: \"$work/bpe\" encoder { architecture: GPT2 preset: CUSTOM layers: 2 hidden: 48 heads: 3 intermediate: 96 max_positions: 32 } } causal_lm { max_tokens: 24 }"
printf '5 7 9\n12\n40 41 5 6 7 8 9 10\n' > "$work/prompts.ids"
for name in gpt2-start gpt2-causal gpt2-merged new-gpt2-causal; do
  for beams in 1 3; do
    "$cloze" generate --model "$work/$name" --input "$work/prompts.ids" --input-format ids --output-format ids --end-token 2 --max-new-tokens 15 \
      --beams $beams > "$work/$name.generated-$beams"
  done
done
# Encoder-decoders: folders written by transformers and a pair of two encoders, which training continues.
targets() {  # name, the start
  printf 'model { start_from: "%s" } sequence_to_sequence { max_tokens: 24 max_target_tokens: 24 } train { files: "%s" text_pair_field: "other" } batch { tokens: 256 } optimizer { learning_rate: 0.003 } schedule { steps: 20 } runtime { threads: 1 } output { directory: "%s" }\n' \
    "$work/$2" "$work/pairs.tsv" "$work/$1" > "$work/$1.textproto"
  "$cloze" finetune "$work/$1.textproto" > /dev/null 2>&1
  for beams in 1 3; do
    "$cloze" generate --model "$work/$1" --input "$work/prompts.ids" --input-format ids --output-format ids --max-new-tokens 15 --beams $beams > "$work/$1.generated-$beams"
  done
}
for name in bart marian; do
  $python "$sees/transformers_check.py" "$sees" make $name bpe
  cp "$work/bpe/"* "$work/$name-start/"
  targets $name-targets $name-start
done
targets bert-targets post-mlm
targets roberta-targets roberta-mlm
# Folders of sentence-transformers.
for pooling in CLASS MEAN MAX; do
  printf 'model { start_from: "%s" } sentence_embedding { max_tokens: 24 pooling: %s query_prompt: "the film" } train { files: "%s" text_pair_field: "other" } batch { examples: 2 } schedule { steps: 5 } output { directory: "%s" }\n' \
    "$work/post-mlm" $pooling "$work/pairs.tsv" "$work/vectors-$pooling" > "$work/vectors.textproto"
  "$cloze" finetune "$work/vectors.textproto" > /dev/null 2>&1
  "$cloze" encode --compute f32 --model "$work/vectors-$pooling" --out "$work/vectors-$pooling.safetensors" --pool "$(tr A-Z a-z <<< $pooling)" --normalize < "$work/sentences.txt"
  "$cloze" encode --compute f32 --model "$work/vectors-$pooling" --out - < "$work/sentences.txt" > "$work/vectors-$pooling.jsonl"
done
$python "$sees/transformers_check.py" "$sees" check
