import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../data/api/api.js';
import type { Schedule } from '../../data/api/models.js';
import { Button } from '../../parts/controls/button.js';
import { CheckBox, Field, Input, Select } from '../../parts/forms/field.js';
import { Form, FormError } from '../../parts/forms/form.js';
import { LeaveQuestion } from '../../parts/forms/leave-question.js';
import { Section } from '../../parts/layout/page.js';
import { Loaded, Notice } from '../../parts/controls/states.js';
import { At } from '../../parts/values/time.js';
import { say } from '../../parts/controls/toast.js';
import styles from './page.module.css';
import { scheduleOf } from './schedule-query.js';

type Entry = Schedule['entries'][number];
const DAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const;
const ACTIONS = [
  { value: 'start', label: 'Start' },
  { value: 'stop', label: 'Stop' },
] as const;
const NEW_ENTRY: Entry = { action: 'stop', days: DAYS.slice(0, 5), at: '18:00' };
const MOST_ENTRIES = 20;

/** The time zone of this browser. */
const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** At which times of the week the instance is started and stopped. */
export function ScheduleForm({ id, mayChange }: { id: string; mayChange: boolean }) {
  const query = useQuery(scheduleOf(id));
  return (
    <Section title="Schedule">
      <Loaded query={query} rows={1}>
        {(schedule) => <Entries id={id} schedule={schedule} mayChange={mayChange} />}
      </Loaded>
    </Section>
  );
}

/** What somebody has changed here and not saved yet. What is absent follows what others save meanwhile. */
interface Edited {
  /** The schedule as it was when they began. */
  over: Schedule;
  entries?: Entry[];
  time_zone?: string;
}

function Entries({ id, schedule, mayChange }: { id: string; schedule: Schedule; mayChange: boolean }) {
  const [edited, setEdited] = useState<Edited>();
  const { entries = schedule.entries, time_zone = schedule.time_zone ?? HERE } = edited ?? {};
  const edit = (changed: Omit<Edited, 'over'>) => setEdited((known) => ({ over: schedule, ...known, ...changed }));
  const save = useSave(id, edited, () => setEdited(undefined));
  const change = (index: number, entry: Entry) =>
    edit({ entries: entries.map((each, at) => (at === index ? entry : each)) });
  return (
    <Form onSubmit={() => save.mutate()} error={save.error}>
      {schedule.next && (
        <p className={styles.total}>
          Next: {schedule.next.action} <At at={schedule.next.at} />
        </p>
      )}
      {edited && !save.isPending && contentOf(edited.over) !== contentOf(schedule) && (
        <ChangedMeanwhile onDrop={() => setEdited(undefined)} />
      )}
      {entries.length === 0 && !mayChange && <p className={styles.muted}>There is none.</p>}
      <fieldset disabled={!mayChange}>
        {entries.length > 0 && (
          <div className={styles.form}>
            <Field name="time_zone" label="Time zone" hint="Such as Europe/Berlin.">
              {(tied) => (
                <Input {...tied} value={time_zone} onChange={({ target }) => edit({ time_zone: target.value })} />
              )}
            </Field>
          </div>
        )}
        {entries.map((entry, index) => (
          <EntryFields
            key={index}
            name={`entries.${index}`}
            entry={entry}
            onChange={(changed) => change(index, changed)}
            onRemove={mayChange ? () => edit({ entries: entries.filter((_, at) => at !== index) }) : undefined}
          />
        ))}
      </fieldset>
      <FormError />
      {mayChange && (
        <div className={styles.links}>
          {entries.length < MOST_ENTRIES && (
            <Button onClick={() => edit({ entries: [...entries, NEW_ENTRY] })}>Add a time</Button>
          )}
          {(entries.length > 0 || schedule.entries.length > 0) && (
            <Button type="submit" kind="main" isBusy={save.isPending}>
              Save the schedule
            </Button>
          )}
        </div>
      )}
      <LeaveQuestion what="schedule" isDirty={() => mayChange && edited !== undefined} />
    </Form>
  );
}

/** Saves what was changed here. No event tells of a schedule, so it is read first: what nobody has touched here stays as it is now. */
function useSave(id: string, edited: Edited | undefined, onSaved: () => void) {
  const queries = useQueryClient();
  const params = { path: { id } };
  return useMutation({
    mutationFn: async () => {
      const now = await api.get('/v1/instances/{id}/schedule', { params });
      const { entries = now.entries, time_zone = now.time_zone ?? HERE } = edited ?? {};
      if (entries.length > 0) return api.put('/v1/instances/{id}/schedule', { params, body: { time_zone, entries } });
      await api.delete('/v1/instances/{id}/schedule', { params });
      return { time_zone: null, entries: [], next: null };
    },
    onSuccess: (saved) => {
      queries.setQueryData(scheduleOf(id).queryKey, saved);
      onSaved();
      say('The schedule is saved');
    },
  });
}

/** Returns what people set of a schedule, to compare it with another one. */
function contentOf({ time_zone, entries }: Schedule): string {
  return JSON.stringify([time_zone, entries.map(({ action, days, at }) => [action, days, at])]);
}

function ChangedMeanwhile({ onDrop }: { onDrop: () => void }) {
  return (
    <Notice kind="warning">
      <p role="status">
        Somebody has changed the schedule meanwhile. What you have changed here is still here: if you save it, it takes
        the place of theirs.
      </p>
      <div className={styles.links}>
        <Button onClick={onDrop}>Show theirs</Button>
      </div>
    </Notice>
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
