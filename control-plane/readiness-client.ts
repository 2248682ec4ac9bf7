import { request as plain } from 'node:http';
import { request as secured } from 'node:https';
import { text } from 'node:stream/consumers';
import { SetupError, messageOf } from '../shared/coded-error.js';

const PATIENCE_MS = 5_000;
const ANY_ADDRESS = /^(0\.0\.0\.0|\[::\]):/;

/**
 * Returns the answer of `/readyz` of the daemon that listens at `host:port` on this machine. Throws SetupError if it is not
 * ready.
 */
export async function askReadiness(address: string, tls: boolean): Promise<string> {
  const here = address.replace(ANY_ADDRESS, 'localhost:');
  // The request contains no secret, so any certificate is accepted.
  const options = { timeout: PATIENCE_MS, rejectUnauthorized: false };
  try {
    return await new Promise<string>((resolve, reject) => {
      const request = (tls ? secured : plain)(`http${tls ? 's' : ''}://${here}/readyz`, options, (response) => {
        text(response).then((body) => (response.statusCode === 200 ? resolve(body) : reject(new Error(body))), reject);
      });
      request.on('timeout', () => request.destroy(new Error('no answer in time')));
      request.on('error', reject).end();
    });
  } catch (error) {
    throw new SetupError(`the control plane at ${here} is not ready: ${messageOf(error)}`, { cause: error });
  }
}
