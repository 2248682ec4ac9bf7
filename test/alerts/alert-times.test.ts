import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { promtool } from '../rig/prometheus.js';
import { RULES, RULES_INSTALLED, guideConfig, read } from './installation.js';

const STEP_S = 15;
const LONG_S = 40 * 60;

/** A series by its labels, which has the same value all the time or those that promtool's notation names, one each step. */
type Series = [name: string, labels: Record<string, string>, values: number | string];

/** What makes a rule fire, and after how many seconds; what never does; and when it ends, where the series say so. */
interface Times {
  bad: Series[];
  fires: number;
  well: Series[];
  ends?: number;
  /** Of the alert. */
  labels: Record<string, string>;
}

const minutes = (count: number) => count * 60;
function times(name: string, bad: number, fires: number, well: number, labels: Record<string, string> = {}): Times {
  return { bad: [[name, labels, bad]], fires, well: [[name, labels, well]], labels };
}

const CONTROL_PLANE = { job: 'control-plane', instance: 'a' };
const INFO: Series = ['gpurent_control_plane_info', CONTROL_PLANE, 1];
const lag = (labels: Record<string, string>): Series => ['nodejs_eventloop_lag_max_seconds', labels, 0.51];
const failed = (code: string): Series => [
  'gpurent_commands_finished_total',
  { outcome: 'failed', code },
  `0 0 6+0x${LONG_S / STEP_S}`,
];

const attempts = (outcome: string, values: string): Series => [
  'gpurent_webhook_attempts_total',
  { outcome },
  `${values}${LONG_S / STEP_S}`,
];

/** By alert. */
const TIMES: Readonly<Record<string, Times>> = {
  GpurentDown: { bad: [], fires: minutes(2), well: [INFO], labels: {} },
  GpurentNotReady: times('gpurent_ready', 0, minutes(1), 1),
  GpurentDiskFull: times('gpurent_disk_full', 1, minutes(1), 0),
  GpurentDiskLow: times('gpurent_disk_free_ratio', 0.09, minutes(5), 0.1),
  GpurentBackupOverdue: times('gpurent_backup_overdue_seconds', 3_601, 0, 3_600),
  GpurentCopyOld: times('gpurent_copy_age_seconds', 108_001, 0, 108_000, { target: '/copies' }),
  GpurentCertificateExpires: times('gpurent_certificate_remaining_seconds', 1_209_599, 0, 1_209_600, {
    certificate: 'server',
  }),
  GpurentHostAway: times('gpurent_hosts', 1, minutes(5), 0, { state: 'away' }),
  GpurentCommandsStuck: times('gpurent_commands_oldest_seconds', 901, 0, 900, { kind: 'stop' }),
  GpurentQuarantine: times('gpurent_workloads_quarantined', 1, 0, 0),
  GpurentStopIgnored: times('gpurent_stops_ignored', 1, 0, 0),
  GpurentAdminRefused: times('gpurent_admins_refused', 1, 0, 0),
  GpurentCommandsFailing: {
    bad: [failed('NO_FREE_PORT')],
    fires: 2 * STEP_S,
    ends: minutes(16),
    well: [failed('IMAGE_UNAVAILABLE'), failed('CONTAINER_FAILED')],
    labels: {},
  },
  GpurentGpusUnhealthy: times('gpurent_gpus_unhealthy', 1, minutes(10), 0),
  GpurentGpusMissing: times('gpurent_gpus_missing', 1, minutes(5), 0),
  GpurentGpusDisputed: times('gpurent_gpus_disputed', 1, minutes(10), 0),
  GpurentHostClockOff: times('gpurent_hosts_clock_off', 1, minutes(5), 0),
  GpurentClockUntrusted: times('gpurent_clock_untrusted', 1, 0, 0),
  GpurentSettlementLags: times('gpurent_settlement_lag_seconds', 121, minutes(5), 120),
  GpurentWorkerFailing: times('gpurent_worker_failing', 1, minutes(5), 0, { worker: 'settle' }),
  GpurentMailWaits: times('gpurent_mail_oldest_seconds', 3_601, 0, 3_600),
  GpurentWebhooksFailing: {
    bad: [attempts('retried', '0 0 12+0x'), attempts('delivered', '5+0x')],
    fires: 2 * STEP_S,
    ends: minutes(31),
    well: [attempts('retried', '0 0 12+0x'), attempts('delivered', '5 5 6+0x')],
    labels: {},
  },
  GpurentAuditOutLags: times('gpurent_audit_out_lag_seconds', 901, 0, 900, { output: 'webhook' }),
  GpurentEventLoopLags: {
    bad: [INFO, lag(CONTROL_PLANE)],
    fires: minutes(5),
    well: [INFO, lag({ job: 'agent', instance: 'b' })],
    labels: CONTROL_PLANE,
  },
  GpurentAgentDisconnected: times('gpurent_agent_connected', 0, minutes(5), 1),
  GpurentHostCertificateExpires: times('gpurent_agent_certificate_remaining_seconds', -1, 0, 1_209_600, {
    certificate: 'web',
  }),
  GpurentDockerDown: times('gpurent_agent_docker_available', 0, minutes(2), 1),
  GpurentDockerCallHangs: times('gpurent_agent_docker_unanswered_seconds', 601, 0, 600),
  GpurentHostUnreachable: times('gpurent_agent_obstacle', 1, minutes(5), 0),
  GpurentHostDiskLow: times('gpurent_agent_disk_free_gigabytes', 19, minutes(10), 20),
};

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-rules-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

const inWords = ([name, labels, values]: Series) => ({
  series: `${name}{${Object.entries(labels)
    .map(([key, value]) => `${key}="${value}"`)
    .join()}}`,
  values: typeof values === 'number' ? `${values}+0x${LONG_S / STEP_S}` : values,
});

/** Whether the alert fires at these moments, as a case of promtool. */
const caseOf = (alertname: string, labels: object, series: Series[], moments: [at: number, fires: boolean][]) => ({
  interval: `${STEP_S}s`,
  input_series: series.map(inWords),
  alert_rule_test: moments.map(([at, fires]) => ({
    eval_time: `${at}s`,
    alertname,
    exp_alerts: fires ? [{ exp_labels: labels }] : [],
  })),
});

it('Prometheus takes the rules and the configuration of the guide', () => {
  const rules = write('alerts.yml', read(RULES));
  expect(promtool('check', 'rules', rules)).toContain('SUCCESS');
  const config = write('prometheus.yml', guideConfig().replace(RULES_INSTALLED, rules));
  expect(promtool('check', 'config', config)).toContain('SUCCESS');
});

it('every rule has its times', () => {
  const alerts = [...read(RULES).matchAll(/alert: (\w+)/g)].map(([, alert]) => alert);
  expect(Object.keys(TIMES).sort()).toEqual(alerts.sort());
});

describe.each(Object.entries(TIMES))('%s', (alert, { bad, fires, well, ends, labels }) => {
  it('fires after as long as it says, and never without a reason', () => {
    // What it says, and how grave it is, is looked at where it is provoked.
    const bare = read(RULES).replace(/ {8}(labels: .*\n|annotations:\n(?: {10}.*\n)+)/g, '');
    const early: [number, boolean][] = fires === 0 ? [] : [[fires - STEP_S, false]];
    const late: [number, boolean][] = ends === undefined ? [[LONG_S, true]] : [[ends, false]];
    const tests = [
      caseOf(alert, labels, bad, [...early, [fires, true], ...late]),
      caseOf(
        alert,
        labels,
        well,
        [fires, LONG_S].map((at) => [at, false]),
      ),
    ];
    const file = { rule_files: [write(`${alert}.yml`, bare)], evaluation_interval: `${STEP_S}s`, tests };
    expect(promtool('test', 'rules', write(`${alert}.json`, JSON.stringify(file)))).toContain('SUCCESS');
  });
});
