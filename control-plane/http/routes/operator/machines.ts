import { Type } from 'typebox';
import { MACHINE_NEEDS } from '../../../domain/machines/need.js';
import { assignGpus } from '../../../services/machines/gpu-owners.js';
import {
  cordon,
  getMachine,
  listMachines,
  uncordon,
  waiveDiskQuota,
  type MachineDetails,
} from '../../../services/machines/machines.js';
import { setMaintenance } from '../../../services/machines/maintenance.js';
import { revokeCredentials } from '../../../services/machines/credentials.js';
import { idsInNeed } from '../../../services/oversight/operator-overview.js';
import { declareLost, removeMachine } from '../../../services/reconciler/lost-machines.js';
import type { Metrics } from '../../metrics/metrics.js';
import { OPERATOR, accountOf } from '../../access/policy.js';
import {
  body,
  choice,
  flag,
  integer,
  iso,
  isoOrNull,
  list,
  nullable,
  optional,
  text,
  timestamp,
} from '../../schema/schemas.js';
import { timeOf } from '../../schema/times.js';
import { Gpu, gpuView } from '../gpu-view.js';
import { machineFacts } from '../offers.js';
import { idOf, NoContent, page, pageFields, viewPage, type Routes } from '../routes.js';

const Maintenance = Type.Object(
  { starts_at: timestamp('When the window starts'), ends_at: timestamp('When the window ends') },
  { description: 'The maintenance window, even if it is over; null: none' },
);

const Machine = Type.Object(
  {
    ...machineFacts,
    public_address: text('The address at which renters reach the machine'),
    disk_quota: text('`enforced`: the machine limits the disks of renters to their sizes; `none`: it does not'),
    disk_quota_waived: flag(
      'Whether an operator offers the machine although it does not limit the disks of renters to their sizes',
    ),
    agent_version: nullable(text('The version of its agent; null until the agent has reported it')),
    upgrade_to: nullable(
      text(
        'The version of the control plane, to which its agent should be upgraded; null: the agent is not older, or has not reported its version',
      ),
    ),
    ...optional({ takes_upgrades: flag('Whether the owner of the host lets its agent upgrade itself') }),
    obstacle: nullable(text('Why the host accepts no new instances, as the agent reports it; null: it accepts them')),
    clock_ahead_ms: nullable(
      integer(
        'By how many milliseconds the clock of the host is ahead of the clock of the control plane; negative: it is behind; null: the host is not connected, or its agent does not tell its time',
      ),
    ),
    docker_clock_ahead_ms: nullable(
      integer('The same for the clock of its Docker; null: its agent has not compared it'),
    ),
    cordoned: flag('Whether an operator has cordoned the machine'),
    lost: flag('Whether an operator has declared the machine lost'),
    maintenance: nullable(Maintenance),
    enrolled_at: timestamp('When the machine enrolled'),
    last_seen_at: nullable(timestamp('When its agent last sent a message; null: never')),
    gpus: list(Gpu, 'Its GPUs'),
    missing_gpus: integer('How many of them its host has listed before, and the driver of the host does not list now'),
  },
  { title: 'OperatedMachine' },
);

const MachineQuery = Type.Object({
  ...pageFields,
  ...optional({
    name: text('The beginning of the name; upper and lower case of A to Z are the same', {
      minLength: 1,
      maxLength: 64,
    }),
    outdated: flag('True: only machines whose agent is older than the control plane; false: only the others'),
    need: choice([...MACHINE_NEEDS], 'Only machines that need an act for this reason, as the overview counts them'),
  }),
});

const time = (description: string) => text(description, { format: 'date-time' });

/** Routes for operators: credentials of machines. */
export const credentialRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };
  app.delete(
    '/v1/operator/machines/:id/credentials',
    {
      config: { ...config, servedOnFullDisk: true, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        operationId: 'revokeMachineCredentials',
        summary: 'Revoke the credentials of a machine',
        description:
          'Disconnects the machine until it enrolls again with a token of its own. Its instances keep running.',
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

/** Routes for operators: the list of machines. `metrics` knows what only the process knows. */
export const machineListRoutes =
  (metrics: Metrics): Routes =>
  (app, platform) => {
    app.get(
      '/v1/operator/machines',
      {
        config: { policy: OPERATOR },
        schema: {
          operationId: 'listMachines',
          summary: 'List the machines, newest first',
          description: 'Those that are looked for by `name` are in the order of their names.',
          querystring: MachineQuery,
          response: { 200: page(Machine) },
        },
      },
      ({ query: { need, ...request } }) => {
        const ids = need && idsInNeed(platform, need, metrics.signals());
        return viewPage(listMachines(platform, { ...request, ids }), machineView);
      },
    );
  };

/** Routes for operators: machines. */
export const operatorMachineRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

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
      config: { ...config, servedOnFullDisk: true, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        ...changed,
        operationId: 'cordonMachine',
        summary: 'Cordon a machine',
        description: 'The machine gets no new instances; existing instances keep running.',
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
        description: 'The machine gets new instances again.',
      },
    },
    (request) => machineView(uncordon(platform, accountOf(request), request.params.id)),
  );
  app.post(
    '/v1/operator/machines/:id/lost',
    {
      config: { ...config, servedOnFullDisk: true, proof: true, refusals: ['MACHINE_NOT_FOUND', 'MACHINE_IN_USE'] },
      schema: {
        ...changed,
        operationId: 'declareMachineLost',
        summary: 'Declare a machine lost, because it is not expected to come back',
        description: 'Its instances end with the error `workload_lost`. Refused while the machine is connected.',
      },
    },
    (request) => machineView(declareLost(platform, accountOf(request), request.params.id)),
  );
  app.delete(
    '/v1/operator/machines/:id',
    {
      config: { ...config, proof: true, refusals: ['MACHINE_NOT_FOUND', 'MACHINE_IN_USE'] },
      schema: {
        operationId: 'removeMachine',
        summary: 'Remove a machine for good',
        description: 'Refused while the machine has instances, unless it was declared lost.',
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

/** Routes for operators: GPUs that two machines report. */
export const gpuOwnerRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/operator/machines/:id/assign-gpus',
    {
      config: { policy: OPERATOR, refusals: ['MACHINE_NOT_FOUND', 'MACHINE_IN_USE'] },
      schema: {
        operationId: 'assignGpus',
        summary: 'Give a machine GPUs that another machine reported first',
        description:
          'For a card that was moved to the host of this machine. Refused while an instance or a workload in quarantine holds the GPU on the other machine, unless the host of that no longer reports it.',
        params: idOf('machine'),
        body: body(
          optional({
            gpu_uuids: list(text('The vendor id of a GPU', { minLength: 1, maxLength: 64 }), 'Which; all if absent', {
              minItems: 1,
              maxItems: 64,
            }),
          }),
        ),
        response: { 200: Machine },
      },
    },
    (request) => machineView(assignGpus(platform, accountOf(request), request.params.id, request.body.gpu_uuids)),
  );
};

/** Routes for operators: maintenance windows and disk-quota waivers of machines. */
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
        description: 'No instance starts on the machine in the window or in the hour before it.',
        ...changed,
        body: body({ starts_at: time('When the window starts'), ends_at: time('When the window ends') }),
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
        summary: 'Offer a machine although it does not limit the disks of renters to their sizes',
        description: 'One renter can then fill the disk that all share.',
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
        summary: 'Offer a machine only while it limits the disks of renters to their sizes',
      },
    },
    (request) => machineView(waiveDiskQuota(platform, accountOf(request), request.params.id, false)),
  );
};

function machineView(machine: MachineDetails) {
  return {
    ...machine,
    cordoned: machine.cordoned_at !== null,
    lost: machine.lost_at !== null,
    disk_quota_waived: machine.quota_waived_at !== null,
    takes_upgrades: machine.takes_upgrades === 1,
    maintenance: maintenanceOf(machine),
    enrolled_at: iso(machine.enrolled_at),
    last_seen_at: isoOrNull(machine.last_seen_at),
    gpus: machine.gpus.map(gpuView),
    missing_gpus: machine.gpus.filter(({ missing }) => missing === 1).length,
  };
}

function maintenanceOf({ maintenance_starts_at: starts, maintenance_ends_at: ends }: MachineDetails) {
  return starts === null || ends === null ? null : { starts_at: iso(starts), ends_at: iso(ends) };
}
