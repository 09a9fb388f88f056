# Sourced by the scripts of this folder. Creates a tiny model and its data in $WORK, which is removed at
# exit. CLOZE: the program.
set -u
CLOZE=$(realpath "${CLOZE:-build/cloze}") || exit 2
WORK=$(mktemp -d) || exit 2
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OMP_WAIT_POLICY=passive
trap 'cleanup; rm -rf "$WORK"' EXIT
trap 'exit 1' INT TERM
cleanup() { :; }

fail() { echo "FAILED: $*" >&2; exit 1; }

# Prints a random number in [0, $1).
random() { awk -v r="$RANDOM$RANDOM" -v m="$1" 'BEGIN { printf "%.4f", (r % 1000003) / 1000003 * m }'; }

make_data() {
  awk 'BEGIN { srand(3); split("cat dog fox owl hen cow", a); split("sat ran hid sang", v); split("mat box hill barn tree", p)
    for (i = 0; i < 300; ++i) { x = a[1 + i % 6]; print "the " x " " v[1 + int(rand() * 4)] " by the " p[1 + int(rand() * 5)] " .\n" } }' > text.txt
  awk 'BEGIN { print "text\tlabel"; for (i = 0; i < 240; ++i) print (i % 2 ? "the cat sat by the mat " : "a dog ran up the hill ") i "\t" (i % 2 ? "cat" : "dog") }' > classes.tsv
  awk 'BEGIN { srand(5); split("the DET cat NOUN dog NOUN sat VERB ran VERB up ADP by ADP mat NOUN hill NOUN", w, " "); for (i = 0; i < 200; ++i) {
    for (j = 0; j < 6; ++j) { k = 1 + 2 * int(rand() * 9); print w[k] "\t" w[k + 1] } print "" } }' > tags.conll
  "$CLOZE" vocab --text text.txt --size 60 --out vocab > /dev/null 2>&1 || fail "no vocabulary"
}

# The kinds of runs. Each is 40 steps, but `vocab` and `unigram` learn a vocabulary. `lora` and `causal_lora` start from the
# models that `finetune` and `causal_lm` have left in $WORK/straight-finetune and $WORK/straight-causal_lm.
kinds="pretrain finetune ema recompute whole_batch multi_label crf lora causal_lm causal_lora repeat vocab unigram"

# spec KIND: prints the spec of a run.
spec() {
  local task='sequence_classification { max_tokens: 24 }' data=classes.tsv optimizer="learning_rate: 0.002" more="" micro=128
  local model="tokenizer: \"$WORK/vocab\" encoder { preset: CUSTOM layers: 1 hidden: 32 heads: 2 intermediate: 64 max_positions: 32 }"
  case $1 in
    pretrain) task='masked_lm { max_tokens: 24 }' data=text.txt ;;
    ema) optimizer+=' ema_decay: 0.9' ;;
    recompute) more='runtime { recompute: true }' ;;
    whole_batch) micro=256 ;;
    multi_label) task='sequence_classification { max_tokens: 24 kind: MULTI_LABEL }' ;;
    crf) task='token_tagging { max_tokens: 24 crf: true }' data=tags.conll ;;
    lora) model="start_from: \"$WORK/straight-finetune/run\"" more='trainable { lora { rank: 4 } }' ;;
    causal_lm) task='causal_lm { max_tokens: 24 }' data=text.txt model="${model/CUSTOM/CUSTOM architecture: GPT2}" ;;
    causal_lora) task='causal_lm { max_tokens: 24 }' data=text.txt more='trainable { lora { rank: 4 } }'
      model="start_from: \"$WORK/straight-causal_lm/run\"" ;;
    repeat) more='repeat: 2' ;;
  esac
  cat << END
model { $model }
$task
train { files: "$WORK/$data" }
validation { files: "$WORK/$data" max_examples: 40 }
evaluation { every_steps: 6 }
batch { tokens: 256 micro_tokens: $micro }
optimizer { $optimizer }
schedule { steps: 40 }
output { directory: "run" checkpoint_every_steps: 3 log_every_steps: 5 }
$more
END
}

# run KIND: runs in the current directory; appends its JSON line to out and the rest to err.
run() {
  case $1 in
    vocab) set -- vocab --text "$WORK/text.txt" --size 60 --out run ;;
    unigram) set -- vocab --kind unigram --text "$WORK/text.txt" --size 60 --out run ;;
    pretrain | causal_*) set -- pretrain "$WORK/$1.textproto" ;;
    *) set -- finetune "$WORK/$1.textproto" ;;
  esac
  exec "$CLOZE" "$@" >> out 2>> err
}

# Prints the last step that run/ announced, or -1.
announced() { sed -n 's/^saved .*step-0*\([0-9][0-9]*\)$/\1/p' err | tail -n 1 | grep . || echo -1; }

# Prints the folder of the last run that announced a checkpoint: run, or run/seed-N.
announced_run() { sed -n 's/^saved \(.*\)\/step-[0-9]*$/\1/p' err | tail -n 1 | grep . || echo run; }

# newest [RUN]: prints the step of the newest checkpoint of the run that verifies, or -1.
newest() {
  [ -d "${1:-run}" ] || { echo -1; return; }
  "$CLOZE" verify "${1:-run}" 2> /dev/null | sed -n 's/.*step-0*\([0-9][0-9]*\)", "sound": true.*/\1/p' | sort -n | tail -n 1 | grep . || echo -1
}

# Prints one hash of everything that a finished run leaves but its log, older checkpoints and caches.
bits() {
  (tail -n 1 out; find -H run -type f \( -name '*.safetensors' -o -name metrics.json -o -name config.json -o -name 'adapter_config.json' -o -name vocab.txt \
    -o -name tokenizer.json \) -not -path '*/step-000000[0-3]*' | sort | xargs sha256sum) | sha256sum
}

# make_reference [KIND...]: runs each kind (pretrain and finetune) undisturbed in $WORK/straight-KIND; writes
# its hash to bits-KIND and its duration to seconds-KIND; sets $seconds to the duration of the last one.
make_reference() {
  local kind start
  [ $# -gt 0 ] || set -- pretrain finetune
  for kind in "$@"; do
    spec "$kind" > "$WORK/$kind.textproto"
    mkdir "$WORK/straight-$kind" && cd "$WORK/straight-$kind" || exit 2
    start=$(date +%s.%N)
    (run "$kind") || fail "$kind: $(tail -n 3 err)"
    seconds=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')
    echo "$seconds" > "$WORK/seconds-$kind"
    bits > "$WORK/bits-$kind"
    cd "$WORK" || exit 2
  done
}

cd "$WORK" || exit 2
make_data
