# Sourced by the scripts of this folder, in an empty folder. Makes data and specs of small runs; $root is the
# source tree. `bits FOLDER STEP` prints a hash of what a run has left.
# For Open MPI: as root, and more ranks than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none  # Open MPI 5

cat "$root"/docs/*.md > text.txt
{ printf 'text\tlabel\n'; for i in $(seq 120); do printf 'the %s sat on mat %d\t%s\n' "$((i % 3))" "$i" "l$((i % 3))"; done; } > classes.tsv
{ printf 'text\ttarget\n'; for i in $(seq 120); do printf 'the cat %d sat on mat %d\t%d %d\n' "$((i % 7))" "$i" "$i" "$((i % 7))"; done; } > pairs.tsv
for i in $(seq 60); do printf 'the\tO\ncat\tB-ANIMAL\nsat\tO\n%d\tO\n\n' "$i"; done > tags.conll
encoder="tokenizer: '$root/tests/golden/release_0.1/vocab' encoder { preset: CUSTOM layers: 3 hidden: 128 heads: 2 intermediate: 512 max_positions: 64 }"
common="runtime { threads: 1 } distributed { timeout_seconds: 20 } output { directory: 'run' checkpoint_every_steps: 4 log_every_steps: 1 }"
cat > lm.textproto << END
model { $encoder } masked_lm { max_tokens: 64 } train { files: 'text.txt' } validation { share: 0.05 }
batch { tokens: 1024 micro_tokens: 192 } schedule { steps: 12 } optimizer { ema_decay: 0.9 clip_updates: true } $common
END
cat > class.textproto << END
model { $encoder } sequence_classification { max_tokens: 32 } train { files: 'classes.tsv' } validation { files: 'classes.tsv' }
batch { examples: 20 micro_tokens: 64 } schedule { steps: 12 } optimizer { muon_rate: 1 } $common
END
cat > tag.textproto << END
model { $encoder } token_tagging { max_tokens: 32 crf: true } train { files: 'tags.conll' } validation { files: 'tags.conll' }
batch { examples: 20 micro_tokens: 64 } schedule { steps: 6 } $common
END
cat > causal.textproto << END
model { ${encoder/preset/architecture: GPT2 preset} } causal_lm { max_tokens: 64 } train { files: 'text.txt' }
batch { tokens: 512 micro_tokens: 192 } schedule { steps: 6 } $common
END
cat > pairs.textproto << END
model { $encoder } sequence_to_sequence { max_tokens: 32 max_target_tokens: 24 } train { files: 'pairs.tsv' text_pair_field: 'target' } validation { files: 'pairs.tsv' text_pair_field: 'target' }
batch { examples: 20 micro_tokens: 64 } schedule { steps: 6 } $common
END
cat > lora.textproto << END
model { start_from: 'lm-one' } trainable { lora { rank: 2 } } sequence_classification { max_tokens: 32 }
train { files: 'classes.tsv' } batch { examples: 20 micro_tokens: 64 } schedule { steps: 6 } $common
END

bits() { (cd "$1" && cat ./*model.safetensors metrics.json "step-$2"/*model.safetensors "step-$2"/optimizer.safetensors | sha256sum); }

# ranks_below PID: prints the ids of the ranks of mpirun PID, the first first; fails if there are none. In MPICH a
# proxy stands between.
below() {
  local child
  for child in $(pgrep -P "$1"); do echo "$child"; below "$child"; done
}
ranks_below() {
  ps -o pid=,args= --sort=pid -p "$(below "$1" | paste -sd,)" 2> /dev/null |
    awk -v program="$mpi_program" '$2 == program { print $1; n++ } END { exit n == 0 }'
}
