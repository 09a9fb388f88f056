# docker build -t cloze . && docker run --rm -v "$PWD:/work" --user "$(id -u)" cloze --help
# See docs/install.md.
FROM debian:12-slim AS build
COPY . /src
WORKDIR /src
RUN apt-get update && tools/setup.sh dpkg-dev file && \
    cmake -S . -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCLOZE_TESTS=OFF && \
    cmake --build /build --target cloze && cd /build && cpack -G DEB

FROM debian:12-slim
COPY --from=build /build/cloze_*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/cloze_*.deb && \
    rm -rf /tmp/cloze_*.deb /var/lib/apt/lists/* && useradd --no-create-home cloze && install -d -o cloze /work
USER cloze
WORKDIR /work
ENTRYPOINT ["cloze"]
CMD ["--help"]
