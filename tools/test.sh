#!/usr/bin/env bash
# Installs missing packages, builds, and runs every test: the tests of what ships and of numerical code
# in a Release build, numerical code again and everything else with AddressSanitizer and UBSan
# (tests/CMakeLists.txt says which). The build with sanitizers is clang's where clang is complete. Arguments: more
# scripts, each of which counts as one test. The last line is "N passed, N failed" over all; the exit status is 0
# if none failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

jobs=$(nproc)
passed=0 failed=0 skipped=0

finish() {
  [ "$skipped" -eq 0 ] || echo "$skipped skipped (their tools or data are not on this machine)"
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
  exit
}

# Adds up the results of a build folder: scripts from ctest's JUnit file, GoogleTest's tests from
# the files of each shard. A shard that failed although none of its tests did (it crashed, leaked or timed
# out) counts as one failed test.
count() {
  local folder=$1 ran bad off name status crashed=0
  set -- "$folder"/gtest/*.xml
  read -r ran bad off < <(cat "$@" 2> /dev/null | awk '
    /<testcase / { ++ran; if (/result="skipped"/ || /status="notrun"/) ++off }
    /<testsuites / { match($0, /failures="[0-9]+"/); bad += substr($0, RSTART + 10, RLENGTH - 11) }
    END { print ran + 0, bad + 0, off + 0 }')
  while read -r name status; do
    if [[ $name =~ \.[0-9]+$ ]]; then
      [ "$status" = run ] || grep -q -s '<testsuites .*failures="[1-9]' "$folder/gtest/$name.xml" || crashed=$((crashed + 1))
    else
      ran=$((ran + 1))
      case $status in
        fail) bad=$((bad + 1)) ;;
        notrun | disabled) off=$((off + 1)) ;;
      esac
    fi
  done < <(sed -n 's/.*<testcase name="\([^"]*\)".*status="\([a-z]*\)".*/\1 \2/p' "$folder/junit.xml")
  ran=$((ran + crashed)) bad=$((bad + crashed))
  passed=$((passed + ran - bad - off)) failed=$((failed + bad)) skipped=$((skipped + off))
}

# Configures and builds. Arguments: preset, build folder, target, ON to compile files in groups.
build() {
  cmake --preset "$1" -DCLOZE_UNITY="$4" > "$2.log" 2>&1 && cmake --build "$2" -j "$jobs" --target "$3" >> "$2.log" 2>&1
}

# Builds and tests a preset. Arguments: preset, build folder, target, label of the tests to leave out.
# A build that fails counts as one failed test.
run() {
  local preset=$1 folder=$2 target=$3 not=$4
  echo "== $preset: build"
  # Groups save time but break if two of their files use one name; then each file is compiled alone.
  if ! build "$preset" "$folder" "$target" ON; then
    grep -m 5 'error:' "$folder.log"
    echo "test.sh: compiles file by file, which takes longer: the build of groups failed"
    if ! build "$preset" "$folder" "$target" OFF; then
      tail -n 100 "$folder.log"
      failed=$((failed + 1))
      return
    fi
  fi
  echo "== $preset: test"
  rm -rf "$folder/gtest" "$folder/junit.xml"
  ctest --test-dir "$folder" -j "$jobs" --output-on-failure --output-junit "$PWD/$folder/junit.xml" -LE "$not"
  if [ -s "$folder/junit.xml" ]; then count "$folder"; else failed=$((failed + 1)); fi
}

if ! tools/setup.sh; then
  failed=1
  finish
fi

# For the build with sanitizers and the checks of tests/rules/lint.sh, which are skipped without.
tools/setup.sh clang clang-format clang-tidy libclang-rt-dev libomp-dev || echo "test.sh: goes on without clang"

run release build shipped_tests checked
# Containers may forbid the leak checker's ptrace; everything else stays on.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
# Clang compiles it in a quarter less time than g++, and checks the tree for its own warnings meanwhile. A
# folder keeps the compiler that it was configured with.
if echo 'int main() {}' | clang++ -fopenmp=libomp -fsanitize=address,undefined -x c++ -o /dev/null - 2> /dev/null; then
  export CXX=clang++
  export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$PWD/tests/leaks.txt:print_suppressions=0}
fi
run asan build-asan checked_tests shipped

for script in "$@"; do
  echo "== $script"
  "$script"
  case $? in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)) ;;
  esac
done
finish
