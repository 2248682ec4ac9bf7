import type Dockerode from 'dockerode';
import http from 'node:http';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Parts of the library that the agent never uses: Docker over SSH, and sessions of BuildKit. They take 9 MB. */
const UNUSED = ['docker-modem/lib/ssh', 'dockerode/lib/session'];
for (const name of UNUSED) {
  const filename = require.resolve(name);
  const exports = () => {
    throw new Error(`${name} is not loaded`);
  };
  Object.assign(require.cache, {
    [filename]: { id: filename, filename, loaded: true, children: [], paths: [], exports },
  });
}

/**
 * Gives the library Node's own HTTP client. Its default client follows redirects to any host, and throws where nobody
 * can catch it if a redirect names an unknown protocol.
 */
Object.assign(require('docker-modem/lib/http') as object, { http });

/** The client of Docker's API, without what the agent does not need of it. */
export const Docker = require('dockerode') as typeof Dockerode;
