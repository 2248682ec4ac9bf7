import { usageError } from '../errors/cli-error.js';

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Returns the address of a control plane as it is kept. Throws a usage error if it is none, or would send a token in plain text. */
export function addressOf(text: string, allowHttp: boolean): string {
  const given = /^[a-z]+:\/\//i.test(text) ? text : `https://${text}`;
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.username || url.password || url.search || url.hash)
    throw usageError(`"${text}" is not the address of a control plane`, 'Give it like https://gpurent.example.com.');
  if (url.protocol === 'http:' && !allowHttp && !LOOPBACK.test(url.hostname))
    throw usageError(
      `http:// would send your token to ${url.host} in plain text`,
      'Use https://; where you trust the network, gpurent login --allow-http or GPURENT_ALLOW_HTTP=1.',
    );
  return url.href.replace(/\/+$/, '');
}

/** Returns a token as it is kept. Throws a usage error, without the token in it, for what cannot be one. */
export function tokenOf(text: string): string {
  const token = text.trim();
  if (/^[\x21-\x7e]{8,512}$/.test(token)) return token;
  throw usageError(
    'this is not a token',
    'Give an API key (svc_...) or the token of a session (ses_...), in one line.',
  );
}
