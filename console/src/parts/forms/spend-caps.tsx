import { useState } from 'react';
import type { components } from '../../../../client/api/index.js';
import { useAct } from '../../data/forms/act.js';
import { changedFields } from '../../data/forms/changed-fields.js';
import { exactMoney, hourlyMoney, parseMoney, typedMoney } from '../../data/values/money.js';
import { stopsIn } from '../../data/instances/would-stop.js';
import { Button } from '../controls/button.js';
import { Confirm, DialogActions } from '../controls/dialog.js';
import { Field, Input } from './field.js';
import { Form, FormError } from './form.js';
import styles from '../spend-caps.module.css';

export type SpendCaps = components['schemas']['SpendCaps'];
/** What can be set; null: no cap. */
export type Caps = Pick<SpendCaps, 'burn_per_hour_micro' | 'day_micro' | 'month_micro'>;

const CAPS: readonly {
  name: keyof Caps;
  used: keyof SpendCaps;
  title: string;
  hint: string;
  words: (micro: number) => string;
  /** What stands after the amount in a list. */
  each: string;
}[] = [
  {
    name: 'burn_per_hour_micro',
    used: 'present_burn_per_hour_micro',
    title: 'Burn per hour',
    words: hourlyMoney,
    each: '',
    hint: 'A deploy or a start that would cost more is refused.',
  },
  {
    name: 'day_micro',
    used: 'spent_day_micro',
    title: 'Spent on this day (UTC)',
    words: exactMoney,
    each: ' a day',
    hint: 'When it is used up, running instances are stopped. Their disks are kept and charged.',
  },
  {
    name: 'month_micro',
    used: 'spent_month_micro',
    title: 'Spent in this month (UTC)',
    words: exactMoney,
    each: ' a month',
    hint: 'As for the day.',
  },
];

/** Shows what may be spent, and how much of it is. */
export function CapMeters({ caps }: { caps: SpendCaps }) {
  return (
    <ul className={styles.meters}>
      {CAPS.map(({ name, used, title, words }) => (
        <Meter key={name} title={title} words={words} used={Number(caps[used])} cap={caps[name]} />
      ))}
    </ul>
  );
}

interface MeterProps {
  title: string;
  used: number;
  cap: number | null;
  words: (micro: number) => string;
}

/** How full a cap is, in words that never say more room than there is. */
function Meter({ title, used, cap, words }: MeterProps) {
  const percent = cap === null ? 0 : cap === 0 ? 100 : Math.min(100, Math.ceil((used / cap) * 100));
  return (
    <li className={styles.meter}>
      <span>{title}</span>
      <span className={styles.amounts}>
        <data value={used}>{words(used)}</data>
        {cap === null ? (
          ', no cap'
        ) : (
          <>
            {' '}
            of <data value={cap}>{words(cap)}</data>, {percent} % used
          </>
        )}
      </span>
      {cap !== null && (
        <meter
          className={styles.bar}
          min={0}
          max={100}
          high={80}
          optimum={0}
          value={percent}
          aria-label={title}
          aria-valuetext={`${percent} % used`}
        />
      )}
    </li>
  );
}

/** Caps with the number of instances that may be stopped by them at once. */
type ExpectingCaps = Caps & { expect: number };

interface FormProps {
  caps: Caps;
  /** Reads the caps as they are when these are set. */
  read: () => Promise<Caps>;
  save: (caps: ExpectingCaps) => Promise<unknown>;
  onDone: () => void;
}

/**
 * The form of caps. Nothing is sent while a field is no amount. The API sets all caps: those that nobody has changed here stay as they are.
 * It asks before they stop instances at once.
 */
export function CapsForm({ caps, read, save, onDone }: FormProps) {
  const [before] = useState(() => onlyCaps(caps));
  const [texts, setTexts] = useState(() => textsOf(before));
  const saving = useAct(
    async ({ expect, ...typed }: ExpectingCaps) =>
      save({ ...onlyCaps(await read()), ...changedFields<Caps>(before, typed), expect }),
    [['spend-caps'], ['api-keys']],
    onDone,
  );
  const [asked, setAsked] = useState<ExpectingCaps>();
  const ask = (caps: ExpectingCaps, error: unknown) => {
    const expect = stopsIn(error);
    setAsked(expect === undefined ? undefined : { ...caps, expect });
  };
  const send = (caps: ExpectingCaps) => saving.mutate(caps, { onError: (error) => ask(caps, error) });
  const faults = CAPS.filter(({ name }) => readCap(texts[name]) === undefined);
  const submit = () => {
    const typed = capsIn(texts);
    if (typed) send({ ...typed, expect: 0 });
  };
  const error = stopsIn(saving.error) === undefined ? saving.error : null;
  return (
    <>
      <Form className={styles.form} onSubmit={submit} error={error} noValidate>
        <CapFields texts={texts} change={setTexts} />
        <FormError />
        <DialogActions>
          <Button onClick={onDone}>Cancel</Button>
          <Button kind="main" type="submit" disabled={faults.length > 0} isBusy={saving.isPending}>
            Set the caps
          </Button>
        </DialogActions>
      </Form>
      <Confirm
        isOpen={asked !== undefined}
        isBusy={saving.isPending}
        title={`Set the caps and stop ${asked?.expect === 1 ? '1 instance' : `${asked?.expect} instances`}`}
        verb="Set the caps"
        onConfirm={() => asked && send(asked)}
        onClose={() => setAsked(undefined)}
      >
        <p>These caps are used up already. Setting them ends the running work. What is not on a disk is lost.</p>
        <p>The disks are kept and charged.</p>
      </Confirm>
    </>
  );
}

/** Returns caps in a line. */
export function capWords(caps: Caps | null = null): string {
  const words = CAPS.flatMap(({ name, words: amount, each }) => {
    const micro = caps?.[name] ?? null;
    return micro === null ? [] : [amount(micro) + each];
  });
  return words.length === 0 ? 'no cap' : `at most ${words.join(', ')}`;
}

function eachCap<Value>(valueOf: (name: keyof Caps) => Value): Record<keyof Caps, Value> {
  return Object.fromEntries(CAPS.map(({ name }) => [name, valueOf(name)])) as Record<keyof Caps, Value>;
}

function onlyCaps(caps: Caps): Caps {
  return eachCap((name) => caps[name]);
}

export type CapTexts = Readonly<Record<keyof Caps, string>>;

interface FieldsProps {
  /** Where what is sent has the caps: the beginning of the names of the fields. */
  path?: string;
  texts: CapTexts;
  change: (texts: CapTexts) => void;
}

/** The fields of caps, as they are typed. */
export function CapFields({ path = '', texts, change }: FieldsProps) {
  return CAPS.map(({ name, title, hint }) => (
    <Field
      key={name}
      name={path + name}
      label={`${title}, at most`}
      hint={`${hint} Empty: no cap.`}
      error={
        readCap(texts[name]) === undefined ? 'Give dollars, such as 25 or 0.50, with at most 6 decimals.' : undefined
      }
    >
      {(tied) => (
        <Input
          {...tied}
          inputMode="decimal"
          placeholder="no cap"
          value={texts[name]}
          onChange={({ target }) => change({ ...texts, [name]: target.value })}
        />
      )}
    </Field>
  ));
}

export function textsOf(caps: Caps): CapTexts {
  const text = (micro: number | null) => (micro === null ? '' : typedMoney(micro));
  return eachCap((name) => text(caps[name]));
}

export const NO_CAP_TEXTS: CapTexts = eachCap(() => '');

/** Reads typed caps; undefined: one of them is no amount. */
export function capsIn(texts: CapTexts): Caps | undefined {
  const caps = eachCap((name) => readCap(texts[name]));
  return Object.values(caps).includes(undefined) ? undefined : (caps as Caps);
}

function readCap(text: string): number | null | undefined {
  return text.trim() === '' ? null : parseMoney(text);
}
