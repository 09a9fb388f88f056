# Sourced by packages.sh, tarball.sh, image.sh and other_debian.sh. Sets $failed. The output of a step goes to $log
# (default: $work/log); lines begin with $prefix, which may be unset.
failed=0

# Runs a step and prints how it ended. Arguments: name, command.
step() {
  local title=${prefix:-}$1 began output=${log:-${work:-}/log}
  began=$(date +%s)
  shift
  if "$@" > "$output" 2>&1; then
    echo "$title: ok, $(($(date +%s) - began)) s"
  else
    echo "$title: FAILED"
    { grep -E 'error:|FAILED|Failure' "$output" | head -n 20; tail -n 40 "$output"; } >&2
    failed=1
    return 1
  fi
}
