import type { Mutant } from './mutant.js';

const SERVICES = 'control-plane/services';

/** Of the control plane: what becomes of starts, releases and removals. */
const INSTANCES: readonly Mutant[] = [
  {
    name: 'undoing-of-a-release-forgotten',
    file: `${SERVICES}/reconciler/command-failures.ts`,
    before: "previous?.state === 'closed' && (previous.kind === 'stop' || previous.kind === 'release')",
    after: "previous?.state === 'closed' && previous.kind === 'stop'",
    tests: ['test/api/given-up-starts.test.ts'],
  },
  {
    name: 'late-accepted-start-undone',
    file: `${SERVICES}/actions/start.ts`,
    before: "command?.state === 'done' || (command?.state === 'open' && command.accepted_at !== null)",
    after: "command?.state === 'done'",
    tests: ['test/api/given-up-starts.test.ts'],
  },
  {
    name: 'claims-kept-after-a-failed-start',
    file: `${SERVICES}/reconciler/command-failures.ts`,
    before: "if (instance.status !== 'starting') return;\n  if (instance.gpus_released) dropClaims(tx, instance.id);",
    after: "if (instance.status !== 'starting') return;",
    tests: ['test/api/given-up-starts.test.ts'],
  },
  {
    name: 'ended-start-of-an-earlier-sequence-believed',
    file: `${SERVICES}/reconciler/workload-reports.ts`,
    before: 'return hasEnded && report.sequence >= command.sequence && observation.runId',
    after: 'return hasEnded && observation.runId',
    tests: ['test/api/given-up-starts.test.ts'],
  },
  {
    name: 'ended-start-of-an-earlier-sequence-believed-in-hello',
    file: `${SERVICES}/reconciler/reconcile.ts`,
    before: 'const hasRun = open?.sequence === sequence && (open.kind',
    after: 'const hasRun = open && (open.kind',
    tests: ['test/api/given-up-starts.test.ts'],
  },
  {
    name: 'quarantine-takes-a-lower-sequence',
    file: `${SERVICES}/reconciler/quarantine.ts`,
    before: 'sequence: sql`max(quarantine.sequence, excluded.sequence)`',
    after: 'sequence',
    tests: ['test/api/quarantine.test.ts'],
  },
  {
    name: 'removal-numbered-below-an-earlier-command',
    file: `${SERVICES}/instances/commands.ts`,
    before: 'const above = Math.max(sequence, given?.highest ?? 0) + 1;',
    after: 'void given;\n  const above = sequence + 1;',
    tests: ['test/api/quarantine.test.ts'],
  },
];

/** Of schedules: when something is due, and what becomes of it. */
const SCHEDULES: readonly Mutant[] = [
  {
    name: 'time-that-comes-twice-counts-at-the-second',
    file: 'control-plane/domain/schedule.ts',
    before: 'Math.min(...moments)',
    after: 'Math.max(...moments)',
    tests: ['test/unit/schedule.test.ts'],
  },
  {
    name: 'stop-of-a-deploy-under-way-dropped',
    file: 'control-plane/domain/schedule.ts',
    before: "isComingUp ? 'wait' : 'nothing'",
    after: "'nothing'",
    tests: ['test/unit/schedule.test.ts', 'test/api/schedule-actions.test.ts'],
  },
  {
    name: 'schedule-by-the-status-of-an-older-copy',
    file: `${SERVICES}/actions/run-schedules.ts`,
    before: 'return needs_resync === 0 ||',
    after: 'return needs_resync >= 0 ||',
    tests: ['test/api/schedule-outages.test.ts'],
  },
  {
    name: 'start-undone-before-hosts-are-back',
    file: `${SERVICES}/actions/run-schedules.ts`,
    before: 'const mayUndo = isLate && areHostsExpected(platform) &&',
    after: 'const mayUndo = isLate &&',
    tests: ['test/api/schedule-outages.test.ts'],
  },
  {
    name: 'passed-time-of-a-new-schedule-carried-out',
    file: `${SERVICES}/actions/schedules.ts`,
    before: 'return same?.at === due.at && same.action === due.action ? due.at : undefined;',
    after: 'void same;\n  return due.at;',
    tests: ['test/api/schedules.test.ts'],
  },
  {
    name: 'schedule-not-looked-at-again-after-the-clock',
    file: `${SERVICES}/reconciler/clock.ts`,
    before: '    lookAtSchedulesAgain(tx);\n',
    after: '',
    tests: ['test/api/schedule-outages.test.ts'],
  },
];

const MONEY: readonly Mutant[] = [
  {
    name: 'interval-opened-by-a-run-after-the-end',
    file: `${SERVICES}/metering/usage-reports.ts`,
    before: '  if (closed_at !== null && began >= closed_at) return id;\n',
    after: '',
    tests: ['test/api/metered-runs.test.ts'],
  },
  {
    name: 'timed-out-stop-taken-for-a-new-run',
    file: `${SERVICES}/metering/meters.ts`,
    before: 'const run = isAfterStop ? lastRun(tx, instance.id) : undefined;',
    after: 'void lastRun;\n  const run = undefined;',
    tests: ['test/api/metered-runs.test.ts'],
  },
  {
    name: 'cut-interval-keeps-attested-to',
    file: `${SERVICES}/metering/meters.ts`,
    before: 'const ended = { closed_at, attested_to: Math.min(attested_to, closed_at) };',
    after: 'const ended = { closed_at, attested_to };',
    tests: ['test/api/metered-runs.test.ts'],
  },
  {
    name: 'run-began-at-not-moved-with-the-clock',
    file: `${SERVICES}/metering/clock-shift.ts`,
    before: "  tx.run(intervals.set({ run_began_at: shifted('run_began_at') }));\n",
    after: '',
    tests: ['test/api/metered-runs.test.ts'],
  },
  {
    name: 'last-run-not-attested-at-destroy',
    file: `${SERVICES}/reconciler/command-outcomes.ts`,
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
    before: 'Object.fromEntries([...kept, ...marked])',
    after: 'Object.fromEntries(kept.slice(0, 0).concat(marked as [string, number][]))',
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
    before: '    ...allowed.map((network) => `-A ${FORWARD_CHAIN} -d ${network} -j RETURN`),\n',
    after: '    ...allowed.slice(0, 0),\n',
    tests: ['test/unit/egress.test.ts'],
    docker: 'test/e2e/escape.test.ts',
  },
  {
    name: 'egress-mail-let-out',
    file: 'agent/domain/egress.ts',
    before: '    `-A ${FORWARD_CHAIN} -p tcp --dport ${SMTP_PORT} -j REJECT --reject-with icmp-admin-prohibited`,\n',
    after: '',
    tests: ['test/unit/egress.test.ts'],
    docker: 'test/e2e/escape.test.ts',
  },
];

/** Of credentials and roles: what a caller may do no more. */
const ACCOUNTS: readonly Mutant[] = [
  {
    name: 'expired-key-accepted-until-it-is-ended',
    file: `${SERVICES}/accounts/authenticate.ts`,
    before: 'if (endsAt !== null && endsAt <= platform.clock.now()) throw',
    after: "if (credential.kind === 'session' && endsAt !== null && endsAt <= platform.clock.now()) throw",
    tests: ['test/api/key-restrictions.test.ts'],
  },
  {
    name: 'demotion-keeps-personal-keys',
    file: `${SERVICES}/accounts/members.ts`,
    before: '      revokeKeysOf(tx, actorOf(caller), userId, caller.organizationId);\n',
    after: '',
    tests: ['test/api/roles.test.ts'],
  },
  {
    name: 'policy-not-checked-after-the-body',
    file: 'control-plane/http/policy.ts',
    before: '      admitAgain(platform, request);\n',
    after: '',
    tests: ['test/api/ended-credentials.test.ts'],
  },
];

const HTTP = 'control-plane/http';

/** Of the control plane: who a browser speaks for. */
const BROWSERS: readonly Mutant[] = [
  {
    name: 'cookie-without-proof-believed',
    file: `${HTTP}/policy.ts`,
    before: '  if (isByCookie(request)) checkCookieUse(platform, request);\n',
    after: '',
    tests: ['test/api/cookie-sessions.test.ts'],
  },
  {
    name: 'one-of-two-cookies-believed',
    file: `${HTTP}/cookies.ts`,
    before: 'value !== undefined && another === undefined && pattern',
    after: 'value !== undefined && (another === undefined || another) && pattern',
    tests: ['test/api/cookie-sessions.test.ts'],
  },
  {
    name: 'form-of-another-origin-taken',
    file: `${HTTP}/pages/pages.ts`,
    before: "  if (request.method === 'POST') checkOrigin(platform, request);\n",
    after: '',
    tests: ['test/api/sign-in-attacks.test.ts'],
  },
  {
    name: 'form-of-another-visit-taken',
    file: `${HTTP}/pages/pages.ts`,
    before: '        checkFormToken(request, request.visitor);\n',
    after: '',
    tests: ['test/api/sign-in-attacks.test.ts'],
  },
  {
    name: 'return-to-another-server',
    file: `${HTTP}/pages/return-to.ts`,
    before: " || pathname.startsWith('//')",
    after: '',
    tests: ['test/api/sign-in-attacks.test.ts'],
  },
];

/** Of the control plane: links by mail, and programs that sign in by a code. */
const SIGN_INS: readonly Mutant[] = [
  {
    name: 'no-hash-for-an-unknown-address',
    file: `${SERVICES}/accounts/accounts.ts`,
    before: 'const matches = await passwords.verify(request.password, passwordOf(user));',
    after: 'const matches = user !== undefined && (await passwords.verify(request.password, passwordOf(user)));',
    tests: ['test/api/account-timing.test.ts'],
  },
  {
    name: 'mail-of-a-link-right-after-the-answer',
    file: `${SERVICES}/accounts/link-requests.ts`,
    before: '  addRequest(tx, request);\n}',
    after: "  addRequest(tx, request);\n  tx.nudge('account-links');\n}",
    tests: ['test/api/account-timing.test.ts'],
  },
  {
    name: 'link-for-another-purpose-taken',
    file: `${SERVICES}/accounts/link-requests.ts`,
    before: 'if (link?.purpose !== purpose || link.expires_at',
    after: 'if (!link || link.expires_at',
    tests: ['test/api/account-links.test.ts'],
  },
  {
    name: 'link-of-a-former-operator-taken',
    file: `${SERVICES}/accounts/password-reset.ts`,
    before: '  if (link.made_by !== null && !isOperator(tx, link.made_by)) throw invalidLink();\n',
    after: '  void isOperator;\n',
    tests: ['test/api/account-links.test.ts'],
  },
  {
    name: 'code-used-twice',
    file: `${SERVICES}/accounts/open-device-session.ts`,
    before: "    tx.run(query.deleteFrom('device_codes').where('id', '=', code.id));\n",
    after: '',
    tests: ['test/api/device-codes.test.ts'],
  },
  {
    name: 'code-of-another-user-typed',
    file: `${SERVICES}/accounts/approve-device.ts`,
    before: 'if (code && (code.user_id === null || code.user_id === caller.userId)) {',
    after: 'if (code) {',
    tests: ['test/api/device-codes.test.ts'],
  },
  {
    name: 'another-code-approved-than-shown',
    file: `${SERVICES}/accounts/device-codes.ts`,
    before: 'if (typed?.id !== id) throw',
    after: 'if (typed === undefined || id === "") throw',
    tests: ['test/api/device-pages.test.ts'],
  },
  {
    name: 'code-filled-in-by-a-link',
    file: `${HTTP}/pages/device.ts`,
    before: "  reads: ['done'],",
    after: "  reads: ['done', 'user_code'],",
    tests: ['test/api/device-pages.test.ts'],
  },
];

/** Of the control plane: what a company's sign-in may do. */
const COMPANIES: readonly Mutant[] = [
  {
    name: 'company-nonce-not-checked',
    file: 'control-plane/outbound/openid.ts',
    before: 'expectedNonce: begun.nonce',
    after: 'expectedNonce: undefined as never',
    tests: ['test/api/company-lies.test.ts'],
  },
  {
    name: 'company-signature-not-checked',
    file: 'control-plane/outbound/openid.ts',
    before: '    library.enableNonRepudiationChecks(configuration);\n',
    after: '',
    tests: ['test/api/company-lies.test.ts'],
  },
  {
    name: 'company-return-in-any-browser',
    file: 'control-plane/services/accounts/short-lived.ts',
    before: ' || entry.value.browser !== browser',
    after: '',
    tests: ['test/api/company-sign-in.test.ts'],
  },
  {
    name: 'company-return-counts-again',
    file: 'control-plane/services/accounts/company-sign-in.ts',
    before: '.take(state, browser)',
    after: '.get(state, browser)',
    tests: ['test/api/company-sign-in.test.ts'],
  },
  {
    name: 'company-asserts-any-domain',
    file: 'control-plane/domain/company.ts',
    before: 'domain === undefined || !domains.includes(domain)',
    after: 'domain === undefined',
    tests: ['test/api/company-sign-in.test.ts'],
  },
  {
    name: 'company-claims-confirmed-account',
    file: 'control-plane/services/accounts/claim-account.ts',
    before: ' && user.email_verified_at === null',
    after: '',
    tests: ['test/api/company-accounts.test.ts'],
  },
  {
    name: 'company-claim-keeps-access',
    file: 'control-plane/services/accounts/claim-account.ts',
    before: '    endAccess(tx, user, BY_CLAIM);\n',
    after: '',
    tests: ['test/api/company-accounts.test.ts'],
  },
  {
    name: 'company-links-another-account',
    file: 'control-plane/services/accounts/asserted-accounts.ts',
    before: '  checkIsFor(asserted, caller);\n',
    after: '',
    tests: ['test/api/company-accounts.test.ts'],
  },
  {
    name: 'password-off-not-checked',
    file: 'control-plane/services/accounts/accounts.ts',
    before: '    if (user.id !== linking) checkPasswordOn(tx, user);\n',
    after: '',
    tests: ['test/api/company-accounts.test.ts'],
  },
  {
    name: 'issuer-leads-anywhere',
    file: 'control-plane/outbound/fetch-issuer.ts',
    before: 'isChosen || addresses.every',
    after: 'addresses.some(() => true) || addresses.every',
    tests: ['test/api/company-lies.test.ts'],
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
  ...AGENT,
];
