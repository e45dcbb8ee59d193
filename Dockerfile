# The wheel is built with a compiler; the image has Python and the wheel, and runs as its own user.
FROM python:3.11-slim AS build
# Debian's compiler of the base image's release is the one to use, whichever version that is.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels .

FROM python:3.11-slim
# The wheels come from the stage above, not from an index.
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels --no-compile millbeck \
    && useradd --system --uid 1000 --create-home millbeck \
    && install -d -o millbeck -g millbeck /var/lib/millbeck
COPY ops/docker/server.properties /etc/millbeck/server.properties
COPY --chmod=755 ops/docker/entrypoint.sh /usr/local/bin/millbeck-entrypoint
# The user may not write beside the installed modules: compiled once, they are kept in its home for the health check.
ENV PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=/home/millbeck/.cache/bytecode
USER 1000
VOLUME /var/lib/millbeck
EXPOSE 9092 9404
HEALTHCHECK --interval=10s --timeout=6s --start-period=20s \
    CMD ["millbeck", "doctor", "--ready", "-b", "127.0.0.1:19092"]
ENTRYPOINT ["millbeck-entrypoint"]
