import type { GpurentEvent } from '../../../../client/api/index.js';

type Key = readonly string[];

/** What each kind of event is about, by the first word of its type: the keys of the queries that it makes old. */
const CONCERNS: Readonly<Record<string, readonly Key[]>> = {
  api_key: [['api-keys']],
  member: [['members'], ['invites'], ['me'], ['api-keys']],
  invite: [['invites'], ['members']],
  billing: [['organization'], ['billing'], ['spend-caps']],
  organization: [['organization'], ['me'], ['instances'], ['instance']],
  webhook: [['webhooks']],
  machine: [['offers'], ['instances'], ['instance']],
};

/** What people and programs have done is in the audit log, too. */
const ACTS: readonly Key[] = [['audit-log']];

/** Returns the keys of the queries that an event makes old; each stands also for the longer keys that begin with it. */
export function concernsOf({ type, subject }: Pick<GpurentEvent, 'type' | 'subject'>): readonly Key[] {
  const [about = ''] = type.split('.');
  if (about !== 'instance') return [...(CONCERNS[about] ?? []), ...(about in CONCERNS ? ACTS : [])];
  const id = subject.replace(/^.*\//, '');
  // Progress changes neither what an instance costs nor what is free.
  if (type === 'instance.progress') return [['instance', id, 'events']];
  return [['instances'], ['instance', id], ['organization'], ['offers'], ['billing'], ...ACTS];
}
