import type { Mutant } from './mutant.js';
import { MCP } from './mcp.js';
import { SECOND_FACTORS } from './second-factors.js';
import { COMPANIES, SIGN_INS } from './sign-ins.js';

/** Of the control plane: what becomes of starts, releases and removals. */
const INSTANCES: readonly Mutant[] = [
  {
    name: 'undoing-of-a-release-forgotten',
    file: 'control-plane/services/reconciler/command-failures.ts',
    before: "previous?.state === 'closed' && (previous.kind === 'stop' || previous.kind === 'release')",
    after: "previous?.state === 'closed' && previous.kind === 'stop'",
    tests: ['test/api/given-up-starts.test.ts'],
  },
  {
    name: 'late-accepted-start-undone',
    file: 'control-plane/services/actions/start.ts',
    before: "command?.state === 'done' || (command?.state === 'open' && command.accepted_at !== null)",
    after: "command?.state === 'done'",
    tests: ['test/api/given-up-starts.test.ts'],
  },
  {
    name: 'claims-kept-after-a-failed-start',
    file: 'control-plane/services/reconciler/command-failures.ts',
    before: "if (instance.status !== 'starting') return;\n  if (instance.gpus_released) dropClaims(tx, instance.id);",
    after: "if (instance.status !== 'starting') return;",
    tests: ['test/api/given-up-starts.test.ts'],
  },
  {
    name: 'ended-start-of-an-earlier-sequence-believed',
    file: 'control-plane/services/reconciler/workload-reports.ts',
    before: 'return hasEnded && report.sequence >= command.sequence && observation.runId',
    after: 'return hasEnded && observation.runId',
    tests: ['test/api/given-up-starts.test.ts'],
  },
  {
    name: 'ended-start-of-an-earlier-sequence-believed-in-hello',
    file: 'control-plane/services/reconciler/reconcile.ts',
    before: 'const hasRun = open?.sequence === sequence && (open.kind',
    after: 'const hasRun = open && (open.kind',
    tests: ['test/api/given-up-starts.test.ts'],
  },
  {
    name: 'quarantine-takes-a-lower-sequence',
    file: 'control-plane/services/reconciler/quarantine.ts',
    before: 'sequence: sql`max(quarantine.sequence, excluded.sequence)`',
    after: 'sequence',
    tests: ['test/api/quarantine.test.ts'],
  },
  {
    name: 'removal-numbered-below-an-earlier-command',
    file: 'control-plane/services/instances/commands.ts',
    before: 'const above = Math.max(sequence, given?.highest ?? 0) + 1;',
    after: 'void given;\n  const above = sequence + 1;',
    tests: ['test/api/quarantine.test.ts'],
  },
];

/** Of schedules: when something is due, and what becomes of it. */
const SCHEDULES: readonly Mutant[] = [
  {
    name: 'time-that-comes-twice-counts-at-the-second',
    file: 'control-plane/domain/instances/schedule.ts',
    before: 'Math.min(...moments)',
    after: 'Math.max(...moments)',
    tests: ['test/unit/schedule.test.ts'],
  },
  {
    name: 'stop-of-a-deploy-under-way-dropped',
    file: 'control-plane/domain/instances/schedule.ts',
    before: "isComingUp ? 'wait' : 'nothing'",
    after: "'nothing'",
    tests: ['test/unit/schedule.test.ts', 'test/api/schedule-actions.test.ts'],
  },
  {
    name: 'schedule-by-the-status-of-an-older-copy',
    file: 'control-plane/services/actions/run-schedules.ts',
    before: 'return needs_resync === 0 ||',
    after: 'return needs_resync >= 0 ||',
    tests: ['test/api/schedule-outages.test.ts'],
  },
  {
    name: 'start-undone-before-hosts-are-back',
    file: 'control-plane/services/actions/run-schedules.ts',
    before: 'const mayUndo = isLate && areHostsExpected(platform) &&',
    after: 'const mayUndo = isLate &&',
    tests: ['test/api/schedule-outages.test.ts'],
  },
  {
    name: 'passed-time-of-a-new-schedule-carried-out',
    file: 'control-plane/services/actions/schedules.ts',
    before: 'return same?.at === due.at && same.action === due.action ? due.at : undefined;',
    after: 'void same;\n  return due.at;',
    tests: ['test/api/schedules.test.ts'],
  },
  {
    name: 'schedule-not-looked-at-again-after-the-clock',
    file: 'control-plane/services/reconciler/clock.ts',
    before: '    lookAtSchedulesAgain(tx);\n',
    after: '',
    tests: ['test/api/schedule-outages.test.ts'],
  },
];

const MONEY: readonly Mutant[] = [
  {
    name: 'unmeasured-ssh-counted-as-idle',
    file: 'control-plane/domain/instances/idle.ts',
    before: 'if (sshSessions !== 0 || portConnections !== 0) return false;',
    after: 'if ((sshSessions ?? 0) !== 0 || portConnections !== 0) return false;',
    tests: ['test/unit/idle.test.ts'],
  },
  {
    name: 'interval-opened-by-a-run-after-the-end',
    file: 'control-plane/services/metering/usage-reports.ts',
    before: '  if (closed_at !== null && began >= closed_at) return id;\n',
    after: '',
    tests: ['test/api/metered-runs.test.ts'],
  },
  {
    name: 'timed-out-stop-taken-for-a-new-run',
    file: 'control-plane/services/metering/meters.ts',
    before: 'const run = (isAfterStop ? lastRun(tx, instance.id) : undefined) ?? {',
    after: 'void lastRun;\n  const run = {',
    tests: ['test/api/metered-runs.test.ts'],
  },
  {
    name: 'cut-interval-keeps-attested-to',
    file: 'control-plane/services/metering/meters.ts',
    before: 'const ended = { closed_at, attested_to: Math.min(attested_to, closed_at) };',
    after: 'const ended = { closed_at, attested_to };',
    tests: ['test/api/metered-runs.test.ts'],
  },
  {
    name: 'run-began-at-not-moved-with-the-clock',
    file: 'control-plane/services/metering/clock-shift.ts',
    before: "intervals.set({ run_began_at: shifted('run_began_at'), run_not_before",
    after: 'intervals.set({ run_not_before',
    tests: ['test/api/metered-runs.test.ts'],
  },
  {
    name: 'last-run-not-attested-at-destroy',
    file: 'control-plane/services/reconciler/command-outcomes.ts',
    before: '  recordObservedUsage(tx, instance.id, observation);\n  // Also for an instance',
    after: '  // Also for an instance',
    tests: ['test/api/metered-runs.test.ts'],
  },
];

const AGENT: readonly Mutant[] = [
  {
    name: 'last-run-not-told-at-destroy',
    file: 'agent/commands/executor.ts',
    before: 'const last = isDestroy(command) ? await this.lastRun(command.instanceId) : {};',
    after: 'void isDestroy;\n      const last = {};',
    tests: ['test/agent/ended-runs.test.ts'],
  },
  {
    name: 'interruptions-of-others-lost',
    file: 'agent/outages/outage-tracker.ts',
    before: 'JSON.stringify({ ...this.ofKnown(this.marks()), ...marked })',
    after: 'JSON.stringify(marked)',
    tests: ['test/agent/outages.test.ts'],
  },
  {
    name: 'last-sight-of-docker-not-kept-fresh',
    file: 'agent/outages/outage-tracker.ts',
    before: ' ||\n      Math.abs(run.seenAt - last.seenAt) >= SEEN_EVERY_MS;',
    after: ';',
    tests: ['test/agent/outages.test.ts'],
  },
  {
    name: 'undo-leaves-what-never-started',
    file: 'agent/commands/reconcile.ts',
    before: "if (attempt.created || found.state === 'created') return remover.remove(instanceId);",
    after: 'if (attempt.created) return remover.remove(instanceId);',
    tests: ['test/agent/crashes.test.ts'],
  },
  {
    name: 'undo-does-not-note-the-run-that-it-stops',
    file: 'agent/commands/reconcile.ts',
    before: "    if (found.state === 'running') attempt.recordPreviousRun(found.startedAt);\n",
    after: '',
    tests: ['test/agent/cut-short.test.ts'],
  },
  {
    name: 'interrupted-workload-stopped-in-hello',
    file: 'agent/session.ts',
    before:
      "return desired === 'running' ? WorkloadState.WORKLOAD_STATE_STARTING : WorkloadState.WORKLOAD_STATE_STOPPED;",
    after: 'void desired;\n  return WorkloadState.WORKLOAD_STATE_STOPPED;',
    tests: ['test/agent/hello.test.ts'],
  },
  {
    name: 'open-command-dropped-as-forgotten',
    file: 'agent/commands/executor.ts',
    before: 'const isForgotten = !commandOpen && !this.isBusy',
    after: 'const isForgotten = !this.isBusy',
    tests: ['test/agent/cut-short.test.ts'],
  },
  {
    name: 'ports-given-twice',
    file: 'agent/host/ports.ts',
    before: '      if (this.given.has(port)) continue;\n',
    after: '',
    tests: ['test/unit/port-allocator.test.ts'],
  },
  {
    name: 'gpu-mark-dropped-before-the-call-settles',
    file: 'agent/commands/gpu-access.ts',
    before: 'void this.runtime.whenIdle(instanceId).then(() => {',
    after: 'void Promise.resolve().then(() => {',
    tests: ['test/agent/gpus.test.ts'],
  },
  {
    name: 'egress-allowed-networks-not-let-through',
    file: 'agent/domain/egress.ts',
    before: '    ...allowed.map((network) => `-A ${EGRESS_CHAIN} -d ${network} -j RETURN`),\n',
    after: '    ...allowed.slice(0, 0),\n',
    tests: ['test/unit/egress.test.ts'],
    docker: 'test/e2e/escape.test.ts',
  },
  {
    name: 'egress-mail-let-out',
    file: 'agent/domain/egress.ts',
    before: '    `-A ${EGRESS_CHAIN} -p tcp --dport ${SMTP_PORT} -j REJECT --reject-with icmp-admin-prohibited`,\n',
    after: '',
    tests: ['test/unit/egress.test.ts'],
    docker: 'test/e2e/escape.test.ts',
  },
];

/** Of credentials and roles: what a caller may do no more. */
const ACCOUNTS: readonly Mutant[] = [
  {
    name: 'expired-key-accepted-until-it-is-ended',
    file: 'control-plane/services/identity/sessions/authenticate.ts',
    before: 'if (endsAt !== null && endsAt <= platform.clock.now()) throw',
    after: "if (credential.kind === 'session' && endsAt !== null && endsAt <= platform.clock.now()) throw",
    tests: ['test/api/key-restrictions.test.ts'],
  },
  {
    name: 'demotion-keeps-personal-keys',
    file: 'control-plane/services/organizations/members.ts',
    before: '      revokeKeysOf(tx, actorOf(caller), userId, caller.organizationId);\n',
    after: '',
    tests: ['test/api/roles.test.ts'],
  },
  {
    name: 'policy-not-checked-after-the-body',
    file: 'control-plane/http/access/policy.ts',
    before: '      admitAgain(platform, request);\n',
    after: '',
    tests: ['test/api/ended-credentials.test.ts'],
  },
];

/** Of the control plane: who a browser speaks for. */
const BROWSERS: readonly Mutant[] = [
  {
    name: 'cookie-without-proof-believed',
    file: 'control-plane/http/access/policy.ts',
    before: '  if (isByCookie(request)) checkCookieUse(platform, request);\n',
    after: '',
    tests: ['test/api/cookie-sessions.test.ts'],
  },
  {
    name: 'one-of-two-cookies-believed',
    file: 'control-plane/http/access/cookies.ts',
    before: 'value !== undefined && another === undefined && pattern',
    after: 'value !== undefined && (another === undefined || another) && pattern',
    tests: ['test/api/cookie-sessions.test.ts'],
  },
  {
    name: 'form-of-another-origin-taken',
    file: 'control-plane/http/pages/pages.ts',
    before: "  if (request.method === 'POST') checkOrigin(platform, request);\n",
    after: '',
    tests: ['test/api/sign-in-attacks.test.ts'],
  },
  {
    name: 'form-of-another-visit-taken',
    file: 'control-plane/http/pages/pages.ts',
    before: '        checkFormToken(request, request.visitor);\n',
    after: '',
    tests: ['test/api/sign-in-attacks.test.ts'],
  },
  {
    name: 'return-to-another-server',
    file: 'control-plane/http/pages/return-to.ts',
    before: " || pathname.startsWith('//')",
    after: '',
    tests: ['test/api/sign-in-attacks.test.ts'],
  },
];

export const MUTANTS: readonly Mutant[] = [
  ...INSTANCES,
  ...SCHEDULES,
  ...MONEY,
  ...ACCOUNTS,
  ...BROWSERS,
  ...SIGN_INS,
  ...COMPANIES,
  ...SECOND_FACTORS,
  ...MCP,
  ...AGENT,
];
