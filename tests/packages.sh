#!/usr/bin/env bash
# packages.sh [--root DIR] [--keep] [--short] [BUILD]: makes the Debian packages from a build (default: build), installs them in a
# fresh tree of this machine's release of Debian, and tries them there: the README's commands, the tutorials, man pages,
# completion, removal; and lintian. Prints one line per step. Exit: 0 all passed, 1 something failed, 77 not
# possible on this machine. Needs root, debootstrap and a network; some 700 MB in DIR (default: $TMPDIR).
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
minutes=${CLOZE_LIMIT_MINUTES:-30} root=${TMPDIR:-/tmp} keep=no short=no build=$here/build
while [ $# -gt 0 ]; do
  case $1 in
    --root) root=${2:?"--root needs a folder"}; shift ;;
    --keep) keep=yes ;;
    --short) short=yes ;;  # without the tutorials
    -*) echo "usage: packages.sh [--root DIR] [--keep] [--short] [BUILD]" >&2; exit 2 ;;
    *) build=$(realpath "$1") ;;
  esac
  shift
done
source "$here/tests/trees.sh"
release=$(. /etc/os-release && [ "$ID" = debian ] && echo "$VERSION_CODENAME") || skip "this is not Debian"
[ -x "$build/cloze" ] || { echo "packages.sh: $build/cloze: not built" >&2; exit 1; }
make_root packages
tree=$work/$release
mkdir -m 755 "$tree"
source "$here/tests/steps.sh"
in_tree() { step "$1" run_in "$tree" "$2"; }

package() { cmake --build "$build" --target cloze libcloze cloze-serve && (cd "$work" && cpack --config "$build/CPackConfig.cmake" -G DEB); }
step "package" package || exit 1
step "tree of $release" make_tree "$release" "$tree" || exit 1
cp "$work"/*.deb "$tree/"
in_tree "install" "apt-get update && apt-get install -y --no-install-recommends /*.deb" || exit 1
in_tree "README" "useradd -m user && su user -c 'tests/e2e/readme.sh /usr/bin/cloze'"
[ $short = yes ] || in_tree "tutorials" "su user -c 'tests/e2e/docs.sh /usr/bin/cloze'"
in_tree "library" "apt-get install -y --no-install-recommends g++ cmake make pkg-config python3-numpy && python3 -c 'import cloze; cloze.version()' && tests/library/python.sh /usr/bin/cloze /usr/lib/x86_64-linux-gnu/libcloze.so.0 &&
  cc -std=c99 tests/library/project/answers.c \$(pkg-config --cflags --libs cloze) -o /var/tmp/answers && ldd /var/tmp/answers | grep -q 'libcloze.so.0 => /' &&
  cmake -S tests/library/project -B /var/tmp/outside && cmake --build /var/tmp/outside"
in_tree "server" "tests/serve/end_to_end.sh /usr/bin/cloze /usr/bin/cloze-serve"
in_tree "tools for checks" "apt-get install -y --no-install-recommends man-db zsh fish lintian"
in_tree "man pages" "man cloze-finetune | grep -q 'output.directory' && whatis cloze-spec-check && [ -z \"\$(for page in /usr/share/man/man1/cloze*.gz; do man --warnings -l \$page 2>&1 > /dev/null; done)\" ]"
in_tree "completion" "zsh -n /usr/share/zsh/vendor-completions/_cloze && fish -n /usr/share/fish/vendor_completions.d/cloze.fish &&
  fish -c 'complete -C \"cloze fin\"' | grep -q finetune && fish -c 'complete -C \"cloze spec ch\"' | grep -q check"
in_tree "lintian" "lintian --fail-on error,warning /*.deb"
in_tree "removal" "apt-get purge -y cloze cloze-serve libcloze0 && ! command -v cloze cloze-serve && [ ! -e /usr/share/doc/cloze ]"
exit $failed
