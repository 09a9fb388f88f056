# Sourced by onednn.sh and microhttpd.sh, which make a static library of the downloads from a source package of Debian.

# Sets $root to the folder of the library and $work to one for temporary files. Ends the script if the library is
# complete. Needs $version. Arguments: those of the script.
begin_library() {
  [ $# -eq 1 ] || { echo "usage: $(basename "$0") DIR" >&2; exit 2; }
  mkdir -p "$1"
  root=$(cd "$1" && pwd)
  stamp=$root/$version-$(cat "$0" "${BASH_SOURCE[0]}" | sha256sum | cut -c1-12)
  [ ! -e "$stamp" ] || exit 0
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
}

# Adds the licences and marks the library as complete. Arguments: names of files in $source.
end_library() {
  rm -f "$root"/[0-9]*
  mkdir -p "$root/licenses"
  (cd "$source" && cp "$@" "$root/licenses/")
  touch "$stamp"
}

# Fetches and unpacks a source package from the mirrors of this machine, with apt's keys and folders of its own, and
# sets $source to its folder. Arguments: package, version, release of Debian, SHA-256 of the archive of its authors.
fetch_source() {
  local apt=$work/apt mirror keys=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "$1: fetches the source" >&2
  mkdir -p "$apt/lists/partial" "$apt/cache"
  mirror=$(apt-get indextargets --no-release-info --format "\$(REPO_URI)" 'Created-By: Packages' | grep -m 1 -E '/debian/?$')
  echo "deb-src [signed-by=$keys] $mirror $3 main" > "$apt/sources.list"
  local from=(-o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root)
  { apt-get "${from[@]}" -q update && (cd "$work" && apt-get "${from[@]}" -q source "$1=$2"); } > "$work/log" 2>&1 ||
    { tail -n 5 "$work/log" >&2; return 1; }
  echo "$4  $(echo "$work/$1"_*.orig.tar.?z)" | sha256sum --quiet -c
  source=$(echo "$work/$1"-*/)
}
