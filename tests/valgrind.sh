#!/usr/bin/env bash
# Runs the unit tests of core/text and core/tensor under Valgrind (apt-get install valgrind): no errors, no leaks.
# Arguments: more test programs.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

status=0
for name in text tensor "$@"; do
  valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
    "build/tests/${name}_test" --gtest_brief=1 --gtest_filter="${FILTER:-*}" || status=1
done
exit $status
