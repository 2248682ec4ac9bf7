import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../data/api.js';
import type { Schedule } from '../../data/models.js';
import { Button } from '../../parts/button.js';
import { CheckBox, Field, Input, Select } from '../../parts/field.js';
import { Form, FormError } from '../../parts/form.js';
import { Section } from '../../parts/page.js';
import { Loaded } from '../../parts/states.js';
import { At } from '../../parts/time.js';
import { say } from '../../parts/toast.js';
import styles from './page.module.css';
import { scheduleOf } from './schedule-query.js';

type Entry = Schedule['entries'][number];
const DAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const;
const ACTIONS = [
  { value: 'start', label: 'Start' },
  { value: 'stop', label: 'Stop' },
] as const;
const NEW_ENTRY: Entry = { action: 'stop', days: [...DAYS.slice(0, 5)], at: '18:00' };
const MOST_ENTRIES = 20;

/** At which times of the week the instance is started and stopped. */
export function ScheduleForm({ id, mayChange }: { id: string; mayChange: boolean }) {
  const query = useQuery(scheduleOf(id));
  return (
    <Section title="Schedule">
      <Loaded query={query} rows={1}>
        {(schedule) => <Entries key={JSON.stringify(schedule.entries)} {...{ id, schedule, mayChange }} />}
      </Loaded>
    </Section>
  );
}

function Entries({ id, schedule, mayChange }: { id: string; schedule: Schedule; mayChange: boolean }) {
  const queries = useQueryClient();
  const [entries, setEntries] = useState(schedule.entries);
  const [time_zone, setZone] = useState(schedule.time_zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone);
  const params = { path: { id } };
  const save = useMutation({
    mutationFn: async () => {
      if (entries.length > 0) return api.put('/v1/instances/{id}/schedule', { params, body: { time_zone, entries } });
      await api.delete('/v1/instances/{id}/schedule', { params });
      return { time_zone: null, entries: [], next: null };
    },
    onSuccess: (saved) => {
      queries.setQueryData(scheduleOf(id).queryKey, saved);
      say('The schedule is saved');
    },
  });
  const change = (index: number, entry: Entry) => setEntries(entries.map((each, at) => (at === index ? entry : each)));
  return (
    <Form onSubmit={() => save.mutate()} error={save.error}>
      {schedule.next && (
        <p className={styles.total}>
          Next: {schedule.next.action} <At at={schedule.next.at} />
        </p>
      )}
      {entries.length === 0 && !mayChange && <p className={styles.muted}>There is none.</p>}
      <fieldset disabled={!mayChange}>
        {entries.length > 0 && (
          <div className={styles.form}>
            <Field name="time_zone" label="Time zone" hint="Such as Europe/Berlin.">
              {(tied) => <Input {...tied} value={time_zone} onChange={(event) => setZone(event.target.value)} />}
            </Field>
          </div>
        )}
        {entries.map((entry, index) => (
          <EntryFields
            key={index}
            name={`entries.${index}`}
            entry={entry}
            onChange={(changed) => change(index, changed)}
            onRemove={mayChange ? () => setEntries(entries.filter((_, at) => at !== index)) : undefined}
          />
        ))}
      </fieldset>
      <FormError />
      {mayChange && (
        <div className={styles.links}>
          {entries.length < MOST_ENTRIES && (
            <Button onClick={() => setEntries([...entries, NEW_ENTRY])}>Add a time</Button>
          )}
          {(entries.length > 0 || schedule.entries.length > 0) && (
            <Button type="submit" kind="main" isBusy={save.isPending}>
              Save the schedule
            </Button>
          )}
        </div>
      )}
    </Form>
  );
}

interface EntryProps {
  name: string;
  entry: Entry;
  onChange: (entry: Entry) => void;
  onRemove: (() => void) | undefined;
}

function EntryFields({ name, entry, onChange, onRemove }: EntryProps) {
  const toggle = (day: Entry['days'][number], isOn: boolean) =>
    onChange({ ...entry, days: DAYS.filter((each) => (each === day ? isOn : entry.days.includes(each))) });
  return (
    <fieldset className={styles.entry}>
      <div className={styles.entryHead}>
        <Field label="What">
          {(tied) => (
            <Select
              {...tied}
              choices={ACTIONS}
              value={entry.action}
              onChoose={(action) => onChange({ ...entry, action })}
            />
          )}
        </Field>
        <Field name={name} label="At">
          {(tied) => (
            <Input
              {...tied}
              type="time"
              required
              value={entry.at}
              onChange={(event) => onChange({ ...entry, at: event.target.value })}
            />
          )}
        </Field>
        {onRemove && <Button onClick={onRemove}>Remove this time</Button>}
      </div>
      <div className={styles.days}>
        {DAYS.map((day) => (
          <CheckBox
            key={day}
            label={day}
            checked={entry.days.includes(day)}
            onChange={(event) => toggle(day, event.target.checked)}
          />
        ))}
      </div>
    </fieldset>
  );
}
