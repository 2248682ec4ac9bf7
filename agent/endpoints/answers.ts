import { get } from 'node:http';

const PATIENCE_MS = 2_000;

/** Whether anything speaks HTTP at a port of a workload. What answers with an error of its own is not ready yet. */
export function speaksHttp(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get({ host, port, path: '/', timeout: PATIENCE_MS, agent: false }, (response) => {
      response.destroy();
      resolve((response.statusCode ?? 500) < 500);
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(false));
  });
}
