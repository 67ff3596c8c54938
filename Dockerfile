# syntax=docker/dockerfile:1
# Base images are pinned by the digest of their multi-platform index; .github/dependabot.yml asks for newer ones.

FROM node:24-slim@sha256:a9f5f7c91a432850b2a8a7797adf5eadb6c733ceed61167806cee7ea7fbc29df AS node

# Compiles, builds the Go programs, and collects what the image holds. test/node/image.ts runs this stage without Docker.
FROM golang:1.26@sha256:3c3e25a4da13fd0478eed2df1eb35a0e667094a7124d3993a6a1d30f71c17e79 AS build
COPY --from=node /usr/local/ /usr/local/
WORKDIR /build/app
COPY package.json package-lock.json ./
COPY tools/node/package.json ./tools/node/
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json tsconfig.types.json LICENSE ./
COPY src ./src
COPY providers ./providers
COPY stacks ./stacks
COPY bench ./bench
COPY templates ./templates
COPY tools ./tools
RUN npm run build
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache node tools/image.mjs ../root

# Runs as nobody in particular and writes to nothing but KINDSTACK_WORK_DIR, /tmp and a file:// backend.
FROM scratch
COPY --from=build /build/root/ /
WORKDIR /app
ENV PATH=/usr/local/bin NODE_ENV=production HOME=/tmp USER=kindstack KINDSTACK_WORK_DIR=/tmp/kindstack
# Half of the container's memory limit is for Node.js; the rest is for the engine and for what is not heap.
ENV NODE_OPTIONS=--max-old-space-size-percentage=50
# The C library keeps memory for each of Node.js' threads otherwise: 18 MiB at rest with 1,000 objects. Without a fixed threshold, it
# keeps large blocks between small ones after a burst: 4 MiB.
ENV MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=131072
# Further kinds, each a folder: a layer of an image that is built from this one, or a volume.
ENV KINDSTACK_KINDS_DIRECTORY=/app/kinds
ENV KINDSTACK_ENGINE=/usr/local/bin/kindstack-engine
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["node", "/app/dist/src/cli/main.js"]
CMD ["run"]
