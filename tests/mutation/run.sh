#!/usr/bin/env bash
# run.sh [--jobs N] [--list] [ROW|PATH]...: do the tests notice a mistake? Copies the tree, builds the test programs
# once at -O1 (through ccache, if there is one), and then, for each row of mutations.txt, changes one place,
# builds that row's test program, runs its tests, and restores the file. Prints "killed" or "SURVIVED" for each row.
#
#   ROW, PATH   only rows with this number, or whose file begins with PATH (core/text)
#   --jobs N    workers, each with its own copy and one compiler at a time (2)
#   --list      only checks that each row still matches one place of its file
#
# Exit: 0 every mutation was killed, 1 some survived, 2 a row or the tests before any mutation are wrong.
# Environment: TMPDIR, CLOZE_MUTATION_TREE (a folder for the copies, which is kept for the next time).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd) source=$(cd "$(dirname "$0")/../.." && pwd)
jobs=2 list=no wanted=()
while [ $# -gt 0 ]; do
  case $1 in
    --jobs) jobs=${2:?"--jobs needs a number"}; shift ;;
    --list) list=yes ;;
    -*) sed -n '2,14s/^# \?//p' "$0" >&2; exit 2 ;;
    *) wanted+=("$1") ;;
  esac
  shift
done

# Reads mutations.txt: "FILE[:FUNCTION] | PROGRAM [| GTEST_FILTER]", "- OLD", "+ NEW"; see place.pl.
files=() functions=() programs=() filters=() olds=() news=()
while IFS= read -r line; do
  case $line in
    "- "*) olds+=("${line:2}") ;;
    "+ "* | "+") news+=("${line:2}") ;;
    "" | "#"*) ;;
    *)
      IFS='|' read -r file program filter <<< "${line// | /|}"
      files+=("${file%%:*}") programs+=("$program") filters+=("${filter:-*}")
      case $file in *:*) functions+=("${file#*:}") ;; *) functions+=("") ;; esac ;;
  esac
done < "$here/mutations.txt"
count=${#files[@]}
if [ "${#olds[@]} ${#news[@]}" != "$count $count" ]; then echo "mutations.txt: a row lacks a line" >&2; exit 2; fi

selected() {  # row
  [ ${#wanted[@]} -eq 0 ] && return 0
  local want
  for want in "${wanted[@]}"; do
    [[ $want == "$(($1 + 1))" || ${files[$1]} == "$want"* ]] && return 0
  done
  return 1
}

rows=() wrong=0
for ((row = 0; row < count; ++row)); do
  selected $row || continue
  rows+=("$row")
  found=$("$here/place.pl" "$source/${files[$row]}" "${functions[$row]}" "${olds[$row]}")
  [ "$found" = 1 ] || { echo "row $((row + 1)), ${files[$row]}, ${functions[$row]:-whole file}: ${found:-no} places are \"${olds[$row]}\": expected 1" >&2; wrong=1; }
done
[ $wrong -eq 0 ] || exit 2
[ ${#rows[@]} -gt 0 ] || { echo "no such row" >&2; exit 2; }
[ $list = no ] || { echo "${#rows[@]} rows match"; exit 0; }

tree=${CLOZE_MUTATION_TREE:-$(mktemp -d)} || exit 2
[ -n "${CLOZE_MUTATION_TREE:-}" ] || trap 'rm -rf "$tree"' EXIT
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$tree} CCACHE_NOHASHDIR=1 OMP_WAIT_POLICY=passive
export -n GTEST_BRIEF

# Rows of a test program go to one worker, so that each program is built once.
declare -A worker_of rows_of programs_of
mapfile -t order < <(for row in "${rows[@]}"; do echo "${programs[$row]}"; done | sort | uniq -c | sort -rn | awk '{ print $2 }')
load=()
for ((w = 0; w < jobs; ++w)); do load+=(0) rows_of[$w]='' programs_of[$w]=''; done
for program in "${order[@]}"; do
  least=0
  for ((w = 1; w < jobs; ++w)); do [ "${load[$w]}" -ge "${load[$least]}" ] || least=$w; done
  worker_of[$program]=$least programs_of[$least]+=" $program"
  for row in "${rows[@]}"; do [ "${programs[$row]}" != "$program" ] || load[least]=$((load[least] + 1)); done
done
for row in "${rows[@]}"; do rows_of[${worker_of[${programs[$row]}]}]+=" $row"; done

build() {  # worker, log, targets
  local at=$tree/$1 log=$2
  shift 2
  timeout -k 10 3600 nice -n 10 ninja -C "$at/build" -j1 "$@" > "$log" 2>&1
}

# Runs the tests of a row up to the first that fails; fails if one does, if the filter names none, or after the limit.
run() {  # worker, row, log, seconds
  local at=$tree/$1 program=${programs[$2]} arguments=("--gtest_filter=${filters[$2]}" --gtest_fail_fast)
  case $program in *_fuzz) arguments=("$at/tests/fuzz/corpus/${program%_fuzz}") ;; esac
  timeout -k 10 "$4" nice -n 10 "$(find "$at/build" -name "$program" -type f -perm -u+x)" "${arguments[@]}" > "$3" 2>&1 &&
    ! grep -q '^\[==========\] 0 tests' "$3"
}

mutate() {  # worker, row
  local at=$tree/$1 row=$2 file=${files[$2]} log=$tree/$1/row.log verdict
  "$here/place.pl" "$source/$file" "${functions[$row]}" "${olds[$row]}" "${news[$row]}" > "$at/$file"
  if ! build "$1" "$log" "${programs[$row]}"; then
    verdict="DOES NOT COMPILE"
    grep -m 3 -E 'error|FAILED' "$log" >&2
  elif run "$1" "$row" "$log" "${limits["${programs[$row]} ${filters[$row]}"]}"; then
    verdict=SURVIVED
  else
    verdict=killed
  fi
  cp "$source/$file" "$at/$file"
  printf '%-9s %3d  %s: %s\n' "$verdict" $((row + 1)) "$file" "${news[$row]:-(no line)}" | tee -a "$tree/verdicts"
}

mkdir -p "$tree" && : > "$tree/verdicts"
for ((w = 0; w < jobs; ++w)); do
  [ -n "${rows_of[$w]}" ] || continue
  at=$tree/$w
  mkdir -p "$at" && find "$at" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
  (cd "$source" && git ls-files -z --cached --others --exclude-standard | xargs -0 cp -p --parents -t "$at") || exit 2
  launcher=$(command -v ccache || true)
  cmake -S "$at" -B "$at/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O1 \
    -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" > "$at.log" 2>&1 || { tail -n 20 "$at.log" >&2; exit 2; }
done
echo "${#rows[@]} mutations; building ${#order[@]} test programs in $tree" >&2
pids=()
for ((w = 0; w < jobs; ++w)); do
  [ -n "${rows_of[$w]}" ] || continue
  (
    read -ra targets <<< "${programs_of[$w]}"
    build $w "$tree/$w.log" "${targets[@]}" || { tail -n 20 "$tree/$w.log" >&2; exit 2; }
    declare -A limits  # seconds of each row's tests: several times what they take without a mutation
    for row in ${rows_of[$w]}; do
      key="${programs[$row]} ${filters[$row]}"
      [ -z "${limits[$key]:-}" ] || continue
      began=$SECONDS
      run $w "$row" "$tree/$w.log" 1200 || { echo "row $((row + 1)): $key fails without a mutation, or names no test" >&2; tail -n 20 "$tree/$w.log" >&2; exit 2; }
      limits[$key]=$((60 + 4 * (SECONDS - began)))
    done
    for row in ${rows_of[$w]}; do mutate $w "$row"; done
  ) &
  pids+=($!)
done
failed=0
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
survived=$(grep -c '^SURVIVED' "$tree/verdicts") killed=$(grep -c '^killed' "$tree/verdicts")
echo "$killed killed, $survived survived, of ${#rows[@]}"
[ $failed -eq 0 ] && [ $((survived + killed)) -eq ${#rows[@]} ] || exit 2
[ "$survived" -eq 0 ]
