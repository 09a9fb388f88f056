# docker build -t cloze . && docker run --rm -v "$PWD:/work" --user "$(id -u)" cloze --help
# Takes the download in dist/ if there is one (tools/release.sh), else makes it. See docs/install.md.
ARG BASE=debian:12-slim
FROM ${BASE} AS build
COPY . /src
WORKDIR /src
RUN if ! ls dist/cloze-*-linux-x86_64.tar.zst; then apt-get update && tools/package/tarball.sh dist; fi && \
    mkdir -p /image/work && tar -C /image --strip-components=1 --zstd -xf dist/cloze-*-linux-x86_64.tar.zst && \
    install -d -m 1777 /image/tmp && chown 65534 /image/work

FROM scratch
COPY --from=build /image /
USER 65534
WORKDIR /work
ENTRYPOINT ["/bin/cloze"]
CMD ["--help"]
