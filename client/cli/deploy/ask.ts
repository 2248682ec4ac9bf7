import { hostname } from 'node:os';
import type { components, Gpurent } from '../../api/index.js';
import { dollars } from '../output/money.js';
import { choose, type } from '../prompts/ask.js';
import { publicKeyFiles, readPublicKey } from '../ssh/own-keys.js';
import { plain } from '../terminal/plain-text.js';
import type { Terminal } from '../terminal/terminal.js';
import { disksOf, wordsOfOffer } from './offers.js';

type Offer = components['schemas']['Offer'];
type Template = components['schemas']['Template'];
type SshKey = components['schemas']['SshKey'];

const SHOWN = 10;
const NONE = 'none';

const byId = <Thing extends { id: string }>(things: readonly Thing[], id: string): Thing => {
  const found = things.find((thing) => thing.id === id);
  if (!found) throw new Error(`${id} is not among what was asked for`);
  return found;
};

export async function askOffer(terminal: Terminal, offers: readonly Offer[]): Promise<Offer> {
  const options = offers.map((offer) => ({
    value: offer.id,
    label: `${dollars(offer.price_per_hour_micro)}/h  ${plain(wordsOfOffer(offer))}`,
  }));
  return byId(offers, await choose(terminal, { message: 'Which GPUs?', options, maxItems: SHOWN }));
}

export async function askTemplate(terminal: Terminal, gpurent: Gpurent): Promise<Template> {
  const { items } = await gpurent.get('/v1/templates');
  const templates = [...items].sort((one, other) => Number(other.recommended) - Number(one.recommended));
  const options = templates.map(({ id, name, description }) => ({
    value: id,
    label: plain(name),
    hint: plain(description),
  }));
  return byId(templates, await choose(terminal, { message: 'What runs on it?', options, maxItems: SHOWN }));
}

export async function askDisk(terminal: Terminal, offer: Offer, usual: number): Promise<number> {
  const { least, most } = disksOf(offer);
  const answer = await type(terminal, {
    message: `How large is its disk, in GB? (${least} to ${most})`,
    initialValue: String(Math.min(usual, most)),
    validate: (text) => {
      const size = Number(text);
      return Number.isInteger(size) && size >= least && size <= most
        ? undefined
        : `A whole number from ${least} to ${most}.`;
    },
  });
  return Number(answer);
}

/** Lets a person choose one of their SSH keys, or add one of this machine. Null: none. */
export async function askSshKey(terminal: Terminal, gpurent: Gpurent, keys: readonly SshKey[]): Promise<string | null> {
  const files = publicKeyFiles(terminal);
  const options = [
    ...keys.map(({ id, name, fingerprint }) => ({ value: id, label: plain(name), hint: plain(fingerprint) })),
    ...files.map((file) => ({ value: file, label: `add ${plain(file)}` })),
    { value: NONE, label: 'none: nobody can log in by SSH' },
  ];
  const answer = await choose(terminal, { message: 'Which SSH key logs in?', options, maxItems: SHOWN });
  if (answer === NONE) return null;
  if (!files.includes(answer)) return answer;
  const body = { name: hostname().slice(0, 64), public_key: readPublicKey(answer) };
  return (await gpurent.post('/v1/ssh-keys', { body })).id;
}
