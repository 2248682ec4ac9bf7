import { connect } from 'node:net';

const PATIENCE_MS = 2_000;
/** HTTP/1.x with a status that is no server error: an app that answers with a server error is not ready yet. */
const READY = /^HTTP\/1\.[01] [1-4]\d\d$/;
const READY_BYTES = 'HTTP/1.1 200'.length;

/**
 * Tells whether a port of a workload answers HTTP. Reads only the first twelve bytes of the answer: this process runs as root
 * and
 * must not parse what a renter sends.
 */
export function speaksHttp(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    let heard = Buffer.alloc(0);
    const socket = connect({ host, port }, () => {
      socket.write(`GET / HTTP/1.1\r\nHost: ${host}:${port}\r\nConnection: close\r\n\r\n`);
    });
    const timer = setTimeout(() => socket.destroy(), PATIENCE_MS);
    socket.on('data', (data) => {
      heard = Buffer.concat([heard, data.subarray(0, READY_BYTES)]);
      if (heard.length >= READY_BYTES) socket.destroy();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(READY.test(heard.toString('latin1', 0, READY_BYTES)));
    });
  });
}
