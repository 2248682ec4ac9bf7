import { CliError } from '../errors/cli-error.js';
import { EXIT } from '../errors/exit-codes.js';
import type { Terminal } from '../terminal/terminal.js';
import { addressOf, tokenOf } from './address.js';
import type { Context, ContextsFile } from './contexts-file.js';

/** What the context is for this command, by the options and the environment. */
export interface Chosen {
  /** The name of the context; null: all of it is from the environment. */
  name: string | null;
  context: Context;
}

/**
 * Returns the context that a command uses: GPURENT_URL, GPURENT_TOKEN and GPURENT_ORG before the one that is chosen, and --org before
 * GPURENT_ORG. Throws a CliError if there is none.
 */
export function chooseContext(
  { env }: Terminal,
  file: ContextsFile,
  { context: name, org }: { context?: string; org?: string },
): Chosen {
  const { GPURENT_URL: url, GPURENT_TOKEN: token, GPURENT_ORG: organization } = env;
  const isWhole = name === undefined && Boolean(url) && Boolean(token);
  const kept = isWhole ? undefined : file.find(name);
  if (!kept && name !== undefined)
    throw new CliError(EXIT.usage, `there is no context "${name}"`, 'List them: gpurent context');
  const base = kept?.context;
  // A context that is asked for is used as it is.
  const given = name === undefined ? { url, token, organization } : {};
  const address = given.url || base?.url;
  if (!address) throw notSignedIn('no control plane is chosen');
  const allow_http = base?.allow_http === true || env['GPURENT_ALLOW_HTTP'] === '1';
  const usedUrl = addressOf(address, allow_http);
  // A token goes to no other control plane than its own.
  const keptToken = usedUrl === base?.url ? base.token : undefined;
  const usedToken = given.token || keptToken;
  if (!usedToken) throw notSignedIn(`there is no token for ${usedUrl}`);
  const organization_id = org || given.organization || (usedToken === keptToken ? base?.organization_id : null) || null;
  return {
    name: kept?.name ?? null,
    context: { url: usedUrl, token: tokenOf(usedToken), organization_id, email: base?.email ?? null, allow_http },
  };
}

const notSignedIn = (message: string) =>
  new CliError(
    EXIT.unauthorized,
    message,
    'Sign in: gpurent login https://gpurent.example.com, or set GPURENT_URL and GPURENT_TOKEN.',
  );
