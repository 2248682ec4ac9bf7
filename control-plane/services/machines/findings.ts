import { Verdict, type FindingReport } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { compileOnce, query } from '../../store/sql.js';
import { readStoredList } from '../../store/stored-json.js';
import type { ReportBudget } from '../connections/report-budget.js';
import type { Core } from '../system/platform.js';
import { findMachine } from './machines.js';
import { validateFindings } from './message-validation.js';

const VERDICTS = {
  [Verdict.VERDICT_OK]: 'ok',
  [Verdict.VERDICT_WARNING]: 'warning',
  [Verdict.VERDICT_FAILURE]: 'failure',
} as const;
export type FindingVerdict = (typeof VERDICTS)[keyof typeof VERDICTS];

/** One result of a check of `gpurent-agent doctor`, as a host reports it. */
export interface Finding {
  check: string;
  verdict: FindingVerdict;
  what: string;
  /** What the host owner can do about it. */
  advice: string | null;
}

/** The fields that a stored finding of an older release may lack. */
const FINDING: Finding = { check: '', verdict: 'warning', what: '', advice: null };

export interface MachineFindings {
  /** Whether the agent reports findings: those of older releases do not. */
  supported: boolean;
  /** Null: the host has reported none yet. */
  reported_at: number | null;
  findings: Finding[];
}

/**
 * Records what the doctor has found on a host, in place of what it reported before. Nothing but what operators read depends on it. Drops
 * reports of a host that sends too many. Refuses with VALIDATION_FAILED what no honest agent would send, and with MACHINE_NOT_FOUND.
 */
export function recordFindings(
  core: Core & { findingBudget: ReportBudget },
  machineId: string,
  report: FindingReport,
): void {
  validateFindings(report);
  if (!core.findingBudget.admits(machineId)) return;
  const findings = JSON.stringify(report.findings.map(findingOf));
  core.store.transact((tx) => {
    findMachine(tx, machineId);
    const told = { reported_at: tx.now, findings };
    tx.run(
      query
        .insertInto('findings')
        .values({ machine_id: machineId, ...told })
        .onConflict((conflict) => conflict.column('machine_id').doUpdateSet(told)),
    );
  });
}

function findingOf({ check, verdict, what, advice }: FindingReport['findings'][number]): Finding {
  return { check, verdict: VERDICTS[verdict as keyof typeof VERDICTS], what, advice: advice || null };
}

/** Returns, for an operator, what the doctor has found on the host of a machine. Refuses with MACHINE_NOT_FOUND. */
export function getFindings(core: Core, machineId: string): MachineFindings {
  return core.store.transact((tx) => {
    const supported = findMachine(tx, machineId).reports_findings === 1;
    const stored = supported ? tx.get(storedFindings({ machineId })) : undefined;
    const findings = stored ? readStoredList(FINDING, JSON.parse(stored.findings)) : [];
    return { supported, reported_at: stored?.reported_at ?? null, findings };
  });
}

const storedFindings = compileOnce(({ machineId }: { machineId: string }) =>
  query.selectFrom('findings').selectAll().where('machine_id', '=', machineId),
);
