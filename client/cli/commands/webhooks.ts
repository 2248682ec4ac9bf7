import type { components, operations } from '../../api/index.js';
import { findInstance, only } from '../instances/find.js';
import type { Define } from '../invocation/define.js';
import type { Column } from '../output/table.js';
import { minuteOf } from '../output/times.js';

type Endpoint = components['schemas']['WebhookEndpoint'];
type Delivery = components['schemas']['WebhookDelivery'];
type Types = operations['createWebhookEndpoint']['requestBody']['content']['application/json']['types'] & {};

const ENDPOINTS: readonly Column<Endpoint>[] = [
  { title: 'ID', of: ({ id }) => id.slice(0, 8) },
  { title: 'URL', of: ({ url }) => url },
  { title: 'STATE', of: ({ enabled, disabled_reason }) => (enabled ? 'on' : `off: ${disabled_reason ?? ''}`) },
  { title: 'TYPES', of: ({ types }) => types?.join(',') ?? 'all', yields: 1 },
];
const DELIVERIES: readonly Column<Delivery>[] = [
  { title: 'ID', of: ({ id }) => id.slice(0, 8) },
  { title: 'TYPE', of: ({ type }) => type },
  { title: 'STATE', of: ({ state }) => state },
  { title: 'ATTEMPTS', of: ({ attempts }) => attempts, align: 'right', yields: 2 },
  { title: 'LAST', of: ({ last_status, last_error }) => last_error ?? last_status, yields: 1 },
  { title: 'CREATED', of: ({ created_at }) => minuteOf(created_at), yields: 3 },
];
/** A page of the log is enough for a look. */
const NEWEST = 50;

interface Options {
  types?: string;
  instance?: string;
  description?: string;
}

export const define: Define = (command, invocation) => {
  const list = async () => {
    const { items } = await invocation.gpurent().get('/v1/webhook-endpoints');
    invocation.list(items, ENDPOINTS, 'There are no endpoints. Make one: gpurent webhooks create URL');
  };
  command.action(list);
  command.command('list').description('the endpoints of the organization').action(list);
  command
    .command('create <url>')
    .description('have events sent to a server of yours, and print the secret that signs them, once')
    .option('--types <types>', 'only these types, separated by commas')
    .option('--instance <instance>', 'only of this instance')
    .option('--description <text>', 'what it is for')
    .action(async (url: string, { types, instance, description }: Options) => {
      const gpurent = invocation.gpurent();
      const instance_id = instance === undefined ? null : (await findInstance(gpurent, instance)).id;
      const body = {
        url,
        instance_id,
        description: description ?? null,
        types: types === undefined ? null : (types.split(',') as Types),
      };
      const made = await gpurent.post('/v1/webhook-endpoints', { body });
      if (invocation.wantsJson) return invocation.json(made);
      invocation.note(`The secret of ${made.endpoint.id}, which is shown only now:`);
      invocation.line(made.secret);
    });
  defineActs(command, invocation);
};

const defineActs: Define = (command, invocation) => {
  const find = async (wanted: string) => {
    const { items } = await invocation.gpurent().get('/v1/webhook-endpoints');
    const { id } = only(items, wanted, 'endpoint', ({ id, url }) => ({ id, name: url }), 'gpurent webhooks');
    return { params: { path: { id } } };
  };
  command
    .command('test <endpoint>')
    .description('send a test message: an endpoint by its URL or id')
    .action(async (wanted: string) => {
      const delivery = await invocation.gpurent().post('/v1/webhook-endpoints/{id}/test', await find(wanted));
      invocation.object(delivery, () => [`Sent. See how it went: gpurent webhooks deliveries ${delivery.endpoint_id}`]);
    });
  command
    .command('deliveries <endpoint>')
    .description('what was sent to an endpoint, the newest first')
    .action(async (wanted: string) => {
      const { params } = await find(wanted);
      const init = { params: { ...params, query: { limit: NEWEST } } };
      const { items } = await invocation.gpurent().get('/v1/webhook-endpoints/{id}/deliveries', init);
      invocation.list(items, DELIVERIES, 'Nothing was sent yet.');
    });
  command
    .command('rotate <endpoint>')
    .description('make a new secret, and print it, once')
    .action(async (wanted: string) => {
      const made = await invocation.gpurent().post('/v1/webhook-endpoints/{id}/rotate-secret', await find(wanted));
      if (invocation.wantsJson) return invocation.json(made);
      invocation.note('The new secret; for 24 hours messages are signed with the earlier one, too:');
      invocation.line(made.secret);
    });
  command
    .command('remove <endpoint>')
    .description('send nothing any more')
    .action(async (wanted: string) => {
      const init = await find(wanted);
      await invocation.gpurent().delete('/v1/webhook-endpoints/{id}', init);
      invocation.object(init.params.path, () => ['The endpoint is removed.']);
    });
};
