import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const UNIT = new URL('../../packaging/gpurent-agent.service', import.meta.url);

/** Runs a program with the capabilities that the unit of the agent leaves to root, and returns what it prints. Needs root. */
export function runWithRightsOfUnit(program: string, args: readonly string[]): string {
  const names = /^CapabilityBoundingSet=(.*)$/m.exec(readFileSync(UNIT, 'utf8'))?.[1]?.split(' ') ?? [];
  const bounds = ['-all', ...names.map((name) => `+${name.replace(/^CAP_/, '').toLowerCase()}`)].join(',');
  const limits = ['--bounding-set', bounds, '--inh-caps=-all', '--no-new-privs'];
  return execFileSync('setpriv', [...limits, program, ...args], { encoding: 'utf8' }).trim();
}
