import { z } from 'zod';
import type { Gpurent, Instance } from '../../api/index.js';
import { answer, fitting } from '../answers.js';
import { instanceId } from '../arguments.js';
import { coverage, dollars } from '../money.js';
import { addTool, type Toolbox } from '../tool.js';
import { untrusted, withoutBrackets } from '../untrusted.js';
import { balanceOf, diskPerHour, instanceView, nameOf } from '../views.js';

const OfInstance = z.object({ instance_id: instanceId });

/** Adds what shows, stops, starts and destroys instances. */
export function addInstanceTools(toolbox: Toolbox): void {
  addReading(toolbox);
  addStopAndStart(toolbox);
  addDestroy(toolbox);
}

function addReading(toolbox: Toolbox): void {
  const { gpurent } = toolbox;
  addTool(toolbox, {
    name: 'list_instances',
    title: 'List instances',
    description:
      'Lists the instances of the organization with their status and price per hour, and what the balance covers.',
    does: 'reads',
    input: z.object({
      include_destroyed: z.boolean().default(false).describe('Whether to list destroyed instances, too'),
      limit: z.int().min(1).max(100).default(20).describe('The most instances to return'),
    }),
    run: async (query) => {
      const { items, next_cursor } = await gpurent.get('/v1/instances', { params: { query } });
      const balance = await balanceOf(gpurent);
      const { items: instances, left_out } = fitting(items, instanceView);
      const more = left_out > 0 || Boolean(next_cursor);
      return answer(`${instances.length} instances${more ? ', and there are more' : ''}. ${coverage(balance)}`, {
        instances,
        more,
        balance,
      });
    },
  });
  addTool(toolbox, {
    name: 'show_instance',
    title: 'Show an instance',
    description:
      'Shows the status of an instance, its price per hour, its limits, how to reach it by SSH, and what may be done with it.',
    does: 'reads',
    input: OfInstance,
    run: async ({ instance_id: id }) => shownInstance(gpurent, await read(gpurent, id), (status) => `It is ${status}.`),
  });
}

function addStopAndStart(toolbox: Toolbox): void {
  const { gpurent, ask } = toolbox;
  addTool(toolbox, {
    name: 'stop',
    title: 'Stop an instance',
    description:
      'Ends what runs on an instance and keeps its disk, which costs per hour until the instance is destroyed. What is only in memory is lost.',
    does: 'ends',
    input: OfInstance,
    run: async ({ instance_id: id }) => {
      const instance = await gpurent.post('/v1/instances/{id}/stop', { params: { path: { id } } });
      const disk = `Its disk costs ${dollars(diskPerHour(instance))} per hour until it is destroyed.`;
      return shownInstance(gpurent, instance, (status) => `It is ${status}. ${disk}`);
    },
  });
  addTool(toolbox, {
    name: 'start',
    title: 'Start an instance',
    description:
      'Starts a stopped instance. It costs money from then on, so the person is asked first, with the price.',
    does: 'adds',
    input: OfInstance.extend({
      confirm_price_per_hour_micro: z
        .int()
        .optional()
        .describe(
          'The `price_per_hour_micro` that the person has agreed to. Needed only where the client cannot ask the person',
        ),
    }),
    run: async ({ instance_id: id, confirm_price_per_hour_micro }, context) => {
      const [instance, balance] = [await read(gpurent, id), await balanceOf(gpurent)];
      const price = instance.price_per_hour_micro;
      const outcome = await ask(context, {
        tool: 'start',
        message: `Start the instance ${untrusted(nameOf(instance))} for ${dollars(price)} per hour? ${coverage(balance)}`,
        // What was agreed to is one start, not each later one of the same instance.
        subject: `${id} ${instance.status_changed_at}`,
        argument: { name: 'confirm_price_per_hour_micro', given: confirm_price_per_hour_micro, expected: price },
      });
      if (!outcome.goOn) return outcome.result;
      const started = await gpurent.post('/v1/instances/{id}/start', { params: { path: { id } } });
      return shownInstance(gpurent, started, (status) => `It is ${status}, for ${dollars(price)} per hour.`);
    },
  });
}

function addDestroy(toolbox: Toolbox): void {
  const { gpurent, ask } = toolbox;
  addTool(toolbox, {
    name: 'destroy',
    title: 'Destroy an instance',
    description: 'Destroys an instance and its disk for ever, so the person is asked first.',
    does: 'ends',
    input: OfInstance.extend({
      confirm_label: z
        .string()
        .max(100)
        .optional()
        .describe(
          'The label of the instance, or its id if it has none, once the person has agreed. Needed only where the client cannot ask',
        ),
    }),
    run: async ({ instance_id: id, confirm_label }, context) => {
      const instance = await read(gpurent, id);
      const expected = nameOf(instance);
      const message = `Destroy the instance ${untrusted(expected)} (${instance.id}) with its disk of ${instance.disk_gb} GB? All data on it is lost.`;
      const outcome = await ask(context, {
        tool: 'destroy',
        message,
        subject: id,
        argument: {
          name: 'confirm_label',
          ...givenName(confirm_label, expected),
        },
      });
      if (!outcome.goOn) return outcome.result;
      const destroyed = await gpurent.delete('/v1/instances/{id}', { params: { path: { id } } });
      return shownInstance(gpurent, destroyed, (status) => `It is ${status}.`);
    },
  });
}

/** A label as the model was shown it counts as the label itself. What is asked for is shown as text of a stranger. */
function givenName(given: string | undefined, expected: string): { given: string | undefined; expected: string } {
  const seen = untrusted(expected);
  const isSame =
    given !== undefined && [seen, expected].some((name) => withoutBrackets(name) === withoutBrackets(given));
  return { given: isSame ? seen : given, expected: seen };
}

function read(gpurent: Gpurent, id: string): Promise<Instance> {
  return gpurent.get('/v1/instances/{id}', { params: { path: { id } } });
}

async function shownInstance(gpurent: Gpurent, instance: Instance, say: (status: string) => string) {
  const balance = await balanceOf(gpurent);
  return answer(`${say(instance.status)} ${coverage(balance)}`, { instance: instanceView(instance), balance });
}
