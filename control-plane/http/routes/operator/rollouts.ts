import { Type } from 'typebox';
import {
  getRollout,
  listRollouts,
  startRollout,
  stopRollout,
  type Rollout as RolloutRow,
  type RolloutDetails,
} from '../../../services/rollouts/rollouts.js';
import { OPERATOR, accountOf } from '../../access/policy.js';
import { integer, iso, isoOrNull, list, nullable, text, timestamp, uuid } from '../../schema/schemas.js';
import { idOf, page, pageFields, viewPage, type Routes } from '../routes.js';

const facts = {
  id: uuid('The id of the rollout'),
  version: text('The version of the release to which agents are upgraded'),
  started_at: timestamp('When it was started'),
  stopped_at: nullable(timestamp('Since when it asks no further host; null: it goes on, or has asked all')),
  stop_reason: nullable(text('Why it was stopped: by an operator, or at which machine it has failed')),
  ended_at: nullable(timestamp('When every host that it has asked had answered; null: it is under way')),
};
const Rollout = Type.Object(facts, { title: 'Rollout' });
const Failure = Type.Object({
  machine_id: uuid('The id of the machine'),
  machine_name: text('The name of the machine'),
  reason: text('Why its agent was not upgraded'),
  ended_at: timestamp('When that was known'),
});
const RolloutDetail = Type.Object(
  {
    ...facts,
    waiting: integer('How many hosts were not asked yet: their owners allow upgrades, and their agents are older'),
    under_way: integer('How many hosts were asked and have not answered'),
    upgraded: integer('How many hosts run the new version, and have taken instances for a minute'),
    failed: integer('How many hosts have failed'),
    failures: list(Failure, 'The latest failures, at most 20'),
  },
  { title: 'RolloutDetail' },
);

/** Routes for operators: upgrades of the agents whose owners allow that. */
export const rolloutRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.post(
    '/v1/operator/rollouts',
    {
      config: { ...config, proof: true, refusals: ['INVALID_STATE'] },
      schema: {
        operationId: 'startRollout',
        summary: 'Upgrade the agents whose owners allow it',
        description:
          'To the release of GPURENT_HOST_RELEASE. One host at a time, after three in waves; the first failure stops it. Workloads keep running.',
        response: { 201: RolloutDetail },
      },
    },
    (request, reply) => {
      const rollout = startRollout(platform, accountOf(request));
      void reply.code(201);
      return detailView(rollout);
    },
  );
  app.get(
    '/v1/operator/rollouts',
    {
      config,
      schema: {
        operationId: 'listRollouts',
        summary: 'List the rollouts, newest first',
        querystring: Type.Object(pageFields),
        response: { 200: page(Rollout) },
      },
    },
    (request) => viewPage(listRollouts(platform, request.query), rolloutView),
  );
  app.get(
    '/v1/operator/rollouts/:id',
    {
      config: { ...config, refusals: ['ROLLOUT_NOT_FOUND'] },
      schema: {
        operationId: 'getRollout',
        summary: 'Get a rollout: how many hosts are how far',
        params: idOf('rollout'),
        response: { 200: RolloutDetail },
      },
    },
    (request) => detailView(getRollout(platform, request.params.id)),
  );
  app.post(
    '/v1/operator/rollouts/:id/stop',
    {
      config: { ...config, servedOnFullDisk: true, refusals: ['ROLLOUT_NOT_FOUND'] },
      schema: {
        operationId: 'stopRollout',
        summary: 'Stop a rollout',
        description: 'It asks no further host. Those that it has asked go on.',
        params: idOf('rollout'),
        response: { 200: RolloutDetail },
      },
    },
    (request) => detailView(stopRollout(platform, accountOf(request), request.params.id)),
  );
};

function rolloutView(row: RolloutRow) {
  return {
    ...row,
    started_at: iso(row.started_at),
    stopped_at: isoOrNull(row.stopped_at),
    ended_at: isoOrNull(row.ended_at),
  };
}

function detailView(rollout: RolloutDetails) {
  const failures = rollout.failures.map((failure) => ({ ...failure, ended_at: iso(failure.ended_at) }));
  return { ...rollout, ...rolloutView(rollout), failures };
}
