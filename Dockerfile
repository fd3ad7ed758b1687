# A node in a container: docker build -t nuthatch .
#
#   docker run -p 8080:8080 -v nuthatch:/var/cache/nuthatch -e NUTHATCH_ALLOW_ORIGIN=images.example nuthatch
#
# Also runs with --read-only: it writes only to the volume. Settings are environment variables, or
# flags after `serve`; allowed origins are required. On SIGTERM, responses in progress have 30 s to
# complete (NUTHATCH_DRAIN_TIMEOUT); docker stop waits only 10 s unless -t says otherwise.

FROM swift:6.3-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends libnghttp2-dev libssl-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY Package.swift ./
RUN swift package resolve
COPY Sources Sources
COPY Tests Tests
COPY deploy/setup deploy/setup
RUN bash -c '. deploy/setup \
    && build=(swift build "${served[@]}") \
    && "${build[@]}" \
    && strip -o /nuthatch "$("${build[@]}" --show-bin-path)/nuthatch"'

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends libnghttp2-14 libssl3 ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --system --gid 10001 nuthatch \
    && useradd --system --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin nuthatch \
    && install -d -o nuthatch -g nuthatch -m 0700 /var/cache/nuthatch
COPY --from=build /nuthatch /usr/bin/nuthatch
# A numeric id, so that Kubernetes can verify that it is not root.
USER 10001:10001
VOLUME /var/cache/nuthatch
# The admin port stays on the container's loopback, for the health check.
ENV NUTHATCH_LISTEN=0.0.0.0:8080 NUTHATCH_CACHE_DIR=/var/cache/nuthatch
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["nuthatch", "health"]
ENTRYPOINT ["nuthatch"]
CMD ["serve"]
