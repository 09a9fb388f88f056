#!/usr/bin/env bash
# instruction_sets.sh [--quick] [BUILD]: do the tests hold in the arithmetic of other CPUs? Runs the tests of the
# program, of training and of inference with every value of CLOZE_MAX_ISA and of DNNL_MAX_CPU_ISA that this
# machine has, and once compiled at -O1. Some 10 minutes for each of these on 2 cores.
#
#   BUILD     a Release build folder (build), in which the test programs are built first
#   --quick   builds nothing: only the program's own tests of BUILD, on the best instruction set that has no bf16
#             and is not the machine's; at most 3 minutes on 2 cores
#
# Prints a line for each run. Exit: 0 all passed, 1 some failed.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
quick=no
if [ "${1:-}" = --quick ]; then quick=yes; shift; fi
build=$(realpath -m "${1:-$root/build}")
programs=(e2e_test training_test inference_test)
export OMP_WAIT_POLICY=passive GTEST_BRIEF=1
unset CLOZE_MAX_ISA DNNL_MAX_CPU_ISA GTEST_OUTPUT GTEST_SHARD_INDEX GTEST_TOTAL_SHARDS GTEST_FILTER
log=$(mktemp) failed=0
trap 'rm -f "$log"' EXIT

has() { local flag; for flag in "$@"; do grep -qw "$flag" /proc/cpuinfo || return 1; done; }

# The values that this machine has, the best last; the names of core/ops/kernels and of oneDNN.
ours=(baseline) library=(SSE41)
if has avx2 fma; then
  ours+=(avx2) library+=(AVX2)
  ! has avx_vnni || ours+=(avx2vnni)
  if has avx512f avx512bw avx512vl avx512dq; then
    ours+=(avx512) library+=(AVX512_CORE)
    ! has avx512_vnni || ours+=(avx512vnni) library+=(AVX512_CORE_VNNI)
    ! has avx512_vnni avx512_bf16 || ours+=(avx512bf16) library+=(AVX512_CORE_BF16)
    ! has avx512_vnni avx512_bf16 amx_tile amx_bf16 amx_int8 || ours+=(amx) library+=(AVX512_CORE_AMX)
  fi
fi

# Runs test programs of a build folder: NAME=VALUE or "" for the native set, build folder, programs.
run() {
  local setting=$1 folder=$2 program start=$SECONDS bad=()
  shift 2
  for program in "$@"; do
    env ${setting:+"$setting"} "$folder/tests/$program" > "$log" 2>&1 && continue
    bad+=("$program")
    grep -E '^\[  FAILED  \]|Failure$' "$log" | sort -u | head -20
  done
  echo "${setting:-native}: ${#bad[@]} of $# programs failed${bad[*]:+: ${bad[*]}} ($((SECONDS - start)) s)"
  [ ${#bad[@]} -eq 0 ] || failed=1
}

if [ $quick = yes ]; then
  best=${ours[-1]} set=baseline
  for name in "${ours[@]}"; do [[ $name = "$best" || $name = avx512bf16 ]] || set=$name; done
  run "CLOZE_MAX_ISA=$set" "$build" e2e_test
  exit $failed
fi

[ -f "$build/build.ninja" ] || cmake -S "$root" -B "$build" -G Ninja || exit 1
cmake --build "$build" --target cloze "${programs[@]}" > "$log" 2>&1 || { tail -n 30 "$log"; exit 1; }
run "" "$build" "${programs[@]}"
for name in "${ours[@]}"; do run "CLOZE_MAX_ISA=$name" "$build" "${programs[@]}"; done
for name in "${library[@]}"; do run "DNNL_MAX_CPU_ISA=$name" "$build" "${programs[@]}"; done

echo "-O1: build"
plain=$build-O1
cmake -S "$root" -B "$plain" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" > "$log" 2>&1 &&
  cmake --build "$plain" --target cloze "${programs[@]}" > "$log" 2>&1 || { tail -n 30 "$log"; exit 1; }
run "" "$plain" "${programs[@]}"
exit $failed
