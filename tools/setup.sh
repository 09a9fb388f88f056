#!/usr/bin/env bash
# Installs the missing Debian packages for building and testing Cloze. Arguments: more packages. Does
# nothing, and needs no network, if all are installed.
set -euo pipefail

packages=(g++ cmake ninja-build libdnnl-dev libprotobuf-dev protobuf-compiler libabsl-dev libgtest-dev libgmock-dev
          nlohmann-json3-dev libutf8proc-dev libcli11-dev libxxhash-dev
          zlib1g-dev liblzma-dev libzstd-dev libopenmpi-dev openmpi-bin libmicrohttpd-dev "$@")

if ! command -v dpkg-query > /dev/null; then
  echo "setup: this is no Debian or Ubuntu; install by hand what third_party/README.md lists" >&2
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2> /dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo > /dev/null; then
    echo "setup: missing packages, and neither root nor sudo to install them. As root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "setup: installing ${missing[*]}" >&2
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}")
# Fetches the package lists only if the first try fails: often they are there.
"${install[@]}" > /dev/null 2>&1 || { "${as_root[@]}" apt-get update -q >&2 && "${install[@]}" >&2; }
