# Two stages: the first has a compiler, the second only the program.
#
#   docker build -t galley .
#   docker run -p 127.0.0.1:8080:8080 -v galley:/var/lib/galley/data galley
#
# and open http://localhost:8080/. For another name or port set
# -e GALLEY_SERVER__PUBLIC_URL=https://galley.example.com. The volume stores the documents, unless
# -e GALLEY_DATABASE__URL=postgres://… names another database. A stop takes at most
# GALLEY_SERVER__LINGER + GALLEY_SERVER__DRAIN + 25 s (docker stop --time 45): give it that long, so that
# the server closes every socket in order.

FROM rust:1.95-trixie@sha256:f49565f188ee00bc2a18dd418183f2c5f23ef7d6e691890517ed341a598f67c3 AS build
# One file of it is in the image: the font of PDF exports, under the SIL Open Font License 1.1.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends fonts-noto-cjk \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# The layer of the dependencies, which changes with the manifests alone: an empty program with the same ones.
COPY Cargo.toml Cargo.lock ./
COPY src/core/Cargo.toml src/core/
COPY src/domain/Cargo.toml src/domain/
COPY src/files/Cargo.toml src/files/
COPY src/locks/Cargo.toml src/locks/
COPY src/sql/Cargo.toml src/sql/
COPY src/yjs/Cargo.toml src/yjs/
RUN touch src/lib.rs src/core/lib.rs src/domain/lib.rs src/files/lib.rs src/locks/lib.rs src/sql/lib.rs src/yjs/lib.rs \
    && echo 'fn main() {}' | tee build.rs > src/main.rs \
    && cargo build --release --locked --features pdf --bin galley
# The layer of the program, which no edit of a test rebuilds.
COPY build.rs ./
COPY config config
COPY src src
COPY static static
# Cargo compares times, and those of the copies may be older than the empty program.
RUN find build.rs config src static -type f -exec touch {} + \
    && cargo build --release --locked --features pdf --bin galley

FROM debian:trixie-slim@sha256:3a39a0592364683e6bab97937b72cad5a8fa6dcbbee90edb3bb48c7f8e94f258
# The certificates verify the server behind rediss:// and the push services of browsers. (PostgreSQL's
# certificate is verified against the public authorities in the program, or against sslrootcert.)
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --system --gid 999 galley \
    && useradd --system --uid 999 --gid 999 --home-dir /var/lib/galley --shell /usr/sbin/nologin galley \
    && install --directory --owner galley --group galley --mode 0700 \
        /var/lib/galley /var/lib/galley/data
COPY --from=build /src/target/release/galley /usr/local/bin/galley
COPY --from=build /usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc /usr/share/fonts/opentype/noto/
COPY --from=build /usr/share/doc/fonts-noto-cjk/copyright /usr/share/doc/fonts-noto-cjk/
LABEL org.opencontainers.image.title="Galley" \
    org.opencontainers.image.description="A live review server: one writer and one reviewer on one document" \
    org.opencontainers.image.licenses="MIT OR Apache-2.0" \
    org.opencontainers.image.version="0.1.0"
# By its number: Kubernetes compares it for `runAsNonRoot`.
USER 999:999
WORKDIR /var/lib/galley
# The SQLite database, if any, the two secrets and the key of pushes. A reader of the volume can sign in as every user.
VOLUME /var/lib/galley/data
ENV GALLEY_SERVER__LISTEN=0.0.0.0:8080 \
    GALLEY_EXPORTS__FONTS=/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["galley", "healthcheck"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["galley"]
CMD ["serve"]
