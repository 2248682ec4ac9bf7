import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Clock } from '../../shared/clock.js';
import type { AgentConfig } from '../config.js';
import { concerning, type Installed, type Program } from '../domain/advisories.js';
import { Engine } from '../runtime/docker/engine.js';
import { bad, doubtful, good, type Check, type Finding } from './finding.js';

const run = promisify(execFile);
const PATIENCE_MS = 10_000;
const VERSION = /\d+\.\d+\.\d+/;

/** Returns the check for known container escapes in Docker, runc and the NVIDIA container toolkit. */
export function versionChecks(config: AgentConfig, clock: Clock): Check[] {
  return [
    {
      name: 'known vulnerabilities',
      look: async () => {
        const { ServerVersion } = await new Engine(config.dockerSocket, clock).info();
        const toolkit = config.gpus.kind === 'nvidia' ? await versionOf('nvidia-ctk') : undefined;
        return [
          ...findingsOf('docker', { version: ServerVersion, packaged: await packageOf('docker.io') }),
          ...findingsOf('runc', await installed('runc', await versionOf('runc'))),
          ...findingsOf('nvidia-container-toolkit', await installed('nvidia-container-toolkit', toolkit)),
        ];
      },
    },
  ];
}

function findingsOf(program: Program, found: Installed | undefined): Finding[] {
  if (!found) return [];
  const holes = concerning(program, found);
  const named = `${program} ${found.packaged ?? found.version}`;
  if (holes.length === 0) return [good(`${named} has none that this release knows of`)];
  return holes.map(({ id, unsure }) =>
    unsure
      ? doubtful(
          `containers may be able to escape through ${named} (${id})`,
          `check whether your distribution has fixed ${id} in it`,
        )
      : bad(`containers can escape through ${named} (${id})`, 'upgrade it before you rent out this host'),
  );
}

async function installed(packageName: string, version: string | undefined): Promise<Installed | undefined> {
  return version === undefined ? undefined : { version, packaged: await packageOf(packageName) };
}

/** Returns the version of a program; undefined when it is not installed or prints none. */
function versionOf(program: string): Promise<string | undefined> {
  return run(program, ['--version'], { timeout: PATIENCE_MS }).then(
    ({ stdout }) => VERSION.exec(stdout)?.[0],
    () => undefined,
  );
}

/** Returns the version of a distribution's package; null when it is not installed. */
function packageOf(name: string): Promise<string | null> {
  return run('dpkg-query', ['--show', '--showformat', '${Version}', name], { timeout: PATIENCE_MS }).then(
    ({ stdout }) => stdout.trim() || null,
    () => null,
  );
}
