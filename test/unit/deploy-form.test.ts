import { expect, it } from 'vitest';
import { HALF_TYPED, limitFaults, NO_LIMITS, withoutHalf } from '../../console/src/data/instances/limits.js';
import type { Template } from '../../console/src/data/api/models.js';
import {
  EMPTY_FORM,
  overrideFault,
  overrideOf,
  requestOf,
  valueFault,
  withOverride,
  withoutSecrets,
  type ShownForm,
} from '../../console/src/pages/deploy/form.js';

const AGAIN = 'Type it again: secrets are not kept.';
const variable = (key: string, secret: boolean) => ({ key, value: null, secret });
const TEMPLATE = {
  id: 'one',
  env: [variable('TOKEN', true), variable('OPEN', false)],
} as Partial<Template> as Template;

const sent = (form: ShownForm) => requestOf(form, 'offer', TEMPLATE)?.env_overrides;

it('refuses a deploy that lacks a value it has not kept, until that is typed again or given up', () => {
  const added = [true, false].map((secret, row) => ({ row, key: `K${row}`, value: 'typed', secret }));
  let form: ShownForm = { ...EMPTY_FORM, disk: '10', added };
  form = { ...form, ...withOverride(form, TEMPLATE, 'TOKEN', 'hush') };
  form = { ...form, ...withOverride(form, TEMPLATE, 'OPEN', '1') };
  expect(sent(form)).toHaveLength(4);
  // Over a second time that nothing was typed, too.
  let kept: ShownForm = { ...form, ...withoutSecrets(withoutSecrets(form, TEMPLATE), TEMPLATE) };
  expect(sent(kept)).toBeUndefined();
  expect([overrideOf(kept, TEMPLATE, 'OPEN'), overrideFault(kept, TEMPLATE, 'OPEN')]).toEqual(['1', undefined]);
  expect([overrideOf(kept, TEMPLATE, 'TOKEN'), overrideFault(kept, TEMPLATE, 'TOKEN')]).toEqual(['', AGAIN]);
  expect(kept.added.map(valueFault)).toEqual([AGAIN, undefined]);
  kept = { ...kept, ...withOverride(kept, TEMPLATE, 'TOKEN', '') };
  expect(sent(kept)).toBeUndefined();
  kept = { ...kept, added: kept.added.slice(1) };
  expect(sent(kept)).toEqual([
    { key: 'OPEN', value: '1', secret: false },
    { key: 'K1', value: 'typed', secret: false },
  ]);
  // A value was typed for another template: nobody knows here whether it is a secret.
  const other = withoutSecrets(form, { id: 'two', env: TEMPLATE.env });
  expect(JSON.stringify(other)).not.toContain('hush');
  expect(overrideFault(other, TEMPLATE, 'OPEN')).toBe(AGAIN);
});

it('asks nobody to type again what nobody has typed', () => {
  const added = [{ row: 1, key: 'K', value: '', secret: true }];
  const form: ShownForm = { ...EMPTY_FORM, disk: '10', added };
  const emptied = { ...form, ...withOverride(form, TEMPLATE, 'TOKEN', '') };
  expect(sent({ ...emptied, ...withoutSecrets(emptied, TEMPLATE) })).toEqual([{ key: 'K', value: '', secret: true }]);
});

it('refuses a time that is half typed, and keeps nothing of it', () => {
  const limits = { ...NO_LIMITS, stopAt: HALF_TYPED, idleMinutes: '30' };
  expect(limitFaults(limits)).toEqual({ stopAt: 'Give a day and a time.' });
  const form: ShownForm = { ...EMPTY_FORM, disk: '10', limits };
  expect(requestOf(form, 'offer', TEMPLATE)).toBeUndefined();
  expect(withoutHalf(limits)).toEqual({ ...limits, stopAt: '' });
  expect(withoutSecrets(form, TEMPLATE).limits.stopAt).toBe('');
});
