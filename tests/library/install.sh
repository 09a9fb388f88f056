#!/usr/bin/env bash
# install.sh CLOZE BUILD: installs the build into an empty folder and builds projects in C and C++ against it, with
# find_package and with pkg-config. Their answers are those of `cloze predict`, also where a comma separates decimals.
# The library shows the names in cloze.map only, and loads beside other copies of what it uses.
set -euo pipefail
cloze=$(realpath "$1") build=$(realpath "$2")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "install.sh: $*" >&2; exit 1; }
run() { "$@" > "$work/log" 2>&1 || { cat "$work/log" >&2; fail "failed: $*"; }; }
cd "$work"

. "$root/tests/library/model.sh"
for i in $(seq 50); do printf 'Number %d, the %s is wrong: 3,5 of 7.25.\n' "$i" "$(sed -n "$((i % 4 + 1))p" <<< $'parcel\ncharge\nbox\ncard')"; done > texts.txt
printf '\nWärme\n' >> texts.txt
"$cloze" predict --model model texts.txt > expected
same() { cmp "$1" expected || fail "$2: other answers than cloze predict"; }

run cmake --install "$build" --prefix "$work/prefix"
libraries=$(dirname "$(find prefix -name libcloze.so.0)")
listed=$(sed -nE 's/^ +(cloze_[a-z]+);/\1/p' "$root/tools/library/cloze.map" | sort)
shown=$(nm -D --defined-only "$libraries/libcloze.so.0" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort)
[ "$shown" = "$listed" ] || fail "symbols: $(diff <(echo "$shown") <(echo "$listed"))"

run cmake -S "$root/tests/library/project" -B cmake-project -DCMAKE_PREFIX_PATH="$work/prefix"
run cmake --build cmake-project
for program in answers_c answers_cc; do
  "cmake-project/$program" model < texts.txt > found || fail "$program: status $?"
  same found "$program with find_package"
done

if command -v python3 > /dev/null; then
  PYTHONPATH=prefix/lib/python3/dist-packages PYTHONDONTWRITEBYTECODE=1 python3 -c 'import cloze; print(cloze.load("model").predict("card")["label"])' > found
  [ "$("$cloze" predict --model model <<< card | sed -nE 's/^\{"label": "([a-z]+)".*/\1/p')" = "$(cat found)" ] || fail "Python: $(cat found)"
fi
export LD_LIBRARY_PATH=$work/$libraries
if command -v pkg-config > /dev/null; then
  export PKG_CONFIG_PATH=$work/$libraries/pkgconfig
  [ "$(pkg-config --modversion cloze)" = "$("$cloze" version | sed -nE '1s/^cloze ([0-9.]+).*/\1/p')" ] || fail "cloze.pc: another version"
  read -ra flags < <(pkg-config --cflags --libs cloze)
  run cc -std=c99 -Wall -Werror -pedantic "$root/tests/library/project/answers.c" "${flags[@]}" -o c
  run c++ -std=c++17 -Wall -Werror -pedantic "$root/tests/library/project/answers.cc" "${flags[@]}" -o cc
  for program in c cc; do ./$program model < texts.txt > found && same found "$program with pkg-config"; done
fi

# A locale with decimal commas.
if mkdir locales && localedef -i de_DE -f UTF-8 locales/de_DE.UTF-8 2> /dev/null; then
  for program in answers_c answers_cc; do
    LOCPATH=$work/locales LC_ALL=de_DE.UTF-8 "cmake-project/$program" model < texts.txt > found || fail "$program in German: status $?"
    same found "$program in German"
  done
else
  echo "not checked: a locale with decimal commas (no localedef)"
fi

# Memory does not grow: 20 pages are those of the first calls of each size.
grown=$(cmake-project/answers_c model 20000 < texts.txt | sed -nE 's/.*"pages": (-?[0-9]+).*/\1/p')
[ "$grown" -le 20 ] || fail "20,000 calls: $grown pages more"
echo "install: ok"
