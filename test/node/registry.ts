import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import type { ImageParts } from "./image";

const TYPES = {
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar",
};

/** A registry of images that has one image, under each name and tag that it is asked for. */
export async function startRegistry(port: number, image: ImageParts): Promise<void> {
  const config = Buffer.from(image.config);
  const layer = fs.readFileSync(image.layer);
  const blobs = new Map([
    [image.configDigest, config],
    [image.layerDigest, layer],
  ]);
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: TYPES.manifest,
      config: { mediaType: TYPES.config, digest: image.configDigest, size: config.length },
      layers: [{ mediaType: TYPES.layer, digest: image.layerDigest, size: layer.length }],
    }),
  );
  const server = http.createServer((request, response) => {
    const [, kind, reference = ""] = /^\/v2\/.+\/(manifests|blobs)\/([^?]+)/.exec(request.url ?? "") ?? [];
    const content = kind === "manifests" ? manifest : blobs.get(reference);
    if (content === undefined) {
      response.writeHead(request.url === "/v2/" ? 200 : 404).end();
      return;
    }
    const type = kind === "manifests" ? TYPES.manifest : "application/octet-stream";
    response.writeHead(200, { "content-type": type, "content-length": content.length });
    response.end(request.method === "HEAD" ? undefined : content);
  });
  server.listen(port, "127.0.0.1").unref();
  await once(server, "listening");
}
