# Two stages: one that has a compiler, one that has nothing but the program.
#
#   docker build -t galley .
#   docker run -p 127.0.0.1:8080:8080 -v galley:/var/lib/galley/data galley
#
# and open http://localhost:8080/. Under another name or port, say so:
# -e GALLEY_SERVER__PUBLIC_URL=https://galley.example.com. Documents are in the volume, unless
# -e GALLEY_DATABASE__URL=postgres://… says otherwise. Stop it with at least GALLEY_SERVER__DRAIN
# and 20 s to spare (docker stop --time 40), so that everybody is sent elsewhere in order.

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock build.rs ./
COPY config config
COPY src src
COPY static static
COPY tests tests
RUN cargo build --release --locked --bin galley

FROM debian:bookworm-slim
# Certificates are for rediss://, whose other end must prove who it is. (PostgreSQL's is held against
# the public authorities, which are in the program, or against sslrootcert.)
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --home-dir /var/lib/galley --shell /usr/sbin/nologin galley \
    && install --directory --owner galley --group galley --mode 0700 \
        /var/lib/galley /var/lib/galley/data
COPY --from=build /src/target/release/galley /usr/local/bin/galley
USER galley
WORKDIR /var/lib/galley
# The database, if it is SQLite, and the two secrets. Whoever can read it is everybody.
VOLUME /var/lib/galley/data
ENV GALLEY_SERVER__LISTEN=0.0.0.0:8080
EXPOSE 8080
# There is no curl in here, and none is needed: bash can speak TCP.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /healthz HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && test \"$status\" = 200"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["galley"]
CMD ["serve"]
