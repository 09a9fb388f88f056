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
  "$CLOZE" vocab --text text.txt --size 60 --out vocab > /dev/null 2>&1 || fail "no vocabulary"
}

# spec KIND: prints the spec of a run of 40 steps. KIND: pretrain or finetune.
spec() {
  local task data
  case $1 in
    pretrain) task='masked_lm { max_tokens: 24 }' data=text.txt ;;
    finetune) task='sequence_classification { max_tokens: 24 }' data=classes.tsv ;;
  esac
  cat << END
model { tokenizer: "$WORK/vocab" encoder { preset: CUSTOM layers: 1 hidden: 32 heads: 2 intermediate: 64 max_positions: 32 } }
$task
train { files: "$WORK/$data" }
validation { files: "$WORK/$data" max_examples: 40 }
evaluation { every_steps: 6 }
batch { tokens: 256 micro_tokens: 128 }
optimizer { learning_rate: 0.002 }
schedule { steps: 40 }
output { directory: "run" checkpoint_every_steps: 3 log_every_steps: 5 }
END
}

# run KIND: runs in the current directory; appends its JSON line to out and the rest to err.
run() { "$CLOZE" "$1" "$WORK/$1.textproto" >> out 2>> err; }

# Prints the last step that run/ announced, or -1.
announced() { sed -n 's/^saved .*step-0*\([0-9][0-9]*\)$/\1/p' err | tail -n 1 | grep . || echo -1; }

# Prints the step of the newest checkpoint of run/ that verifies, or -1.
newest() {
  [ -d run ] || { echo -1; return; }
  "$CLOZE" verify run 2> /dev/null | sed -n 's/.*step-0*\([0-9][0-9]*\)", "sound": true.*/\1/p' | sort -n | tail -n 1 | grep . || echo -1
}

# Prints one hash of everything that a finished run leaves.
bits() {
  (tail -n 1 out; cd run && cat model.safetensors metrics.json config.json vocab.txt samples.safetensors step-00000040/model.safetensors \
    step-00000040/optimizer.safetensors) | sha256sum
}

# make_reference: runs each kind undisturbed in $WORK/straight-KIND; sets $seconds to the duration of the
# last one.
make_reference() {
  local kind start
  for kind in pretrain finetune; do
    spec $kind > "$WORK/$kind.textproto"
    mkdir "$WORK/straight-$kind" && cd "$WORK/straight-$kind" || exit 2
    start=$(date +%s.%N)
    run $kind || fail "$kind: $(tail -n 3 err)"
    seconds=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')
    bits > "$WORK/bits-$kind"
    cd "$WORK" || exit 2
  done
}

cd "$WORK" || exit 2
make_data
