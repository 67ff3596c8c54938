import net from "node:net";
import { Duplex } from "node:stream";
import tls from "node:tls";
import { parentPort, workerData } from "node:worker_threads";

/* Holds as many connections as it is told, of one sort, from one address; opens each again when it ends. */

const { port, secure, sort, count, path, method, token, localAddress } = workerData;
/** As a client does that is refused. */
const PAUSE_MS = sort.startsWith("a flood") ? 0 : 2_000;
const BODY = method === "POST" ? "{}" : "";
const head = (credential, length = BODY.length) =>
  `${method} ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${credential}\r\n` +
  `content-type: application/json\r\n${length === 0 ? "" : `content-length: ${length}\r\n`}\r\n`;
const REQUEST = `${head("invented")}${BODY}`;
const OWN_REQUEST = `${head(token)}${BODY}`;
const address = { host: "127.0.0.1", port, localAddress };
/** The beginning of a TLS ClientHello whose rest never comes. */
const HALF_HELLO = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 1, 2, 3]);
const HELLO = await new Promise((resolve) => {
  tls.connect({ socket: new Duplex({ read() {}, write: resolve }) });
});

/** What each sort sends once it is connected: at first, and then each second. */
const SENDS = {
  idle: {},
  "an unfinished handshake": { first: HALF_HELLO },
  "half-open": { first: "GET / HTTP/1.1\r\nhost: a\r\n", ends: true },
  "slow headers": { first: "GET / HTTP/1.1\r\n", later: "a: b\r\n" },
  "slow bodies": { first: head("invented", 100_000), later: "x" },
  "slow bodies of a known user": { first: head(token, 100_000), later: "x" },
  "one request a second": { first: REQUEST, later: REQUEST },
  "one request a second of a known user": { first: OWN_REQUEST, later: OWN_REQUEST },
  "a flood": { first: REQUEST },
  "a flood of handshakes": { first: HELLO },
  "a flood that does not wait for answers": { first: REQUEST, leaves: true },
  "answers that are not read": { first: OWN_REQUEST.repeat(100), later: OWN_REQUEST, reads: false },
};
const WITHOUT_TLS = ["idle", "an unfinished handshake", "a flood of handshakes"];
const { first, later, ends = false, leaves = false, reads = true } = SENDS[sort];

function open() {
  const isTls = secure && !WITHOUT_TLS.includes(sort);
  const options = { ...address, allowHalfOpen: true };
  const socket = isTls ? tls.connect({ ...options, rejectUnauthorized: false }) : net.connect(options);
  let timer;
  socket.on("error", () => {}); // "close" follows
  if (reads) socket.resume();
  socket.once("end", () => socket.destroy());
  socket.once(isTls ? "secureConnect" : "connect", () => {
    parentPort.postMessage("open");
    if (first !== undefined) socket.write(first);
    if (ends) socket.end();
    if (leaves) setImmediate(() => socket.destroy());
    if (later !== undefined) timer = setInterval(() => socket.write(later), 1000);
  });
  socket.once("close", () => {
    clearInterval(timer);
    setTimeout(open, PAUSE_MS * (0.5 + Math.random()));
  });
}

for (let i = 0; i < count; i++) setTimeout(open, i);
