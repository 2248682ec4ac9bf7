import { Type, type Static, type TSchema } from 'typebox';
import { API_KEY_KINDS, ROLES } from '../../domain/caller.js';
import type { EventData, EventType } from '../../domain/event.js';
import { DISABLED_REASONS } from '../../domain/webhook.js';
import { INSTANCE_STATUSES } from '../../domain/instances/instance-state.js';
import { SCHEDULE_ACTIONS } from '../../domain/instances/schedule.js';
import { PERIODS } from '../../domain/money/spend-cap.js';
import { choice, integer, list, micro, nullable, text, timestamp, uuid } from '../schema/schemas.js';

/** What the timeline of an instance tells; each of its events has it. */
const told = {
  kind: text('The kind of the event in the timeline of the instance; later releases can add more'),
  message: text('A sentence that describes the event'),
};

const key = {
  api_key_id: uuid('The id of the API key'),
  name: text('The name of the key'),
  kind: choice(API_KEY_KINDS, 'Whether the key belongs to its creator or to the organization'),
  prefix: text('The first 12 characters of its secret'),
};

const roleOf = (who: string) => ({
  role: choice(ROLES, `The role of the ${who} in the organization; later releases can add roles`),
});
const member = { user_id: uuid('The id of the member'), ...roleOf('member') };
const invite = { invite_id: uuid('The id of the invitation'), ...roleOf('invited user') };

const money = {
  amount_micro: micro('The amount added to the balance; negative if it was taken'),
  balance_micro: micro('The balance after that'),
};
const payment = { ...money, payment_id: text('The id of the payment at its provider') };
const reason = nullable(text('The reason that the operator gave; null: none'));
const said = text('The reason that the operator gave');
const hours = integer('Which of the warnings this is: the number of hours before');
const balance = micro('The balance at that time');

const limitFacts = {
  percent: integer('Which step was reached: 50, 80 or 100'),
  limit_micro: micro('The limit'),
  spent_micro: micro('What counts for it so far'),
};

const machine = { machine_id: uuid('The id of the machine'), machine_name: text('The name of the machine') };
const operated = {
  user_id: uuid('The id of the user'),
  by_user_id: uuid('The id of the operator who did it'),
  reason: text('The reason that this operator gave'),
};
const whyUnhealthy = nullable(text('Why; null: the machine does not say'));
const gpu = { ...machine, gpu_uuid: text('The id of the GPU') };
const affected = {
  ...machine,
  instance_ids: list(Type.String(), 'The ids of the instances of the organization on it'),
};

/** Every type of event: what it means, and what its `data` has. The guide docs/events.md has the same table. */
export const EVENT_MODELS = {
  'instance.status_changed': {
    meaning: 'The status of an instance has changed, or an instance was deployed.',
    data: Type.Object({
      ...told,
      previous_status: nullable(choice(INSTANCE_STATUSES, 'The status before; null: the instance is new')),
      status: choice(INSTANCE_STATUSES, 'The status now'),
    }),
  },
  'instance.progress': {
    meaning: 'A host reports a step of a deploy, start, stop or destroy; of an image, each tenth.',
    data: Type.Object({
      ...told,
      percent: nullable(integer('How much of the step is done; null: this is not known')),
    }),
  },
  'instance.gpus_released': {
    meaning: 'The GPUs of a stopped instance were released; its disk stays.',
    data: Type.Object(told),
  },
  'instance.charge_limit': {
    meaning: '50, 80 or 100 percent of the `max_charge_micro` of an instance are used up.',
    data: Type.Object({ ...told, ...limitFacts }),
  },
  'instance.disk_filling': {
    meaning: 'The disk of an instance is 90 or 98 percent full.',
    data: Type.Object({ ...told, percent: integer('Which of the two it is') }),
  },
  'instance.gpu_unhealthy': {
    meaning: 'The host reports that a GPU of an instance is unhealthy, or that its driver no longer lists it.',
    data: Type.Object({ ...told, gpu_uuid: text('The id of the GPU'), reason: whyUnhealthy }),
  },
  'instance.gpu_healthy': {
    meaning: 'A GPU of an instance of which `instance.gpu_unhealthy` was told is healthy again.',
    data: Type.Object({ ...told, gpu_uuid: text('The id of the GPU') }),
  },
  'instance.idle': {
    meaning: 'An instance is idle, and is stopped for it in ten minutes or more unless it is used.',
    data: Type.Object({
      ...told,
      idle_since: timestamp('Since when it is idle'),
      stops_at: timestamp('When it is stopped, at the earliest'),
    }),
  },
  'instance.noted': {
    meaning: 'Something else about an instance; `kind` says what.',
    data: Type.Object(told),
  },
  'instance.schedule_refused': {
    meaning: 'The schedule of an instance could not start it; `code` says why.',
    data: Type.Object({
      ...told,
      action: choice(SCHEDULE_ACTIONS, 'What the schedule was to do'),
      code: text(
        'The code with which the API refuses such a request, or `SCHEDULE_MISSED`; later releases can add codes',
      ),
    }),
  },
  'api_key.created': { meaning: 'An API key was created.', data: Type.Object(key) },
  'api_key.revoked': { meaning: 'An API key was revoked.', data: Type.Object(key) },
  'api_key.expired': { meaning: 'An API key has expired.', data: Type.Object(key) },
  'member.joined': { meaning: 'A user has joined the organization.', data: Type.Object(member) },
  'member.role_changed': { meaning: 'A member has another role now.', data: Type.Object(member) },
  'member.left': {
    meaning: 'A member has left the organization, or was removed.',
    data: Type.Object(member),
  },
  'invite.created': { meaning: 'A user was invited to the organization.', data: Type.Object(invite) },
  'invite.revoked': { meaning: 'An invitation was withdrawn.', data: Type.Object(invite) },
  'billing.credited': {
    meaning: 'The operator has given credit.',
    data: Type.Object({ ...money, reason }),
  },
  'billing.debited': {
    meaning: 'The operator has taken credit back.',
    data: Type.Object({ ...money, reason }),
  },
  'billing.paid': { meaning: 'A payment was received.', data: Type.Object(payment) },
  'billing.payment_failed': {
    meaning: 'A payment has failed after its checkout, such as a direct debit; the balance is unchanged.',
    data: Type.Object(payment),
  },
  'billing.refunded': { meaning: 'A payment was refunded.', data: Type.Object(payment) },
  'billing.refund_failed': {
    meaning: 'A refund has failed; its amount is credited again.',
    data: Type.Object(payment),
  },
  'billing.dispute_debited': {
    meaning: 'A dispute of a payment was lost; its amount is debited.',
    data: Type.Object(payment),
  },
  'billing.dispute_returned': {
    meaning: 'A lost dispute was won after all; its amount is credited again.',
    data: Type.Object(payment),
  },
  'billing.payments_frozen': {
    meaning: 'A payment is disputed: deploys and starts are refused until the dispute is closed.',
    data: Type.Object({}),
  },
  'billing.payments_unfrozen': {
    meaning: 'No dispute is open any more.',
    data: Type.Object({}),
  },
  'billing.balance_low': {
    meaning: 'The balance lasts less than 24 hours, 4 hours or 1 hour at what is charged now.',
    data: Type.Object({
      balance_micro: balance,
      lasts_until: timestamp('When the balance will be used up'),
      hours,
    }),
  },
  'billing.balance_exhausted': {
    meaning: 'The balance is used up; running instances were stopped.',
    data: Type.Object({ balance_micro: balance }),
  },
  'billing.spend_cap': {
    meaning: '50, 80 or 100 percent of what the organization or an API key may spend in a day or month are spent.',
    data: Type.Object({
      api_key_id: nullable(uuid('The id of the API key; null: it is the cap of the organization')),
      period: choice(PERIODS, 'The UTC day, or the calendar month'),
      ...limitFacts,
    }),
  },
  'billing.disks_at_risk': {
    meaning: 'Instances will be destroyed with their disks in 24, 6 or 1 hours, because nobody has paid.',
    data: Type.Object({
      balance_micro: balance,
      destroyed_at: timestamp('When they will be destroyed'),
      hours,
      instances: integer('The number of these instances'),
    }),
  },
  'machine.maintenance_planned': {
    meaning: 'Maintenance is planned for a machine on which the organization has instances.',
    data: Type.Object({
      ...affected,
      starts_at: timestamp('When the maintenance starts'),
      ends_at: timestamp('When it ends'),
    }),
  },
  'machine.maintenance_cancelled': {
    meaning: 'Planned maintenance of such a machine was cancelled.',
    data: Type.Object(affected),
  },
  'machine.notice': {
    meaning: 'The operator says something about a machine on which the organization has instances.',
    data: Type.Object({ ...affected, message: text('What the operator says') }),
  },
  'member.sessions_ended': {
    meaning: 'An operator has ended the sessions of a member.',
    data: Type.Object({
      user_id: uuid('The id of the member'),
      reason: said,
      api_keys_revoked: integer('The number of API keys of the organization that were revoked with them'),
    }),
  },
  'organization.suspended': {
    meaning:
      'An operator has suspended the organization: nothing can be deployed or started, and what runs is stopped.',
    data: Type.Object({
      reason: said,
      disks_kept_until: timestamp('When its instances are destroyed with their disks'),
    }),
  },
  'organization.restored': {
    meaning: 'An operator has restored the organization: its instances can be started again.',
    data: Type.Object({ reason: said }),
  },
  'organization.disks_at_risk': {
    meaning: 'The organization is suspended, and its instances will be destroyed with their disks in 24, 6 or 1 hours.',
    data: Type.Object({
      reason: said,
      destroyed_at: timestamp('When they will be destroyed'),
      hours,
      instances: integer('The number of these instances'),
    }),
  },
  'webhook.disabled': {
    meaning: 'A webhook endpoint was switched off; `reason` says why.',
    data: Type.Object({
      webhook_endpoint_id: uuid('The id of the endpoint'),
      reason: choice(DISABLED_REASONS, 'Why it was switched off'),
    }),
  },
  'machine.away': {
    meaning: 'The agent of a machine has not been connected for two minutes.',
    data: Type.Object({ ...machine, since: timestamp('Since when') }),
  },
  'machine.back': { meaning: 'The agent of a machine is connected again.', data: Type.Object(machine) },
  'machine.refusing': {
    meaning: 'For a minute, the host of a machine has taken no new instances, and says why.',
    data: Type.Object({
      ...machine,
      reason: text('Why, as the host says it'),
      since: timestamp('Since when'),
    }),
  },
  'machine.accepting': { meaning: 'The host of a machine takes new instances again.', data: Type.Object(machine) },
  'machine.upgrade_failed': {
    meaning: 'The agent of a machine could not be upgraded; the rollout asks no further host.',
    data: Type.Object({
      ...machine,
      version: text('The version that the agent was to be upgraded to'),
      reason: text('Why it has failed'),
    }),
  },
  'gpu.unhealthy': {
    meaning: 'A machine reports that a GPU is unhealthy.',
    data: Type.Object({ ...gpu, reason: whyUnhealthy }),
  },
  'gpu.healthy': { meaning: 'A GPU is healthy again.', data: Type.Object(gpu) },
  'gpu.disputed': {
    meaning: 'A machine reports a GPU that belongs to another machine, so nobody can rent it from this one.',
    data: Type.Object({
      ...gpu,
      owner_machine_id: uuid('The id of the machine that the GPU belongs to'),
      owner_machine_name: text('The name of that machine'),
    }),
  },
  'command.stuck': {
    meaning: 'A machine has made no progress with a command for fifteen minutes.',
    data: Type.Object({
      ...machine,
      instance_id: uuid('The id of the instance that the command is for'),
      command_id: uuid('The id of the command'),
      command: text('What the command does'),
      since: timestamp('Since when it is open'),
    }),
  },
  'operator.granted': {
    meaning: 'An operator has made a user an operator.',
    data: Type.Object(operated),
  },
  'operator.withdrawn': {
    meaning: 'A user is no operator any more.',
    data: Type.Object(operated),
  },
  'workload.quarantined': {
    meaning: 'A machine has a workload that the database does not know; it is in quarantine.',
    data: Type.Object({
      ...machine,
      quarantine_id: uuid('The id of the workload in quarantine'),
      instance_id: uuid('The id of the instance that it belonged to'),
    }),
  },
} as const satisfies Record<EventType, { meaning: string; data: TSchema }>;

type Told = Record<keyof typeof told, string>;
/** What the data of each type has, by domain/event.ts. */
type Recorded = {
  [Name in EventType]: Name extends `instance.${string}`
    ? EventData[Name] extends Record<string, never>
      ? Told
      : EventData[Name] & Told
    : EventData[Name] extends Record<string, never>
      ? object
      : EventData[Name];
};
type Described = { [Name in EventType]: Static<(typeof EVENT_MODELS)[Name]['data']> };
type AtLeast<Other, One extends Other> = One;
/** What the data of each type has. The compiler refuses this where a schema differs from what is recorded. */
export type EventDataByType = AtLeast<Recorded, Described> & AtLeast<Described, Recorded>;

/** Returns the schema of the events of this type: an object of its own in the OpenAPI document. */
function modelOf(type: EventType): TSchema {
  const { meaning, data } = EVENT_MODELS[type];
  return Type.Object(
    {
      specversion: choice(['1.0'], 'The version of CloudEvents that names these fields'),
      id: text('The id of the event: `epoch.number`. The number rises by one with each event of the stream'),
      source: text('Whose event it is: a path, or a URL if the operator has set one'),
      type: choice([type], meaning),
      subject: text('The path of what it is about'),
      time: timestamp('When it happened'),
      data: Type.With(data, { description: 'What happened' }),
    },
    { title: `event.${type}` },
  );
}

/** Returns the schema of an event that has one of these types. */
export function eventOf(types: readonly EventType[]): TSchema {
  const mapping = Object.fromEntries(types.map((type) => [type, `#/components/schemas/event.${type}`]));
  return Type.Unsafe({
    oneOf: types.map(modelOf),
    discriminator: { propertyName: 'type', mapping },
    description: 'An event, with the attributes that CloudEvents names. Later releases can add types',
  });
}
