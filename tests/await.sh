# Sourced by scripts that start a server.

# Waits until a command succeeds, at most 60 seconds. Arguments: the command.
await() {
  for _ in $(seq 600); do "$@" > /dev/null 2>&1 && return; sleep 0.1; done
  echo "$(basename "$0"): in vain: $*" >&2
  return 1
}
