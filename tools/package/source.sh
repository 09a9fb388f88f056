# Sourced by onednn.sh and microhttpd.sh: the source packages of Debian. Uses $work, a folder for temporary files.

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
