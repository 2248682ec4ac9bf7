import { expect } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { agentCases } from './agent-cases.js';
import type { AlertCase } from './cases.js';
import { controlPlaneCases } from './control-plane-cases.js';
import { Installation, RULES, read } from './installation.js';

export const cases: Readonly<Record<string, readonly AlertCase[]>> = { ...controlPlaneCases, ...agentCases };
const rules = new Map(
  read(RULES)
    .split('- alert: ')
    .slice(1)
    .map((rule) => [/^\w+/.exec(rule)?.[0] ?? '', rule]),
);
export const alerts = [...rules.keys()];

/** What Prometheus leaves of a template that it cannot fill in. */
const UNFILLED = /<no value>|<error|\{\{|NaN|Inf/;

/** Brings an alert about, looks at what it says, follows the guide, and sees it end. */
export async function provoke(alert: string, one: AlertCase): Promise<void> {
  const { agent = false, everyMs } = one;
  const installation = await Installation.start({ agent, ...(everyMs === undefined ? {} : { everyMs }) });
  try {
    expect(await firing(installation)).toEqual([]);
    const follow = await one.provoke(installation);
    await eventually(`${alert} to fire`, async () => (await firing(installation)).includes(alert));
    await installation.settled();
    expect(await firing(installation)).toEqual([alert, ...(one.also ?? [])].sort());
    await checkWords(installation, alert, one.summary);
    await follow();
    if (one.lasts) return;
    await eventually('nothing to fire', async () => (await firing(installation)).length === 0);
    await installation.settled();
    expect(await firing(installation)).toEqual([]);
  } finally {
    await installation.stop();
  }
}

async function firing(installation: Installation): Promise<string[]> {
  return (await installation.firing()).map(({ labels }) => labels['alertname'] ?? '').sort();
}

/** It is as grave as its rule says, its summary is whole, and its link leads to where the guide has it. */
async function checkWords(installation: Installation, alert: string, whole: RegExp): Promise<void> {
  const fired = (await installation.firing()).find(({ labels }) => labels['alertname'] === alert);
  const { summary = '', runbook_url: url = '' } = fired?.annotations ?? {};
  expect(summary).toMatch(whole);
  expect(summary).not.toMatch(UNFILLED);
  expect(rules.get(alert)).toContain(`severity: ${fired?.labels['severity']} }`);
  expect(read(url.replace(/^file:\/\/\/opt\/gpurent\/(control-plane|agent)\//, ''))).toContain(`| \`${alert}\` |`);
}
