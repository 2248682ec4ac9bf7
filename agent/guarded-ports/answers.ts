import { connect } from 'node:net';

const PATIENCE_MS = 2_000;
/** HTTP/1.x, and a status that is no server error: what answers with one of those is not ready yet. */
const READY = /^HTTP\/1\.[01] [1-4]\d\d$/;
const READY_BYTES = 'HTTP/1.1 200'.length;

/**
 * Whether anything speaks HTTP at a port of a workload. Only the first twelve bytes of its answer are looked at: this process is
 * root, and parses nothing of a renter's.
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
