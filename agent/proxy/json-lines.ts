import type { Socket } from 'node:net';

/**
 * Calls `onValue` with each line of JSON that a socket brings. A line that is longer than `maxBytes`, or is no JSON, or that
 * `onValue` throws at, ends the connection.
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
