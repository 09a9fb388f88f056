#!/usr/bin/env bash
# microhttpd.sh DIR: makes the static libmicrohttpd of the download, DIR/lib/libmicrohttpd.a and DIR/include, from Debian's
# source package: without TLS, authentication and forms. Does nothing if DIR is complete. Needs apt-get, dpkg-dev, a C
# compiler, make and a network.
set -euo pipefail
version=1.0.1-4 suite=trixie
sha256=a89e09fc9b4de34dde19f4fcb4faaa1ce10299b9908db1132bbfa1de47882b94
source "$(dirname "$0")/source.sh"
begin_library "$@"
fetch_source libmicrohttpd $version $suite $sha256
echo "microhttpd.sh: compiles" >&2
{ cd "$source" && ./configure --prefix="$root" --disable-shared --enable-static --disable-https --disable-bauth --disable-dauth \
    --disable-postprocessor --disable-cookie --disable-httpupgrade --disable-curl --disable-doc --disable-examples --disable-tools \
    CFLAGS="-O2 -fPIE -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -ffile-prefix-map=$work=." &&
  make -C src/include install && make -C src/microhttpd install; } > "$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
end_library COPYING
