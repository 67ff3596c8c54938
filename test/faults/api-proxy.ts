import fs from "node:fs";
import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { KubeConfig } from "@kubernetes/client-node";
import type { LiveObject } from "../../providers/kubernetes/client";

/** A request on its way to the API server. */
export interface ApiRequest {
  method: string;
  url: URL;
  /** What it wants: one object, all of a type, to be told of changes, or to change something. */
  intent: "get" | "list" | "watch" | "write";
}

export interface WatchEvent {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  object: LiveObject;
}

/** A collection, as a list answers it. */
export interface List {
  metadata: { resourceVersion: string };
  items: LiveObject[];
}

/** What goes wrong between the operator and the API server; all of it may be changed at any time. */
export interface ApiFaults {
  /** Connections are reset, those that are open as well. */
  down?: boolean;
  /** Says whether a request is answered with this status, without the API server. */
  refuse?: (request: ApiRequest) => number | undefined;
  /**
   * Told when the API server has answered, before the answer is passed on, which waits for it; after `false` it does not,
   * and the caller is cut off.
   */
  answered?: (request: ApiRequest, status: number) => boolean | Promise<boolean>;
  /** The events that are told instead of one. */
  event?: (event: WatchEvent, request: ApiRequest) => WatchEvent[];
  /** How much later events are told than they come, in milliseconds. */
  eventDelayMs?: number;
  /** Whether a watch says nothing, not even that it has ended, and stays open. */
  silent?: (request: ApiRequest) => boolean;
  /** The list that is told instead of one. */
  list?: (list: List, request: ApiRequest) => List;
}

/** A proxy before the API server, through which a test makes the connection to it as bad as it likes. */
export class ApiProxy {
  faults: ApiFaults = {};
  /** Connections that were reset because the API server is down, since the start. */
  refusedConnections = 0;
  /** Requests by what they want, since the last {@link takeCounts}. */
  #counts = { get: 0, list: 0, watch: 0, write: 0 };
  readonly #server: http.Server;
  readonly #target: { server: string; ca: string; cert: string; key: string };

  private constructor(target: { server: string; ca: string; cert: string; key: string }) {
    this.#target = target;
    this.#server = http.createServer((incoming, outgoing) => this.#serve(incoming, outgoing));
    this.#server.on("connection", (socket) => {
      if (!this.faults.down) return;
      this.refusedConnections++;
      socket.resetAndDestroy();
    });
  }

  /** @param kubeconfig names the API server, and as whom requests without credentials of their own are made */
  static async start(kubeconfig: string): Promise<ApiProxy> {
    const config = new KubeConfig();
    config.loadFromFile(kubeconfig);
    const { server = "", caData = "" } = config.getCurrentCluster() ?? {};
    const { certData = "", keyData = "" } = config.getCurrentUser() ?? {};
    const text = (base64: string) => Buffer.from(base64, "base64").toString();
    const proxy = new ApiProxy({ server, ca: text(caData), cert: text(certData), key: text(keyData) });
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Writes a kubeconfig that leads through the proxy into a directory. @returns its path */
  writeKubeconfig(directory: string): string {
    fs.mkdirSync(directory, { recursive: true });
    const file = path.join(directory, "kubeconfig");
    const config = {
      apiVersion: "v1",
      kind: "Config",
      "current-context": "proxied",
      contexts: [{ name: "proxied", context: { cluster: "proxied", user: "proxied" } }],
      clusters: [{ name: "proxied", cluster: { server: this.url, "insecure-skip-tls-verify": true } }],
      users: [{ name: "proxied", user: {} }],
    };
    fs.writeFileSync(file, JSON.stringify(config));
    return file;
  }

  takeCounts(): Record<ApiRequest["intent"], number> {
    const counts = this.#counts;
    this.#counts = { get: 0, list: 0, watch: 0, write: 0 };
    return counts;
  }

  /** Cuts off all that is connected now. */
  cut(): void {
    this.#server.closeAllConnections();
  }

  close(): void {
    this.cut();
    this.#server.close();
  }

  #serve(incoming: http.IncomingMessage, outgoing: http.ServerResponse): void {
    if (this.faults.down) {
      incoming.socket.resetAndDestroy();
      return;
    }
    const { method = "GET", headers } = incoming;
    const url = new URL(incoming.url ?? "/", this.#target.server);
    const request: ApiRequest = { method, url, intent: intentOf(method, url) };
    this.#counts[request.intent]++;
    const refusal = this.faults.refuse?.(request);
    if (refusal !== undefined) {
      incoming.resume();
      outgoing.writeHead(refusal, { "content-type": "application/json" });
      outgoing.end(JSON.stringify({ kind: "Status", code: refusal, reason: "Fault", message: "a fault of the test" }));
      return;
    }
    const { ca, cert, key } = this.#target;
    const forwarded = https.request(url, {
      method,
      headers: { ...headers, host: url.host },
      ca,
      ...(headers.authorization === undefined && { cert, key }),
    });
    forwarded.on("response", async (response) => {
      response.on("error", () => outgoing.destroy());
      const status = response.statusCode ?? 502;
      if ((await this.faults.answered?.(request, status)) === false) {
        response.resume();
        outgoing.destroy();
        return;
      }
      if (request.intent === "list" && status === 200) void this.#answerList(request, response, outgoing);
      else if (request.intent === "watch" && status === 200) this.#answerWatch(request, response, outgoing);
      else {
        outgoing.writeHead(status, response.headers);
        response.pipe(outgoing);
      }
    });
    forwarded.on("error", () => outgoing.destroy());
    outgoing.on("close", () => forwarded.destroy());
    incoming.pipe(forwarded);
  }

  async #answerList(request: ApiRequest, response: http.IncomingMessage, outgoing: http.ServerResponse): Promise<void> {
    let text = await textOf(response).catch(() => undefined);
    if (text === undefined) return;
    const { list } = this.faults;
    if (list !== undefined) text = JSON.stringify(list(JSON.parse(text) as List, request));
    const { "content-length": _, ...headers } = response.headers;
    outgoing.writeHead(200, headers);
    outgoing.end(text);
  }

  #answerWatch(request: ApiRequest, response: http.IncomingMessage, outgoing: http.ServerResponse): void {
    outgoing.writeHead(200, response.headers);
    outgoing.flushHeaders();
    let rest = "";
    let telling: Promise<unknown> = Promise.resolve();
    const isSilent = () => this.faults.silent?.(request) === true;
    const tell = (act: () => void) => {
      const { eventDelayMs } = this.faults;
      if (eventDelayMs !== undefined) telling = telling.then(() => delay(eventDelayMs));
      telling = telling.then(() => {
        if (!isSilent()) act();
      });
    };
    response.setEncoding("utf8").on("data", (chunk: string) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        tell(() => {
          const { event } = this.faults;
          const told = event?.(JSON.parse(line) as WatchEvent, request).map((one) => JSON.stringify(one)) ?? [line];
          for (const one of told) outgoing.write(`${one}\n`);
        });
      }
    });
    response.on("end", () => tell(() => outgoing.end()));
  }
}

function intentOf(method: string, url: URL): ApiRequest["intent"] {
  if (method !== "GET") return "write";
  if (url.searchParams.get("watch") === "true") return "watch";
  return url.searchParams.has("limit") ? "list" : "get"; // as our client asks for lists, and for nothing else
}

async function textOf(stream: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
