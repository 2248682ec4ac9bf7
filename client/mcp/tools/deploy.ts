import { z } from 'zod';
import type { components, Gpurent, operations } from '../../api/index.js';
import { cpuCores, memory } from '../../text/sizes.js';
import { answer, refusalOf } from '../answers.js';
import { coverage, dollars } from '../money.js';
import { addTool, type Toolbox } from '../tool.js';
import { shown, untrusted } from '../untrusted.js';
import { instanceView } from '../views.js';

type Body = operations['deployInstance']['requestBody']['content']['application/json'];
type Estimate = components['schemas']['Estimate'];

const Deploy = z.object({
  offer_id: z.string().max(100).describe('The id of an offer, from find_offers'),
  template_id: z.string().max(100).describe('The id of a template, from list_templates'),
  disk_gb: z.int().min(10).describe('The size of the disk in GB'),
  label: z.string().max(64).optional().describe('A name for the instance'),
  ssh_key_id: z
    .string()
    .max(100)
    .optional()
    .describe(
      'The id of the SSH key that may log in. Without one nobody can. The person knows it, or `gpurent ssh-keys`',
    ),
  env: z
    .array(z.object({ key: z.string().max(256), value: z.string().max(4096), secret: z.boolean().optional() }))
    .max(20)
    .optional()
    .describe('Environment variables that replace or extend those of the template'),
  stop_at: z.iso.datetime({ offset: true }).optional().describe('When to stop it, whatever it does then'),
  max_charge_micro: z.int().min(1).optional().describe('What it may cost in all, in micro-dollars; then it is stopped'),
  idle_stop_minutes: z.int().min(1).max(10_080).optional().describe('After how many idle minutes it is stopped'),
  on_limit: z
    .enum(['stop', 'destroy'])
    .optional()
    .describe('What these three limits do; `stop` keeps the disk, which costs'),
});

const Confirmed = Deploy.extend({
  confirm_price_per_hour_micro: z
    .int()
    .optional()
    .describe(
      'The price per hour that the person has agreed to, from estimate. Needed only where the client cannot ask the person',
    ),
  idempotency_key: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe('From estimate. Two deploys with the same key make one instance: give it again if an answer was lost'),
});

/** Adds the estimate and the deploy. */
export function addDeployTools(toolbox: Toolbox): void {
  const { gpurent, ask } = toolbox;
  addTool(toolbox, {
    name: 'estimate',
    title: 'Estimate a deploy',
    description:
      'Says what a deploy would cost per hour, how long the balance would last, and what it would be refused for. Changes nothing. Call it before deploy, and tell the person the price.',
    does: 'reads',
    input: Deploy,
    run: async (given) => {
      const estimate = await estimateOf(gpurent, bodyOf(given));
      const [first] = estimate.refusals;
      if (first) return refusalOf(first);
      return answer(priceOf(estimate), {
        ...estimateView(estimate),
        deploy_with: {
          confirm_price_per_hour_micro: estimate.gpu_per_hour_micro,
          idempotency_key: crypto.randomUUID(),
        },
      });
    },
  });
  addTool(toolbox, {
    name: 'deploy',
    title: 'Rent GPUs',
    description:
      'Rents an offer and starts a template on it. It costs money until it is stopped or destroyed, so the person is asked first, with the price. Set max_charge_micro or stop_at to bound what it can cost.',
    does: 'adds',
    input: Confirmed,
    run: async ({ confirm_price_per_hour_micro, idempotency_key, ...given }, context) => {
      const body = bodyOf(given);
      const estimate = await estimateOf(gpurent, body);
      const price = estimate.gpu_per_hour_micro;
      const [first] = estimate.refusals;
      if (first || price === null)
        return refusalOf(first ?? { code: 'OFFER_NOT_FOUND', message: 'there is no such offer' });
      const outcome = await ask(context, {
        tool: 'deploy',
        message: await questionOf(gpurent, body, estimate),
        subject: { body, disk: estimate.disk_per_hour_micro },
        argument: { name: 'confirm_price_per_hour_micro', given: confirm_price_per_hour_micro, expected: price },
        idempotencyKey: idempotency_key,
      });
      if (!outcome.goOn) return outcome.result;
      const header = { 'idempotency-key': outcome.idempotencyKey };
      const instance = await gpurent.post('/v1/instances', { body, params: { header } });
      const changed =
        instance.price_per_hour_micro === price ? '' : ' This is not the price that was agreed to: tell the person.';
      return answer(
        `Deployed as ${instance.id} for ${dollars(instance.price_per_hour_micro)} per hour.${changed} Call show_instance until it is running.`,
        { instance: instanceView(instance), ...estimateView(estimate), idempotency_key: outcome.idempotencyKey },
      );
    },
  });
}

function bodyOf({ env, ...given }: z.infer<typeof Deploy>): Body {
  const { label, ssh_key_id, stop_at, max_charge_micro, idle_stop_minutes, on_limit, ...needed } = given;
  const overrides = env?.map(({ key, value, secret = false }) => ({ key, value, secret })) ?? [];
  return {
    ...needed,
    label: label ?? null,
    ssh_key_id: ssh_key_id ?? null,
    stop_at: stop_at ?? null,
    max_charge_micro: max_charge_micro ?? null,
    idle_stop_minutes: idle_stop_minutes ?? null,
    on_limit: on_limit ?? null,
    env_overrides: overrides,
  };
}

function estimateOf(gpurent: Gpurent, body: Body): Promise<Estimate> {
  return gpurent.post('/v1/instances/estimate', { body });
}

function estimateView({ warning, driver_warning = null, refusals: _, ...estimate }: Estimate) {
  const [slow, driver] = [warning, driver_warning].map((words) => (words === null ? null : untrusted(words)));
  return { ...estimate, warning: slow, driver_warning: driver };
}

function priceOf(estimate: Estimate): string {
  const { gpu_per_hour_micro, disk_per_hour_micro, balance_lasts_until } = estimate;
  const price = `It costs ${dollars(gpu_per_hour_micro ?? 0)} per hour while it runs, and ${dollars(disk_per_hour_micro ?? 0)} per hour while it is stopped.`;
  return `${price} With it: ${coverage({ ...estimate, lasts_until: balance_lasts_until })}`;
}

/** Says what a person agrees to: names, price, limits and variables. */
async function questionOf(gpurent: Gpurent, body: Body, estimate: Estimate): Promise<string> {
  const template = await gpurent.get('/v1/templates/{id}', { params: { path: { id: body.template_id } } });
  const offer = await gpurent.get('/v1/offers/{id}', { params: { path: { id: body.offer_id } } });
  const { num_gpus, gpu_model, cpu_cores, memory_mb } = offer;
  const { label, max_charge_micro, stop_at, idle_stop_minutes, env_overrides = [] } = body;
  const limits = [
    max_charge_micro == null ? [] : [`at ${dollars(max_charge_micro)} in all`],
    stop_at == null ? [] : [`at ${stop_at}`],
    idle_stop_minutes == null ? [] : [`after ${idle_stop_minutes} idle minutes`],
  ].flat();
  const variables = env_overrides.map(({ key }) => shown(key, 60)).join(', ');
  return [
    `Rent ${num_gpus} x ${untrusted(gpu_model ?? 'unknown')}, ${cpuCores(cpu_cores)} and ${memory(memory_mb)} of memory for the template ${untrusted(template.name)}${label ? `, labelled ${untrusted(label)}` : ''}, with ${body.disk_gb} GB of disk?`,
    priceOf(estimate),
    limits.length === 0
      ? 'It runs until somebody stops it or the balance is used up.'
      : `It is stopped ${limits.join(', ')}.`,
    ...(variables === '' ? [] : [`It gets the variables ${variables}.`]),
    ...(estimate.driver_warning ? [`Warning: ${untrusted(estimate.driver_warning)}.`] : []),
  ].join(' ');
}
