import fc from 'fast-check';
import { expect, it } from 'vitest';
import { misfitOf } from '../../console/src/data/instances/fit.js';
import { costNow, sshCommand, vsCodeLink, webAddress } from '../../console/src/data/instances/instances.js';
import { fromLimits, limitFaults, NO_LIMITS, toLimits } from '../../console/src/data/instances/limits.js';
import { LogText } from '../../console/src/data/instances/log-text.js';
import type { Instance, Template } from '../../console/src/data/api/models.js';
import {
  diskOf,
  EMPTY_FORM,
  overrideOf,
  requestOf,
  withOverride,
  withoutSecrets,
  type ShownForm,
} from '../../console/src/pages/deploy/form.js';
import { chosen, grouped } from '../../console/src/pages/instances/choice.js';
import { instancesSearch } from '../../console/src/pages/instances/search.js';
import { choicesOf } from '../../console/src/pages/market/choice.js';
import { marketSearch, wantedOf } from '../../console/src/pages/market/search.js';

const address = { ssh_host: '203.0.113.7', ssh_port: 20_022, ssh_user: 'root' };

it('gives a shell only addresses that are some', () => {
  expect(sshCommand(address)).toBe('ssh -p 20022 root@203.0.113.7');
  expect(vsCodeLink(address)).toBe('vscode://vscode-remote/ssh-remote+root@203.0.113.7:20022/root');
  for (const changed of [
    { ssh_host: null },
    { ssh_user: '-oProxyCommand=x' },
    { ssh_user: 'a b' },
    { ssh_host: '$(x)' },
  ]) {
    expect(sshCommand({ ...address, ...changed })).toBeUndefined();
    expect(vsCodeLink({ ...address, ...changed })).toBeUndefined();
  }
});

it('opens only web addresses, whatever a host reports', () => {
  expect(webAddress('https://h:1/?token=x')).toBe('https://h:1/?token=x');
  for (const url of [null, '', 'javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', '//h', 'vscode://x'])
    expect(webAddress(url)).toBeUndefined();
});

it('shows output as plain text, without what moves a terminal or turns the text', () => {
  const plainLine = (line: string) => new LogText().line(line);
  expect(plainLine('\u001b[1;31mred\u001b[0m \u001b]0;title\u0007<b>')).toBe('red <b>');
  expect(plainLine(' 10 %\r 50 %\r')).toBe(' 50 %');
  expect(plainLine('one\ntwo')).toBe('one\\u{a}two');
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (line) => {
      // oxlint-disable-next-line no-control-regex
      expect(plainLine(line)).not.toMatch(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
    }),
  );
});

it('reads back the limits that it has shown, and says what is wrong with others', () => {
  const limits = { max_charge_micro: 12_345_678, idle_stop_minutes: 60, on_limit: 'destroy' as const };
  for (const stop_at of ['2026-11-24T12:00:00.000Z', '2026-11-24T12:00:03.004Z', null])
    expect(toLimits(fromLimits({ ...limits, stop_at }))).toEqual({ ...limits, stop_at });
  expect(limitFaults(NO_LIMITS)).toEqual({});
  expect(Object.keys(limitFaults({ stopAt: 'x', maxCharge: '0', idleMinutes: '1.5', onLimit: 'stop' }))).toHaveLength(
    3,
  );
});

it('knows what fits: versions are compared as numbers', () => {
  const needs = { kind: 'container' as const, cuda_max: '12.10', cuda_min: '12.9', arch: 'x86_64', coming_soon: false };
  const machine = { vm_capable: false, cuda_version: '12.9' };
  expect(misfitOf(needs, machine)).toBeUndefined();
  expect(misfitOf(needs, { ...machine, cuda_version: '12.11' })).toContain('12.11');
  expect(misfitOf({ ...needs, cuda_min: '12.10' }, machine)).toContain('needs CUDA 12.10');
  expect(misfitOf({ ...needs, kind: 'vm' }, machine)).toContain('virtual machine');
  expect(misfitOf({ ...needs, arch: 'arm64' }, machine)).toContain('arm64');
});

it('says what is charged now: GPU time while it runs, the disk while it is stopped', () => {
  const terms = { price_per_hour_micro: 1_200_000, disk_gb: 20, storage_price_per_gb_hour_micro: 100 };
  const costs = (['creating', 'running', 'stopped', 'error'] as const).map((status) => costNow({ ...terms, status }));
  expect(costs).toEqual([0, 1_200_000, 2_000, 0]);
});

it('filters and groups instances: what failed comes first, and each is in exactly one group', () => {
  const item = (status: 'running' | 'stopped' | 'error', label: string | null) => ({
    status,
    label,
    template: { name: 'vLLM' } as Instance['template'],
  });
  const items = [item('running', 'train'), item('stopped', null), item('error', 'Train'), item('running', 'serve')];
  const titles = (groups: readonly { title: string; items: unknown[] }[]) =>
    groups.map(({ title, items: members }) => `${title}: ${members.length}`);
  expect(titles(grouped(items, undefined))).toEqual(['Failed: look at these: 1', 'Running: 2', 'Stopped: 1']);
  expect(titles(grouped(items, 'label'))).toEqual(['serve: 1', 'train: 1', 'Train: 1', 'Without a label: 1']);
  expect(titles(grouped(items, 'template'))).toEqual(['vLLM: 4']);
  expect(chosen(items, { words: 'TRAIN' }).map(({ status }) => status)).toEqual(['running', 'error']);
  expect(chosen(items, { words: 'vllm', need: 'stopped' })).toHaveLength(1);
  expect(instancesSearch({ need: 'gone', words: 7, by: 'label', other: 1 })).toEqual({ by: 'label' });
});

it('proposes a disk that fits, 20 GB or what is free, and leaves one that was typed', () => {
  expect([undefined, 500, 15, 3].map((free) => diskOf(EMPTY_FORM, free))).toEqual(['20', '20', '15', '10']);
  expect(diskOf({ ...EMPTY_FORM, disk: '500' }, 15)).toBe('500');
});

it('keeps no secret of a deploy, and gives the value of a variable to no other template', () => {
  const templateWith = (id: string, secret: boolean) =>
    ({
      id,
      env: [{ key: 'TOKEN', value: null, secret }, ...(secret ? [{ key: 'OPEN', value: null, secret: false }] : [])],
    }) as unknown as Template;
  const [hiding, open] = [templateWith('one', true), templateWith('two', false)];
  const added = [true, false].map((secret, row) => ({ row, key: `K${row}`, value: 'typed', secret }));
  let form: ShownForm = { ...EMPTY_FORM, label: 'mine', disk: '10', added };
  form = { ...form, ...withOverride(form, hiding, 'TOKEN', 'hush') };
  form = { ...form, ...withOverride(form, hiding, 'OPEN', '1') };
  const variablesOf = (template: Template) => requestOf(form, 'offer', template)?.env_overrides;
  const others = added.map(({ key, value, secret }) => ({ key, value, secret }));
  expect(variablesOf(hiding)).toEqual([
    { key: 'TOKEN', value: 'hush', secret: true },
    { key: 'OPEN', value: '1', secret: false },
    ...others,
  ]);
  expect(variablesOf(open)).toEqual(others);
  for (const template of [hiding, open, undefined])
    expect(JSON.stringify(withoutSecrets(form, template))).not.toContain('hush');
  const kept = withoutSecrets(form, hiding);
  expect(kept.label).toBe('mine');
  expect(kept.added.map(({ value }) => value)).toEqual(['', 'typed']);
  expect(overrideOf(kept, hiding, 'OPEN')).toBe('1');
});

it('asks for the offers that an address names, and offers also the choice that has none left', () => {
  const read = marketSearch({ gpu: 'H100', count: '4', region: 'x'.repeat(201), sort: 'toString', other: 1 });
  expect(read).toEqual({ gpu: 'H100', count: 4 });
  expect(wantedOf({ ...read, sort: 'memory' }, 'id')).toEqual({
    template_id: 'id',
    gpu_model: 'H100',
    num_gpus: 4,
    sort: 'memory_desc',
  });
  const bounded = marketSearch({ gpu: 4090, price: 1.5, vm: true });
  expect(bounded).toEqual({ gpu: '4090', price: 1.5, vm: true });
  expect(wantedOf(bounded, undefined)).toEqual({
    gpu_model: '4090',
    max_price_per_hour_micro: 15e5,
    vm_capable: true,
  });
  for (const price of [0.000001, 999_999_999.999999, 0])
    expect(wantedOf(marketSearch({ price }), undefined).max_price_per_hour_micro).toBe(Math.round(price * 1_000_000));
  expect(marketSearch({ price: '1,5', vm: 'yes' })).toEqual({});
  expect(marketSearch({ price: 1e-7 })).toEqual({});
  const counted = [8, 1].map((value) => ({ value, offers: value }));
  expect(choicesOf(counted, 8)).toEqual([counted[1], counted[0]]);
  expect(choicesOf(counted, 4)).toEqual([counted[1], { value: 4, offers: 0 }, counted[0]]);
});
