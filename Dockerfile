# syntax=docker/dockerfile:1
# Base images are pinned by the digest of their multi-platform index; .github/dependabot.yml asks for newer ones.

# The Pulumi CLI and the server that runs its commands, from the module that tools/pulumi pins and go.sum authenticates.
FROM golang:1.26@sha256:3c3e25a4da13fd0478eed2df1eb35a0e667094a7124d3993a6a1d30f71c17e79 AS pulumi
WORKDIR /build
COPY tools/pulumi ./
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -mod=mod -trimpath \
    -ldflags "-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.260.0" \
    -o /pulumi github.com/pulumi/pulumi/pkg/v3/cmd/pulumi && \
    CGO_ENABLED=0 go build -mod=mod -trimpath \
    -ldflags "-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.260.0 -X main.Version=3.260.0-2" \
    -o /pulumi-server ./server

# What is compiled, and the packages that it runs with.
FROM node:24-slim@sha256:a9f5f7c91a432850b2a8a7797adf5eadb6c733ceed61167806cee7ea7fbc29df AS build
WORKDIR /app
COPY package.json package-lock.json ./
COPY tools/node/package.json ./tools/node/
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY tools/bundle.mjs ./tools/
COPY src ./src
COPY providers ./providers
COPY stacks ./stacks
COPY bench ./bench
COPY templates ./templates
RUN npm run --silent sbom > sbom.cdx.json
# No operator needs the optional compiler.
RUN npm run build && npm prune --omit=dev --ignore-scripts && \
    rm -rf node_modules/typescript

# Runs as nobody in particular and writes to nothing but KINDSTACK_WORK_DIR, /tmp and a file:// backend.
FROM node:24-slim@sha256:a9f5f7c91a432850b2a8a7797adf5eadb6c733ceed61167806cee7ea7fbc29df
WORKDIR /app
COPY --from=pulumi /pulumi /usr/local/bin/pulumi
COPY --from=pulumi /pulumi-server /usr/local/bin/pulumi-server
COPY --from=build /app/package.json ./package.json
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/templates ./templates
COPY --from=build /app/sbom.cdx.json ./sbom.cdx.json
# The CLI wants a user's name, and nobody of this number has one.
ENV NODE_ENV=production HOME=/tmp USER=kindstack KINDSTACK_WORK_DIR=/tmp/kindstack
# Further kinds, each a folder: a layer of an image that is built from this one, or a volume.
ENV KINDSTACK_KINDS_DIRECTORY=/app/kinds
ENV KINDSTACK_PULUMI=/usr/local/bin/pulumi KINDSTACK_PULUMI_SERVER=/usr/local/bin/pulumi-server
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["node", "/app/dist/src/cli/main.js"]
CMD ["run"]
