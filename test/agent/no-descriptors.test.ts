import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url));

/** What a program prints that may open 60 files, and opens them all. */
function withoutDescriptors(imports: string, body: string): string {
  const script = `
    import { openSync } from 'node:fs';
    import { once } from 'node:events';
    import { systemClock } from '${DIST}shared/clock.js';
    import { silentLogger } from '${DIST}shared/logger.js';
    ${imports.replaceAll("'./", `'${DIST}agent/`)}
    try { for (;;) openSync('/dev/null'); } catch {}
    ${body}
  `;
  const limited = ['-c', 'ulimit -n 60; exec "$0" --input-type=module -e "$1"', process.execPath, script];
  return execFileSync('bash', limited, { encoding: 'utf8' }).trim();
}

it('a relay that cannot be started for want of descriptors fails its pull, and not the agent', () => {
  const said = withoutDescriptors(
    "import { relayProcess } from './pulls/client.js';",
    'await relayProcess(systemClock)({}).catch(({ message }) => console.log(message));',
  );
  expect(said).toBe('the relay of the pull has ended');
});

it('an access proxy that cannot be started for want of descriptors is one that has ended', () => {
  const said = withoutDescriptors(
    "import { proxyChild } from './proxy/client.js';",
    "await once(proxyChild()(), 'close').catch(({ code }) => console.log(code));",
  );
  expect(said).toBe('EMFILE');
});

it('visitors whose worker cannot be started for want of descriptors do not end the others’', () => {
  const said = withoutDescriptors(
    "import { WorkerProcess } from './proxy/worker-process.js'; import { Socket } from 'node:net';",
    `const settings = { entry: '/none', idleMs: 1, clock: systemClock, logger: silentLogger };
     new WorkerProcess('i', settings, [], null).take(1, new Socket());
     await new Promise((resolve) => setImmediate(resolve));
     console.log('goes on');
     process.exit();`,
  );
  expect(said).toBe('goes on');
});
