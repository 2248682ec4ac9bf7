import { ApiError, type components, type Gpurent } from '../../api/index.js';
import { CliError, usageError } from '../errors/cli-error.js';
import { EXIT } from '../errors/exit-codes.js';
import { isId, only } from '../instances/find.js';
import type { Invocation } from '../invocation/invocation.js';
import { askDisk, askOffer, askSshKey, askTemplate } from './ask.js';
import { matchesModel, offersFor } from './offers.js';
import type { Plan } from './plan.js';
import { findTemplate } from './templates.js';
import type { Wishes } from './wishes.js';

type Offer = components['schemas']['Offer'];

const USUAL_DISK_GB = 20;

/** Makes every choice of a deploy: by the wishes, then by asking, if somebody can answer. Throws a usage error for what is missing. */
export async function choosePlan(invocation: Invocation, gpurent: Gpurent, wishes: Wishes): Promise<Plan> {
  const { terminal } = invocation;
  const asks = terminal.isInteractive && !wishes.yes;
  const offer = await chooseOffer(invocation, gpurent, wishes, asks);
  const template = wishes.template === undefined ? undefined : await findTemplate(gpurent, wishes.template);
  if (!template && !asks) throw usageError('which template?', 'Give --template; list them: gpurent templates');
  const chosenTemplate = template ?? (await askTemplate(terminal, gpurent));
  const diskGb = wishes.disk ?? (asks ? await askDisk(terminal, offer, USUAL_DISK_GB) : USUAL_DISK_GB);
  const sshKeyId = await chooseSshKey(invocation, gpurent, wishes.sshKey, asks);
  return { offer, template: chosenTemplate, diskGb, sshKeyId };
}

async function chooseOffer(invocation: Invocation, gpurent: Gpurent, wishes: Wishes, asks: boolean): Promise<Offer> {
  const { offer, gpu, ...filter } = wishes;
  if (offer !== undefined) {
    if (isId(offer)) return gpurent.get('/v1/offers/{id}', { params: { path: { id: offer } } });
    return only(await offersFor(gpurent, {}), offer, 'offer', ({ id }) => ({ id, name: null }), 'gpurent offers');
  }
  const isNamed = gpu !== undefined || filter.gpus !== undefined;
  if (!isNamed && !asks)
    throw usageError('which GPUs?', 'Give --gpu MODEL for the cheapest one, or --offer; list them: gpurent offers');
  const matching = (await offersFor(gpurent, filter)).filter((each) => matchesModel(each, gpu));
  const [cheapest] = matching;
  if (!cheapest)
    throw new CliError(EXIT.refused, 'nothing like this can be rented now', 'See what can: gpurent offers');
  return asks && matching.length > 1 ? askOffer(invocation.terminal, matching) : cheapest;
}

async function chooseSshKey(
  { terminal }: Invocation,
  gpurent: Gpurent,
  wanted: string | boolean | undefined,
  asks: boolean,
): Promise<string | null> {
  if (wanted === false) return null;
  if (typeof wanted === 'string' && isId(wanted)) return wanted;
  const keys = await sshKeysOf(gpurent);
  if (typeof wanted === 'string') return only(keys ?? [], wanted, 'SSH key', (each) => each, 'gpurent ssh-keys').id;
  const [key, ...others] = keys ?? [];
  if (key && others.length === 0) return key.id;
  if (asks && keys) return askSshKey(terminal, gpurent, keys);
  throw usageError('which SSH key?', 'Give --ssh-key with its id or name (gpurent ssh-keys), or --no-ssh-key.');
}

/** Returns the SSH keys of the user; undefined for an API key, which may not read them. */
async function sshKeysOf(gpurent: Gpurent): Promise<components['schemas']['SshKey'][] | undefined> {
  try {
    return (await gpurent.get('/v1/ssh-keys')).items;
  } catch (error) {
    if (error instanceof ApiError && error.is('TOKEN_INVALID')) return undefined;
    throw error;
  }
}
