#!/usr/bin/env bash
# reference_runs.sh PROGRAM [MPI_PROGRAM]: trains, evaluates, quantizes, exports and asks small models of every task and
# architecture, in f32 and in bf16, and prints a line "NAME SHA-256" for each result. Two versions of the program
# have the same bits if they print the same on one machine:
#
#   tests/reference_runs.sh old/cloze > old.txt; tests/reference_runs.sh build/cloze > new.txt; diff old.txt new.txt
#
# With MPI_PROGRAM (cloze-mpi), one run also has two ranks. Takes about a minute. Exit: 0, or 1 if a command fails.
set -uo pipefail
program=$(realpath "${1:?"usage: reference_runs.sh PROGRAM [MPI_PROGRAM]"}") mpi_program=
[ $# -lt 2 ] || mpi_program=$(realpath "$2")
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
cp -r "$root/tests/golden/release_0.1/data" "$root/tests/golden/release_0.1/vocab" . || exit 1
status=0

fail() { echo "reference_runs.sh: $*" >&2; status=1; }
print() { printf '%s %s\n' "$1" "$(sha256sum | cut -c 1-64)"; }

# Writes a spec. Arguments: name, encoder, task, data, fields of the optimizer, further fields.
spec() {
  cat > "$1.textproto" << END
model { $2 } $3 train { $4 } validation { $4 max_examples: 20 } evaluation { every_steps: 4 }
batch { tokens: 512 micro_tokens: 200 } optimizer { learning_rate: 0.003 ${5:-} } schedule { steps: 12 } seed: 7
output { directory: '$1' checkpoint_every_steps: 6 log_every_steps: 3 } ${6:-}
END
}

# Prints the weights, metrics and optimizer of a run. Arguments: name, command, options.
train() {
  local name=$1
  if "$program" "$2" "$name.textproto" --set output.directory="$name" "${@:3}" > /dev/null 2> err; then
    cat "$name"/*model*.safetensors | print "$name weights"
    cat "$name/metrics.json" | print "$name metrics"
    cat "$name"/step-*12/optimizer.safetensors | print "$name optimizer"
  else
    fail "$name: $(tail -n 1 err)"
  fi
}

# Prints what a command writes to standard output. Arguments: name, command and its arguments.
answers() {
  local name=$1
  shift
  if "$program" "$@" > out 2> err; then print "$name" < out; else fail "$name: $(tail -n 1 err)"; fi
}

sizes="layers: 2 hidden: 64 heads: 2 intermediate: 128 max_positions: 64"
encoder() { echo "tokenizer: 'vocab' encoder { preset: CUSTOM $sizes ${1:-} }"; }
text="files: 'data/text.txt'" classes="files: 'data/classes.tsv'" tags="files: 'data/tags.conll'"
pairs="files: 'data/pairs.tsv' text_field: 'first' text_pair_field: 'second'"
texts="files: 'data/pairs.tsv' text_field: 'first' text_pair_field: 'second'"
questions="files: 'questions.json'"
cat > questions.json << 'END'
{"data":[{"title":"t","paragraphs":[{"context":"the cat sat on the mat and the dog ran to the house","qas":[
{"id":"1","question":"the cat sat on","answers":[{"text":"the mat","answer_start":15}]},
{"id":"2","question":"the dog ran to","answers":[{"text":"the house","answer_start":42}]}]}]}]}
END

spec bert "$(encoder)" "masked_lm { max_tokens: 32 unit: SPAN }" "$text" "ema_decay: 0.9 clip_updates: true"
spec modern "$(encoder 'architecture: MODERN window: 8')" "masked_lm { max_tokens: 32 causal_share: 0.5 }" "$text" "muon_rate: 1"
spec electra "$(encoder 'architecture: ELECTRA embedding: 32')" "masked_lm { max_tokens: 32 replaced_tokens { generator_size: 0.5 } }" "$text"
spec albert "$(encoder 'architecture: ALBERT embedding: 32')" "masked_lm { max_tokens: 32 }" "$text"
spec deberta "$(encoder 'architecture: DEBERTA')" "masked_lm { max_tokens: 32 }" "$text"
spec gpt2 "$(encoder 'architecture: GPT2')" "causal_lm { max_tokens: 32 }" "$text"
spec classes "$(encoder)" "sequence_classification { max_tokens: 32 calibrate: true }" "$classes"
spec regression "$(encoder 'norm: PRE')" "sequence_classification { max_tokens: 32 kind: REGRESSION }" "files: 'data/scores.tsv'"
spec several "$(encoder)" "sequence_classification { max_tokens: 32 kind: MULTI_LABEL thresholds: BEST }" "files: 'data/several.jsonl'"
spec pairs "$(encoder)" "sequence_classification { max_tokens: 32 balance_classes: true }" "$pairs"
spec windows "$(encoder)" "sequence_classification { max_tokens: 16 long_texts: WINDOWS }" "files: 'data/long.tsv'"
spec tags "$(encoder)" "token_tagging { max_tokens: 24 crf: true pieces: MEAN }" "$tags"
spec questions "$(encoder)" "question_answering { max_tokens: 24 overlap: 4 longest_question: 6 unanswerable: true }" "$questions"
spec translation "$(encoder)" "sequence_to_sequence { max_tokens: 32 max_target_tokens: 16 }" "$texts"
spec lora "start_from: 'bert'" "sequence_classification { max_tokens: 32 }" "$classes" "" "trainable { lora { rank: 2 } }"

for compute in F32 BF16; do
  mkdir "$compute" && cp -r data vocab questions.json ./*.textproto "$compute" && cd "$compute" || exit 1
  echo "== $compute"
  for name in bert modern electra albert deberta gpt2; do train "$name" pretrain --set runtime.compute="$compute"; done
  for name in classes regression several pairs windows tags questions translation lora; do
    train "$name" finetune --set runtime.compute="$compute"
  done
  cd ..
done

cd F32 || exit 1
echo "== answers"
if [ -n "$mpi_program" ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  if "${MPIRUN:-mpirun}" -n 2 "$mpi_program" pretrain bert.textproto --set output.directory=ranks --set runtime.compute=F32 > /dev/null 2> err < /dev/null
  then cat ranks/model.safetensors | print "two ranks"; else fail "two ranks: $(tail -n 1 err)"; fi
fi
for compute in F32 BF16; do
  answers "classes $compute" predict --model classes --compute ${compute,,} data/new.txt
  answers "windows $compute" predict --model windows --compute ${compute,,} data/new.txt
  answers "several $compute" predict --model several --compute ${compute,,} data/new.txt
  answers "regression $compute" predict --model regression --compute ${compute,,} data/new.txt
  answers "tags $compute" tag --model tags --compute ${compute,,} data/new.txt
  answers "vectors $compute" encode --model bert --pool mean --compute ${compute,,} --out - data/new.txt
  answers "scores $compute" score --model bert --compute ${compute,,} data/new.txt
  answers "targets $compute" generate --model translation --compute ${compute,,} --input data/new.txt
  answers "beams $compute" generate --model translation --beams 3 --compute ${compute,,} --input data/new.txt
  answers "continuations $compute" generate --model gpt2 --max-new-tokens 8 --temperature 1 --seed 3 --compute ${compute,,} --input data/new.txt
done
answers "adapter" predict --model bert --adapter lora data/new.txt
answers "evaluation" evaluate --model classes --data data/classes.tsv --json
"$program" quantize --model classes --texts data/classes.tsv --out int8 > /dev/null 2> err && print "int8 weights" < int8/model.safetensors || fail "quantize: $(tail -n 1 err)"
answers "int8 classes" predict --model int8 data/new.txt
for name in bert modern deberta classes tags questions; do
  "$program" export --model "$name" --out "$name-onnx" > /dev/null 2> err && print "$name graph" < "$name-onnx/model.onnx" || fail "export $name: $(tail -n 1 err)"
done
"$program" merge --model bert --adapter lora --out merged > /dev/null 2> err && print "merged weights" < merged/model.safetensors || fail "merge: $(tail -n 1 err)"
exit $status
