import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../shared/coded-error.js';
import { requireReadable } from '../../shared/file-access.js';
import { RELEASE_KEY } from '../../shared/release/verify.js';
import type { AgentConfig } from '../config.js';

const UNIT = '/etc/systemd/system/gpurent-agent-upgrade.path';

/** The files of this host by which its owner allows upgrades. */
export interface PermissionFiles {
  key: string;
  unit: string;
}
const FILES: PermissionFiles = { key: RELEASE_KEY, unit: UNIT };

/** Returns the folder in which the agent prepares its upgrades. */
export function upgradeFolder({ stateDir }: Pick<AgentConfig, 'stateDir'>): string {
  return join(stateDir, 'upgrade');
}

/** Returns why this host takes no upgrades from its control plane; empty: it does. */
export function upgradeObstacles(
  { upgrades, stateDir }: Pick<AgentConfig, 'upgrades' | 'stateDir'>,
  files = FILES,
): string[] {
  if (upgrades === 'off') return ['its owner does not allow it (GPURENT_AGENT_UPGRADES)'];
  return missingForUpgrades({ stateDir }, files);
}

/** Returns what a host lacks whose owner allows upgrades. */
export function missingForUpgrades({ stateDir }: Pick<AgentConfig, 'stateDir'>, { key, unit } = FILES): string[] {
  const missing: string[] = [];
  try {
    requireReadable(key);
  } catch (error) {
    missing.push(`the public key of releases cannot be read: ${messageOf(error)}`);
  }
  if (!watches(unit, join(stateDir, 'upgrade', 'ready')))
    missing.push(`no upgrade unit watches ${stateDir}: run the scripts/install-agent of this release`);
  return missing;
}

/** Tells whether a path unit watches a path. */
function watches(unit: string, path: string): boolean {
  try {
    const lines = readFileSync(unit, 'utf8').split('\n');
    // systemd reads %% as one percent sign.
    return lines.includes(`PathExists=${path.replaceAll('%', '%%')}`);
  } catch {
    return false;
  }
}
