# docker build -t cloze . && docker run --rm -v "$PWD:/work" --user "$(id -u)" cloze --help
# The server: docker run ... --entrypoint /cloze-serve/bin/cloze-serve cloze --model runs/reviews
# Takes the downloads in dist/ if they are there (tools/release.sh), else makes them. See docs/install.md.
ARG BASE=debian:12-slim
FROM ${BASE} AS build
COPY . /src
WORKDIR /src
RUN if ! ls dist/cloze-serve-*.tar.zst; then apt-get update && tools/package/tarball.sh dist; fi && \
    mkdir -p /image/work /image/cloze-serve && \
    tar -C /image --strip-components=1 --zstd -xf dist/cloze-[0-9]*.tar.zst && \
    tar -C /image/cloze-serve --strip-components=1 --zstd -xf dist/cloze-serve-*.tar.zst && \
    install -d -m 1777 /image/tmp && chown 65534 /image/work

FROM scratch
COPY --from=build /image /
USER 65534
WORKDIR /work
ENTRYPOINT ["/bin/cloze"]
CMD ["--help"]
