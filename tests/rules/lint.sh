#!/usr/bin/env bash
# lint.sh BUILD [format] [clang] [tidy] [tidy-all]: checks the tree with LLVM's tools. BUILD is a
# folder in which the program has been built; its compile_commands.json gives the flags.
#   format    clang-format 14 would change no file
#   clang     clang++ compiles every product file; clang 14, or any with CI=true, without a warning
#   tidy      clang-tidy (.clang-tidy) on the product files of the last commit and the working tree
#   tidy-all  clang-tidy on every product file (about 45 CPU minutes)
# Without a list: format clang tidy. Other versions of clang-format and clang-tidy find other things, so they are
# not used. Exit: 0 clean, 1 findings, 77 a tool is missing or has another version.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
build=${1:?"usage: lint.sh BUILD [format] [clang] [tidy] [tidy-all]"}
shift
checks=("$@")
[ $# -gt 0 ] || checks=(format clang tidy)
jobs=${JOBS:-$(nproc)}

# Arguments: tool, Debian packages.
need() {
  command -v "$1" > /dev/null && return
  echo "skipped: $1 is not installed (apt-get install $2)"
  exit 77
}

version_14() { "$1" --version | grep -q 'version 14\.'; }

# Arguments: tool. Its Debian package has the same name.
need_14() {
  need "$1" "$1"
  version_14 "$1" && return
  echo "skipped: $1 14 is needed, here is $("$1" --version | grep -o 'version [0-9.]*')"
  exit 77
}

# The compile commands of the product, one per line, with clang++ in place of the compiler.
commands() {
  sed -n 's/^ *"command": "\(.*\)",$/\1/p' "$build/compile_commands.json" | sed 's/\\\(["\\]\)/\1/g' |
    grep -E -- "-c ($PWD/(core|encoder|proto|tasks|tools)|$build/CMakeFiles/cloze[^ ]*/Unity)/" |
    sed -E 's/^.*\/(c|g|clang)\+\+[^ ]* /clang++ /; s/ -o [^ ]+ -c / -c /; s/ --param=[^ ]+//g; s/ -include [^ ]*cmake_pch[^ ]*//g'
}

format() {
  need_14 clang-format
  find core encoder proto tasks tests tools \( -name '*.cc' -o -name '*.h' \) -print0 |
    xargs -0 -P "$jobs" -n 20 clang-format --dry-run --Werror 2>&1 | grep 'error:'
  [ "${PIPESTATUS[1]}" -eq 0 ]
}

clang() {
  need clang++ "clang libomp-dev"
  local werror=
  if version_14 clang++ || [ "${CI:-}" = true ]; then werror=-Werror; fi
  commands | sed "s/ -Werror / /; s/ -c / -fsyntax-only $werror -Wno-unknown-warning-option /" | xargs -d '\n' -P "$jobs" -n 1 sh -c
}

# Reads names of files. compile_commands.json of a build with CLOZE_UNITY lacks those that are compiled in groups: they
# get the include paths and definitions of the commands of `cloze`.
tidy() {
  local flags file
  flags=$(commands | grep -m 1 cloze_tools | grep -oE -- ' (-isystem [^ ]+|-I ?[^ ]+|-D[^ ]+|-std=[^ ]+|-fopenmp[^ ]*)' | tr -d '\n')
  while read -r file; do
    if grep -qF "\"$PWD/$file\"" "$build/compile_commands.json"; then
      echo "clang-tidy --quiet -p '$build' --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused-command-line-argument $file"
    else
      echo "clang-tidy --quiet $file --$flags"
    fi
  done | xargs -r -d '\n' -P "$jobs" -I COMMAND sh -c 'COMMAND 2> /dev/null'
}

changed() {
  { git diff --name-only HEAD~1 HEAD; git diff --name-only HEAD; git ls-files --others --exclude-standard; } 2> /dev/null |
    sort -u | while read -r file; do
      if [[ $file =~ ^(core|encoder|proto|tasks|tools)/.*\.cc$ && -f $file ]]; then echo "$file"; fi
    done
}

build=$(cd "$build" && pwd) || exit 1
status=0
for check in "${checks[@]}"; do
  case $check in
    format) format || status=1 ;;
    clang) clang || status=1 ;;
    tidy)
      need_14 clang-tidy
      need git git
      changed | tidy || status=1
      ;;
    tidy-all)
      need_14 clang-tidy
      find core encoder proto tasks tools -name '*.cc' | sort | tidy || status=1
      ;;
    *) echo "lint.sh: unknown check $check" >&2; exit 2 ;;
  esac
done
exit $status
