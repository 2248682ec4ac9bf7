import { messageOf } from '../../shared/coded-error.js';
import { bad, type Check, type Finding } from './finding.js';

const SIGNS = { good: 'ok  ', doubtful: 'WARN', bad: 'BAD ' } as const;

/** Runs all checks, one after the other. A check that throws becomes a `bad` finding. */
export async function examine(checks: readonly Check[]): Promise<{ name: string; findings: Finding[] }[]> {
  const results = [];
  for (const { name, look } of checks) {
    const findings = await look().catch((error: unknown) => [
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
