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

FROM rust:1.95-bookworm AS build
# One file of it is in the image: the font of PDF exports, under the SIL Open Font License 1.1.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends fonts-noto-cjk \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY Cargo.toml Cargo.lock build.rs ./
COPY config config
COPY src src
COPY static static
COPY tests tests
RUN cargo build --release --locked --features pdf --bin galley

FROM debian:bookworm-slim
# The certificates verify the server behind rediss:// and the push services of browsers. (PostgreSQL's
# certificate is verified against the public authorities in the program, or against sslrootcert.)
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --home-dir /var/lib/galley --shell /usr/sbin/nologin galley \
    && install --directory --owner galley --group galley --mode 0700 \
        /var/lib/galley /var/lib/galley/data
COPY --from=build /src/target/release/galley /usr/local/bin/galley
COPY --from=build /usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc /usr/share/fonts/opentype/noto/
COPY --from=build /usr/share/doc/fonts-noto-cjk/copyright /usr/share/doc/fonts-noto-cjk/
USER galley
WORKDIR /var/lib/galley
# The SQLite database, if any, the two secrets and the key of pushes. A reader of the volume can sign in as every user.
VOLUME /var/lib/galley/data
ENV GALLEY_SERVER__LISTEN=0.0.0.0:8080 \
    GALLEY_EXPORTS__FONTS=/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc
EXPOSE 8080
# The image has no curl: bash opens the TCP connection itself.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /healthz HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && test \"$status\" = 200"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["galley"]
CMD ["serve"]
