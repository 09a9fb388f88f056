#!/usr/bin/env bash
# bundle.sh LIBRARY FOLDER: copies to FOLDER (within LIBRARY's folder, or that folder) the shared libraries that LIBRARY
# needs and a bare system with Python lacks, makes LIBRARY find them there, and strips it. Prints the Debian package of
# each. Exit: 77 without patchelf.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: bundle.sh LIBRARY FOLDER" >&2; exit 2; }
command -v patchelf > /dev/null || { echo "skipped: patchelf is not installed (apt-get install patchelf)" >&2; exit 77; }
library=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
ldd "$library" | awk '$3 ~ "^/" && $1 !~ /^(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)\.so/ { print $3 }' |
  while read -r needed; do
    cp -L "$needed" "$folder/"
    patchelf --set-rpath "\$ORIGIN" "$folder/$(basename "$needed")"
    { dpkg -S "$needed" "$(realpath "$needed")" 2> /dev/null || true; } | sed -n '1s/:.*//p'
  done | sort -u
strip --strip-unneeded "$library"
patchelf --set-rpath "\$ORIGIN/$(realpath --relative-to="$(dirname "$library")" "$folder")" "$library"
