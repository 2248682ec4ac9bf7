import { hostname } from 'node:os';
import { ApiError, type Gpurent } from '../../api/index.js';
import { addressOf, tokenOf } from '../context/address.js';
import { usageError } from '../errors/cli-error.js';
import type { Invocation } from '../invocation/invocation.js';
import type { Define } from '../invocation/define.js';
import { readAll } from './standard-input.js';

/** The longest name of a session that the control plane takes. */
const LONGEST_NAME = 48;
const [LEAST_WAIT_S, LONGEST_WAIT_S] = [1, 60];

interface Options {
  withToken?: true;
  name?: string;
  allowHttp?: true;
}

export const define: Define = (command, invocation) => {
  command
    .argument('[url]', 'the address of the control plane; otherwise GPURENT_URL, or that of the context')
    .option('--with-token', 'read an API key or a token from standard input')
    .option('--name <name>', 'what the context is called; otherwise the name of the host')
    .option('--allow-http', 'send the token in plain text, over a network that you trust')
    .action(async (given: string | undefined, { withToken, name, allowHttp }: Options) => {
      const url = await urlOf(invocation, given, allowHttp === true);
      const token = withToken
        ? tokenOf(await readAll(invocation.terminal))
        : await tokenByDevice(invocation, invocation.connect(url));
      const { organization, email } = await whoIs(invocation.connect(url, { token }));
      const context = { url, token, organization_id: null, email, allow_http: allowHttp === true };
      const called = name ?? new URL(url).host;
      invocation.contexts.put(called, context);
      const who = email ?? 'an API key';
      invocation.object({ context: called, url, email, organization }, () => [
        `Signed in to ${url} as ${who}, for ${organization.name}. The context is called ${called}.`,
      ]);
    });
};

async function urlOf(
  { terminal, contexts, options }: Invocation,
  given: string | undefined,
  allowHttp: boolean,
): Promise<string> {
  const known = given ?? terminal.env['GPURENT_URL'] ?? contexts.find(options.context)?.context.url;
  if (known) return addressOf(known, allowHttp || terminal.env['GPURENT_ALLOW_HTTP'] === '1');
  if (!terminal.isInteractive) throw usageError('which control plane?', 'gpurent login https://gpurent.example.com');
  const { type } = await import('../prompts/ask.js');
  return addressOf(
    await type(terminal, { message: 'The address of the control plane', placeholder: 'https://gpurent.example.com' }),
    allowHttp,
  );
}

/** Returns the token of a session that a person approves in a browser, as RFC 8628 describes it. */
async function tokenByDevice(invocation: Invocation, gpurent: Gpurent): Promise<string> {
  const name = sessionNameOf(hostname());
  const { device_code, user_code, verification_uri, interval } = await gpurent.post('/v1/auth/device', {
    body: { name },
  });

  invocation.note(`Open ${verification_uri} and type ${user_code}`);
  for (let seconds = interval; ;) {
    await invocation.terminal.wait(Math.min(Math.max(seconds, LEAST_WAIT_S), LONGEST_WAIT_S) * 1_000);
    try {
      return (await gpurent.post('/v1/auth/device/token', { body: { device_code } })).token;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.is('SLOW_DOWN')) seconds = error.body.interval;
      else if (!error.is('AUTHORIZATION_PENDING')) throw error;
    }
  }
}

/** Returns what the session is called on this machine, in the characters and the length that the control plane takes. */
export function sessionNameOf(machine: string): string {
  return `gpurent on ${machine.replace(/[^A-Za-z0-9._-]+/g, '-')}`.slice(0, LONGEST_NAME);
}

async function whoIs(gpurent: Gpurent) {
  const { id, name } = await gpurent.get('/v1/orgs/current');
  const me = await gpurent.get('/v1/me').catch((error: unknown) => {
    // An API key is nobody.
    if (error instanceof ApiError && error.is('TOKEN_INVALID')) return null;
    throw error;
  });
  return { organization: { id, name }, email: me?.user.email ?? null };
}
