# Sourced by packages.sh and tarball.sh. Uses $work; sets $failed.
failed=0

# Runs a step and prints how it ended. Arguments: name, command.
step() {
  local name=$1 began
  began=$(date +%s)
  shift
  if "$@" > "$work/log" 2>&1; then
    echo "$name: ok, $(($(date +%s) - began)) s"
  else
    echo "$name: FAILED"
    tail -n 40 "$work/log" >&2
    failed=1
    return 1
  fi
}
