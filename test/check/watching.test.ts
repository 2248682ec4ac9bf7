import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Metrics } from '../../agent/status/metrics.js';
import { TestControlPlane } from '../harness/control-plane.js';

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');
const known = new Set<string>();
let test: TestControlPlane;
/** An agent that has nothing. */
const EMPTY = {
  version: '',
  connected: true,
  dockerAvailable: true,
  obstacle: '',
  diskFreeGb: 0,
  unanswered: [],
  hostKeyFault: '',
  certificates: [],
  needs: [],
  gpus: [],
  workloads: [],
  commands: [],
};

beforeAll(async () => {
  test = await TestControlPlane.start();
  const shown = [await (await fetch(`${test.url}/metrics`)).text(), await new Metrics().render(EMPTY as never)];
  for (const [, name = '', kind] of shown.join('\n').matchAll(/^# TYPE (\S+) (\S+)/gm)) {
    known.add(name);
    if (kind === 'histogram') for (const part of ['bucket', 'count', 'sum']) known.add(`${name}_${part}`);
  }
});
afterAll(() => test.stop());

describe.each(['packaging/grafana-dashboard.json', 'packaging/alerts.yml'])('%s', (path) => {
  it('asks for metrics that there are', () => {
    const asked = [...read(path).matchAll(/\b(?:gpurent|nodejs)_[a-z0-9_]+/g)].map(([name]) => name);
    expect(asked.length).toBeGreaterThan(9);
    expect(asked.filter((name) => !known.has(name))).toEqual([]);
  });
});

it('a disk that nobody can ask about, because Docker does not answer, is not shown as a full one', async () => {
  const metrics = new Metrics();
  const shown = async (dockerAvailable: boolean) =>
    /^gpurent_agent_disk_free_gigabytes .*$/m.exec(await metrics.render({ ...EMPTY, dockerAvailable } as never))?.[0];
  expect(await shown(false)).toBeUndefined();
  expect(await shown(true)).toBe('gpurent_agent_disk_free_gigabytes 0');
});

it('every alert stands in the guide, and no other', () => {
  const names = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, name]) => name).sort();
  const raised = names(read('packaging/alerts.yml'), /alert: (\w+)/g);
  expect(names(read('docs/alerts.md'), /^\| `(\w+)`/gm)).toEqual(raised);
});

it('every rule says how grave it is, what is wrong, and where to read what to do', () => {
  const rules = read('packaging/alerts.yml').split('- alert: ').slice(1);
  for (const rule of rules) {
    expect(rule).toMatch(/labels: \{ severity: (critical|warning) \}/);
    expect(rule).toMatch(/\n\s+summary: \S.{9}/);
    const guide = /runbook_url: file:\/\/\/opt\/gpurent\/(control-plane|agent)\/(docs\/\S+\.md)/.exec(rule)?.[2] ?? '';
    expect(read(guide)).toContain(rule.split('\n')[0]);
  }
});

it('every setting of the configuration files stands in a guide', () => {
  const settings = (text: string) => new Set([...text.matchAll(/\bGPURENT_[A-Z_]+[A-Z]/g)].map(([name]) => name));
  const written = settings(read('docs/operator.md') + read('docs/host-owner.md'));
  const offered = settings(read('packaging/control-plane.conf') + read('packaging/agent.conf'));
  expect([...offered].filter((name) => !written.has(name))).toEqual([]);
});
