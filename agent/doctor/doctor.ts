import { withTimeout, type Clock } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import { MINUTE_MS } from '../../shared/time.js';
import { bad, type Check, type Finding } from './finding.js';

const SIGNS = { good: 'ok  ', doubtful: 'WARN', bad: 'BAD ' } as const;

/** Longer than any check that ends: one boots a machine. */
const PATIENCE_MS = 3 * MINUTE_MS;

/** Runs all checks, one after the other. A check that throws, or does not end, becomes a `bad` finding. */
export async function examine(
  checks: readonly Check[],
  clock: Clock,
): Promise<{ name: string; findings: Finding[] }[]> {
  const results = [];
  for (const { name, look } of checks) {
    const unended = () => [
      bad('it has not ended within three minutes', 'see what this host waits for, for example a disk'),
    ];
    const findings = await withTimeout(clock, PATIENCE_MS, look(), unended).catch((error: unknown) => [
      bad(messageOf(error), 'this check failed; fix what the message names and run doctor again'),
    ]);
    results.push({ name, findings });
  }
  return results;
}

/** Formats the findings for a terminal: one line each, with the advice below it. */
export function report(results: Awaited<ReturnType<typeof examine>>): string {
  return results
    .flatMap(({ name, findings }) =>
      findings.map(({ verdict, what, advice }) =>
        [`${SIGNS[verdict]} ${name}: ${what}`, ...(advice === undefined ? [] : [`       ${advice}`])].join('\n'),
      ),
    )
    .join('\n');
}

export function isHealthy(results: Awaited<ReturnType<typeof examine>>): boolean {
  return results.every(({ findings }) => findings.every(({ verdict }) => verdict !== 'bad'));
}
