# Sourced by distributions.sh, packages.sh and other_debian.sh: trees of Debian. Uses $here (the checkout), $root, $keep,
# $minutes.
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

# Makes a tree. Arguments: name of the distribution, folder.
make_base() {
  timeout --foreground -k 10 30m debootstrap --variant=minbase --include=ca-certificates "$1" "$2" "$mirror" || return 1
  apt-config dump | grep -E '^Acquire::(Check-|Retries|https?::)' > "$2/etc/apt/apt.conf.d/90machine"
}

# Makes a tree with the checkout in /cloze. Arguments: name of the distribution, folder.
make_tree() {
  make_base "$1" "$2" && git clone --quiet "$here" "$2/cloze"
}

# True if the mirror offers a distribution. Argument: its name.
mirror_answers() {
  local file
  file=$(mktemp -u) || return 1
  timeout 60 /usr/lib/apt/apt-helper download-file "${mirror%/}/dists/$1/Release" "$file" > /dev/null 2>&1
  local status=$?
  rm -f "$file"
  return $status
}

# Runs a command in /cloze of a tree, with its own pseudo-terminals and /sys, without which MPI's UCX writes errors to
# standard output. After the time limit, all its processes end. Arguments: folder, command.
run_in() {
  timeout --foreground -s KILL "${minutes}m" unshare --mount --pid --fork --kill-child --mount-proc="$1/proc" \
    sh -c 'mount -t sysfs -o ro sysfs "$1/sys" && mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts" &&
      shift && exec "$@"' sh "$1" \
    chroot "$1" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    ${CLOZE_PRETRAIN_STEPS:+CLOZE_PRETRAIN_STEPS="$CLOZE_PRETRAIN_STEPS"} ${CLOZE_FINETUNE_STEPS:+CLOZE_FINETUNE_STEPS="$CLOZE_FINETUNE_STEPS"} \
    bash -c "cd /cloze && $2"
}
