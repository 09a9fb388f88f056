#!/usr/bin/env bash
# run.sh SECONDS [TARGET...]: builds the fuzz targets with clang, libFuzzer, AddressSanitizer and UBSan
# (apt-get install clang libclang-rt-dev) and runs each for SECONDS, one after the other.
# Targets: safetensors json spec vocab text readers store state serve.
# Prints one line per target: seconds, executions, coverage, size of the corpus, findings. Keeps failing
# inputs and the grown corpus in build-fuzz/. Exits with 1 if anything was found. Environment: CXX
# (clang++), TMPDIR.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

seconds=${1:?"usage: tests/fuzz/run.sh SECONDS [TARGET...]"}
shift
targets=("$@")
[ $# -gt 0 ] || targets=(safetensors json spec vocab text readers store state serve)

cmake -S . -B build-fuzz -G Ninja -DCLOZE_FUZZ=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1" \
  -DCMAKE_CXX_COMPILER="${CXX:-clang++}" > build-fuzz.log 2>&1 || { cat build-fuzz.log; exit 1; }
ninja -C build-fuzz "${targets[@]/%/_fuzz}" > build-fuzz.log 2>&1 || { tail -n 50 build-fuzz.log; exit 1; }

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:allocator_may_return_null=0} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
status=0
for target in "${targets[@]}"; do
  corpus=build-fuzz/corpus/$target artifacts=build-fuzz/findings/$target log=build-fuzz/$target.log
  mkdir -p "$corpus" "$artifacts"
  dictionary=()
  [ -f "tests/fuzz/$target.dict" ] && dictionary=("-dict=tests/fuzz/$target.dict")
  "build-fuzz/tests/fuzz/${target}_fuzz" -max_total_time="$seconds" -timeout=10 -report_slow_units=100 -rss_limit_mb=1024 -max_len=16384 -print_final_stats=1 \
    -artifact_prefix="$artifacts/" "${dictionary[@]}" "$corpus" "tests/fuzz/corpus/$target" > "$log" 2>&1 || status=1
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  coverage=$(grep -o 'cov: [0-9]* ft: [0-9]*' "$log" | tail -n 1)
  peak=$(sed -n 's/^stat::peak_rss_mb: *//p' "$log")
  found=$(find "$artifacts" -type f | wc -l)
  echo "$target: $seconds s, ${executions:-0} executions, $coverage, $(find "$corpus" -type f | wc -l) inputs kept, peak ${peak:-?} MB, $found findings"
done
exit $status
