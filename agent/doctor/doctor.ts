import { messageOf } from '../../shared/coded-error.js';
import { bad, type Check, type Finding } from './finding.js';

const SIGNS = { good: 'ok  ', doubtful: 'WARN', bad: 'BAD ' } as const;

/** Looks at everything; a check that fails itself is a finding. */
export async function examine(checks: readonly Check[]): Promise<{ name: string; findings: Finding[] }[]> {
  const results = [];
  for (const { name, look } of checks) {
    const findings = await look().catch((error: unknown) => [
      bad(messageOf(error), 'this could not be looked at; see what the message says'),
    ]);
    results.push({ name, findings });
  }
  return results;
}

/** The findings in words, a line each and the advice below it. */
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
