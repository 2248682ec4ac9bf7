import type { ChildProcess } from 'node:child_process';
import { Socket } from 'node:net';

/**
 * Calls `onValue` with each line of JSON from a socket. Destroys the socket if a line is longer than `maxBytes` or not
 * JSON, or if `onValue` throws.
 */
export function readJsonLines(socket: Socket, maxBytes: number, onValue: (value: unknown) => void): void {
  let parts: Buffer[] = [];
  let size = 0;
  socket.on('data', (data: Buffer) => {
    let rest = data;
    for (let end = rest.indexOf(10); end >= 0 && !socket.destroyed; end = rest.indexOf(10)) {
      const line = Buffer.concat([...parts, rest.subarray(0, end)]);
      [parts, size, rest] = [[], 0, rest.subarray(end + 1)];
      try {
        if (line.length > maxBytes) throw new Error('a line is too long');
        onValue(JSON.parse(line.toString()));
      } catch (error) {
        socket.destroy(error as Error);
      }
    }
    parts.push(rest);
    size += rest.length;
    if (size > maxBytes) socket.destroy(new Error('a line is too long'));
  });
}

export function writeJsonLine(socket: Socket, value: unknown): void {
  socket.write(`${JSON.stringify(value)}\n`);
}

/**
 * Returns the socket that a child process has as descriptor 3 (`pipe`). If the child does not start, the socket is
 * destroyed with the error.
 */
export function socketOf(child: ChildProcess): Socket {
  // Node creates none if this process can open no more files.
  const given = (child.stdio as ChildProcess['stdio'] | undefined)?.[3];
  const socket = given instanceof Socket ? given : new Socket();
  child.on('error', (error) => socket.destroy(error));
  return socket;
}
