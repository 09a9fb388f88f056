#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test: what ships, and numbers, in a Release build; numbers again, and all else, under
# AddressSanitizer and UBSan (tests/CMakeLists.txt tells which is which). The last line is "N passed, N failed" over both; the exit status
# is 0 when nothing failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

jobs=$(nproc)
passed=0 failed=0 skipped=0

finish() {
  [ "$skipped" -eq 0 ] || echo "$skipped skipped (what they need is not on this machine)"
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
  exit
}

# An attribute of a JUnit file's <testsuite>.
attribute() { sed -n "/<testsuite/,/>/s/.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -n 1; }

# Configures, builds and tests a preset. Arguments: preset, build folder, target, label of the tests that are not for it. A build that fails
# counts as one failed test.
run() {
  local preset=$1 folder=$2 target=$3 not=$4 report
  echo "== $preset: build"
  if ! cmake --preset "$preset" > "$folder.log" 2>&1; then
    cat "$folder.log"
    failed=$((failed + 1))
    return
  fi
  if ! cmake --build "$folder" -j "$jobs" --target "$target" > "$folder.log" 2>&1; then
    tail -n 100 "$folder.log"
    failed=$((failed + 1))
    return
  fi
  echo "== $preset: test"
  report=$PWD/$folder/junit.xml
  rm -f "$report"
  ctest --test-dir "$folder" -j "$jobs" --output-on-failure --output-junit "$report" -LE "$not" -E NOT_BUILT
  if [ ! -s "$report" ]; then
    failed=$((failed + 1))
    return
  fi
  local all bad off
  all=$(attribute tests "$report") bad=$(attribute failures "$report")
  off=$(($(attribute skipped "$report") + $(attribute disabled "$report")))
  passed=$((passed + all - bad - off)) failed=$((failed + bad)) skipped=$((skipped + off))
}

if ! tools/setup.sh; then
  failed=1
  finish
fi

run release build shipped_tests checked
# Containers may forbid the leak checker's ptrace; everything else stays on.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
run asan build-asan checked_tests shipped
finish
