import { Type } from 'typebox';
import { invalidField } from '../../domain/refusal.js';
import {
  createEnrollmentToken,
  listEnrollmentTokens,
  revokeEnrollmentToken,
  type EnrollmentTokenDetails,
} from '../../services/machines/enrollment.js';
import {
  cordon,
  getMachine,
  listMachines,
  setMaintenance,
  uncordon,
  waiveDiskQuota,
  type MachineDetails,
} from '../../services/machines/machines.js';
import { revokeCredentials } from '../../services/machines/credentials.js';
import { declareLost, removeMachine } from '../../services/reconciler/lost-machines.js';
import { OPERATOR, accountOf } from '../policy.js';
import { body, flag, integer, iso, isoOrNull, list, nullable, optional, text, timestamp, uuid } from '../schemas.js';
import { machineFacts } from './offers.js';
import { idOf, NoContent, page, PageQuery, viewPage, type Routes } from './routes.js';

const Token = Type.Object(
  {
    id: uuid('The id of the token'),
    max_uses: integer('How many hosts may enroll with it'),
    uses: integer('How many have'),
    created_at: timestamp('When it was created'),
    expires_at: timestamp('Until when it is good'),
    revoked_at: nullable(timestamp('When it was revoked; null: it was not')),
    machine_id: nullable(uuid('The one machine that may enroll anew with it; null: any host may')),
  },
  { title: 'EnrollmentToken' },
);

const Maintenance = Type.Object(
  { starts_at: timestamp('When it starts'), ends_at: timestamp('When it ends') },
  { description: 'The maintenance window, also one that is over; null: none' },
);

const Gpu = Type.Object({
  uuid: text('The id that its vendor gave it'),
  model: text('Its model'),
  memory_mb: integer('Its memory in MB'),
  healthy: flag('Whether it can be rented, as far as the host sees'),
  reason: nullable(text('Why it is not healthy; null where it is')),
  instance_id: nullable(uuid('The instance that holds it; null: none')),
  quarantine_id: nullable(uuid('The quarantined workload that holds it; null: none')),
});

const Machine = Type.Object(
  {
    ...machineFacts,
    public_address: text('The address under which renters reach it'),
    disk_quota: text('`enforced` where it holds the disks of renters to their size; `none` where it does not'),
    disk_quota_waived: flag('Whether an operator offers it though nothing holds the disks of renters to their size'),
    agent_version: nullable(text('The version of its agent; null until the agent has said it')),
    obstacle: nullable(text('Why the host takes nothing new, in its own words; null: it does')),
    cordoned: flag('Whether an operator has it take nothing new'),
    lost: flag('Whether an operator has declared that it is not coming back'),
    maintenance: nullable(Maintenance),
    enrolled_at: timestamp('When it enrolled'),
    last_seen_at: nullable(timestamp('When its agent was last heard; null: never')),
    gpus: list(Gpu, 'Its GPUs'),
  },
  { title: 'OperatedMachine' },
);

const time = (description: string) => text(description, { format: 'date-time' });

/** Operators: who may enrol a host. */
export const enrollmentTokenRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.post(
    '/v1/operator/enrollment-tokens',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        operationId: 'createEnrollmentToken',
        summary: 'Create a token with which hosts enroll',
        description:
          'The token is in this answer and nowhere else. With `machine_id`, it enrolls that one machine anew.',
        body: body({
          max_uses: integer('How many hosts may enroll with it', { minimum: 1, maximum: 10_000, default: 1 }),
          expires_in_hours: integer('For how many hours it is good', { minimum: 1, maximum: 720, default: 24 }),
          ...optional({ machine_id: uuid('The one machine that is to enroll anew') }),
        }),
        response: { 201: Type.Intersect([Token, Type.Object({ token: text('What a host enrolls with') })]) },
      },
    },
    (request, reply) => {
      const { token, ...row } = createEnrollmentToken(platform, accountOf(request), request.body);
      void reply.code(201);
      return { ...tokenView(row), token };
    },
  );
  app.get(
    '/v1/operator/enrollment-tokens',
    {
      config,
      schema: {
        operationId: 'listEnrollmentTokens',
        summary: 'List the enrollment tokens, newest first',
        querystring: PageQuery,
        response: { 200: page(Token) },
      },
    },
    (request) => viewPage(listEnrollmentTokens(platform, request.query), tokenView),
  );
  app.delete(
    '/v1/operator/enrollment-tokens/:id',
    {
      config,
      schema: {
        operationId: 'revokeEnrollmentToken',
        summary: 'Revoke an enrollment token',
        params: idOf('enrollment token'),
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      revokeEnrollmentToken(platform, accountOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
};

/** Operators: hosts that are let in no longer. */
export const credentialRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };
  app.delete(
    '/v1/operator/machines/:id/credentials',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        operationId: 'revokeMachineCredentials',
        summary: 'Revoke what a machine proves its identity by',
        description: 'It is cut off until it enrolls anew with a token of its own. What runs on it goes on.',
        params: idOf('machine'),
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      revokeCredentials(platform, accountOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
};

/** Operators: which hosts there are, and what becomes of them. */
export const operatorMachineRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/machines',
    {
      config,
      schema: {
        operationId: 'listMachines',
        summary: 'List the machines, newest first',
        querystring: PageQuery,
        response: { 200: page(Machine) },
      },
    },
    (request) => viewPage(listMachines(platform, request.query), machineView),
  );
  app.get(
    '/v1/operator/machines/:id',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        operationId: 'getMachine',
        summary: 'Get a machine with its GPUs',
        params: idOf('machine'),
        response: { 200: Machine },
      },
    },
    (request) => machineView(getMachine(platform, request.params.id)),
  );

  const changed = { params: idOf('machine'), response: { 200: Machine } };
  app.post(
    '/v1/operator/machines/:id/cordon',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        ...changed,
        operationId: 'cordonMachine',
        summary: 'Cordon a machine',
        description: 'It takes nothing new; what runs on it goes on.',
      },
    },
    (request) => machineView(cordon(platform, accountOf(request), request.params.id)),
  );
  app.post(
    '/v1/operator/machines/:id/uncordon',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        ...changed,
        operationId: 'uncordonMachine',
        summary: 'Uncordon a machine',
        description: 'It is back on the market.',
      },
    },
    (request) => machineView(uncordon(platform, accountOf(request), request.params.id)),
  );
  app.post(
    '/v1/operator/machines/:id/lost',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND', 'MACHINE_IN_USE'] },
      schema: {
        ...changed,
        operationId: 'declareMachineLost',
        summary: 'Declare that a machine is not coming back',
        description: 'What runs on it ends with the error `workload_lost`. Refused while it is connected.',
      },
    },
    (request) => machineView(declareLost(platform, accountOf(request), request.params.id)),
  );
  app.delete(
    '/v1/operator/machines/:id',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND', 'MACHINE_IN_USE'] },
      schema: {
        operationId: 'removeMachine',
        summary: 'Remove a machine for good',
        description: 'Refused while something is on it, unless it was declared lost.',
        params: idOf('machine'),
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      removeMachine(platform, accountOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
};

/** Operators: when nothing starts on a machine, and what it is offered without. */
export const machineTermsRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };
  const changed = { params: idOf('machine'), response: { 200: Machine } };

  app.put(
    '/v1/operator/machines/:id/maintenance',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        operationId: 'scheduleMaintenance',
        summary: 'Schedule a maintenance window of a machine',
        description: 'Nothing starts on it in the window, nor in the hour before.',
        ...changed,
        body: body({ starts_at: time('When it starts'), ends_at: time('When it ends') }),
      },
    },
    (request) => {
      const [startsAt, endsAt] = [timeOf('starts_at', request.body.starts_at), timeOf('ends_at', request.body.ends_at)];
      return machineView(setMaintenance(platform, accountOf(request), request.params.id, { startsAt, endsAt }));
    },
  );
  app.delete(
    '/v1/operator/machines/:id/maintenance',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: { ...changed, operationId: 'cancelMaintenance', summary: 'Cancel the maintenance window of a machine' },
    },
    (request) => machineView(setMaintenance(platform, accountOf(request), request.params.id, null)),
  );
  app.put(
    '/v1/operator/machines/:id/disk-quota-waiver',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        ...changed,
        operationId: 'waiveDiskQuota',
        summary: "Offer a machine though nothing holds its renters' disks to their size",
        description: 'One renter may fill the disk of all.',
      },
    },
    (request) => machineView(waiveDiskQuota(platform, accountOf(request), request.params.id, true)),
  );
  app.delete(
    '/v1/operator/machines/:id/disk-quota-waiver',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        ...changed,
        operationId: 'requireDiskQuota',
        summary: "Offer a machine only while its renters' disks are held to their size",
      },
    },
    (request) => machineView(waiveDiskQuota(platform, accountOf(request), request.params.id, false)),
  );
};

function tokenView(row: EnrollmentTokenDetails) {
  return {
    ...row,
    created_at: iso(row.created_at),
    expires_at: iso(row.expires_at),
    revoked_at: isoOrNull(row.revoked_at),
  };
}

function machineView(machine: MachineDetails) {
  return {
    ...machine,
    cordoned: machine.cordoned_at !== null,
    lost: machine.lost_at !== null,
    disk_quota_waived: machine.quota_waived_at !== null,
    maintenance: maintenanceOf(machine),
    enrolled_at: iso(machine.enrolled_at),
    last_seen_at: isoOrNull(machine.last_seen_at),
    gpus: machine.gpus.map((gpu) => ({ ...gpu, healthy: gpu.healthy === 1 })),
  };
}

/** The format lets a leap second through, which is no time that can be counted. */
function timeOf(path: string, text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw invalidField(path, 'is no time');
  return time;
}

function maintenanceOf({ maintenance_starts_at: starts, maintenance_ends_at: ends }: MachineDetails) {
  return starts === null || ends === null ? null : { starts_at: iso(starts), ends_at: iso(ends) };
}
