import { expect, it } from 'vitest';
import { COMMANDS_KEPT, recordCommand } from '../../control-plane/services/instances/commands.js';
import { findInstance } from '../../control-plane/services/instances/queries.js';
import { query } from '../../control-plane/store/sql.js';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';

it('keeps the newest commands of an instance, those for its access apart', async () => {
  const test = await TestControlPlane.start();
  const renter = await test.renter();
  const body = { offer_id: await test.offer(await test.host()), template_id: await test.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  const record = (kind: 'start' | 'access', times: number) => {
    for (let time = 0; time < times; time++)
      test.core.platform.store.transact((tx) => {
        const found = findInstance(tx, id);
        if (found) recordCommand(tx, found, kind);
      });
  };
  const kinds = () =>
    test.core.platform.store.transact((tx) =>
      tx
        .all(query.selectFrom('commands').select(['kind', 'sequence']).where('instance_id', '=', id))
        .map(({ kind }) => kind),
    );
  record('start', COMMANDS_KEPT + 5);
  expect(kinds()).toEqual(Array.from({ length: COMMANDS_KEPT }, () => 'start'));
  record('access', 2 * COMMANDS_KEPT);
  expect(kinds().filter((kind) => kind === 'access')).toHaveLength(COMMANDS_KEPT);
  expect(kinds().filter((kind) => kind === 'start')).toHaveLength(COMMANDS_KEPT);
  await test.stop();
});
