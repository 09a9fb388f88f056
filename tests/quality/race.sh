#!/usr/bin/env bash
# race.sh TEXT VALIDATION [MINUTES] [STEPS]: the recipe of tools/specs/pretrain_hour.textproto against PyTorch, for the
# same time. Files have one sentence per line. PyTorch trains the same encoder from the same start on the same sentences,
# with AdamW (MUON=1: with torch.optim.Muon, which was worse in 6 minutes) and without causal sequences, which it lacks.
# Cloze also trains for half of the time: if its loss is then lower, it needs less than half of the time.
# STEPS: batches to prepare for PyTorch; more than it will need.
# CLOZE, BATCHES: the programs; CLOZE_PYTHON, CLOZE_PYTHON_WORK, CLOZE_PYTHON_SEES: see tests/e2e/transformers.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
text=$(realpath "${1:?usage: race.sh TEXT VALIDATION [MINUTES] [STEPS]}") validation=$(realpath "$2")
minutes=${3:-10} steps=${4:-1500}
cloze=${CLOZE:-$here/../../build/cloze} batches=${BATCHES:-$here/../../build/tests/batches}
python=${CLOZE_PYTHON:-python3}
work=${CLOZE_PYTHON_WORK:-$(mktemp -d)} sees=${CLOZE_PYTHON_SEES:-}
[ -n "$sees" ] || sees=$work
[ -n "${CLOZE_PYTHON_WORK:-}" ] || trap 'rm -rf "$work"' EXIT
spec=$here/../../tools/specs/pretrain_hour.textproto
settings=(model.tokenizer="$work/vocab" train.files="$text" validation.files="$validation"
  output.cache_directory="$work/cache")
[ -d "$work/vocab" ] || "$cloze" vocab --text "$text" --size 8192 --no-lowercase --out "$work/vocab" 2> /dev/null

# Arguments: name of the run, minutes.
train() {
  "$cloze" pretrain "$spec" "${settings[@]/#/--set=}" --set output.directory="$work/$1" \
    --set schedule.time_budget_minutes="$2" --set evaluation.every_steps=1000000 > /dev/null 2> "$work/$1.log"
}
# Prints the loss of a model folder. Arguments: name, folder.
report() {
  echo "$1: $("$cloze" evaluate --model "$2" --data "$validation" --set documents=LINE --set max_examples=4000 2> /dev/null)"
}
train all "$minutes"
train half "$(awk "BEGIN { print $minutes / 2 }")"
# The spec's rate is for embeddings beside Muon; with AdamW alone, blocks want a lower one.
rate=(--set optimizer.learning_rate=1e-3)
[ -z "${MUON:-}" ] || rate=()
"$cloze" spec print "$spec" "${settings[@]/#/--set=}" --set output.directory="$work/none" \
  --set masked_lm.causal_share=0 "${rate[@]}" > "$work/torch.textproto"
"$batches" "$work/torch.textproto" "$steps" "$work"
cp "$here/race.py" "$work/"
$python "$sees/race.py" "$sees" "$minutes" ${MUON:+"$(sed -n 's/.* muon_rate: \([0-9.]*\).*/\1/p' "$spec")"}
cp "$work"/vocab/* "$work/torch/"
report "cloze, $minutes minutes" "$work/all"
report "cloze, half of that" "$work/half"
report "PyTorch, $minutes minutes" "$work/torch"
