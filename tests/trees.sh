# Sourced by distributions.sh and packages.sh: fresh trees of Debian. Uses $here (the checkout), $root, $keep, $minutes.
# Exits with 77 if this machine cannot make trees.
skip() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "needs root"
for tool in debootstrap apt-get unshare git; do
  command -v "$tool" > /dev/null || skip "$tool is not installed"
done
unshare --mount --pid --fork true 2> /dev/null || skip "needs the right to mount"
mirror=$(apt-get indextargets --no-release-info --format "\$(REPO_URI)" 'Created-By: Packages' | grep -m 1 -E '/debian/?$')
[ -n "$mirror" ] || skip "apt has no Debian mirror"

# Makes the folder $work, which is removed at the end, except with $keep. Mounts belong to the commands' own namespaces
# and end with them. Argument: name.
make_root() {
  mkdir -p "$root" && work=$(mktemp -d "$root/cloze-$1.XXXXXX") || exit 1
  trap 'if [ "$keep" = yes ]; then echo "kept: $work" >&2; else rm -rf --one-file-system "$work"; fi' EXIT
  trap 'exit 130' INT TERM
}

# Makes a tree with the checkout in /cloze. Arguments: name of the distribution, folder.
make_tree() {
  timeout --foreground -k 10 30m debootstrap --variant=minbase --include=ca-certificates "$1" "$2" "$mirror" || return 1
  apt-config dump | grep -E '^Acquire::(Check-|Retries|https?::)' > "$2/etc/apt/apt.conf.d/90machine"
  git clone --quiet "$here" "$2/cloze"
}

# Runs a command in /cloze of a tree, with its own pseudo-terminals and /sys, without which MPI's UCX writes errors to
# standard output. After the time limit, all its processes end. Arguments: folder, command.
run_in() {
  timeout --foreground -s KILL "${minutes}m" unshare --mount --pid --fork --kill-child --mount-proc="$1/proc" \
    sh -c 'mount -t sysfs -o ro sysfs "$1/sys" && mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts" &&
      shift && exec "$@"' sh "$1" \
    chroot "$1" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    CLOZE_PRETRAIN_SECONDS="${CLOZE_PRETRAIN_SECONDS:-240}" CLOZE_FINETUNE_SECONDS="${CLOZE_FINETUNE_SECONDS:-75}" \
    bash -c "cd /cloze && $2"
}
