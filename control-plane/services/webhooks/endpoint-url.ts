import { isIP } from 'node:net';
import { isForbidden } from '../../../shared/network/forbidden-networks.js';
import { invalidField, type Refusal } from '../../domain/refusal.js';

/** Ports below are those of other services, which a request that a stranger causes must not reach. */
const FIRST_FREE_PORT = 1024;
const HTTPS_PORT = 443;
/** Names that every resolver takes for the loopback address (RFC 6761). */
const IS_THIS_MACHINE = /(^|\.)localhost\.?$/;

/**
 * Returns the normal form of an endpoint's address. Refuses with VALIDATION_FAILED what is not https, names a user, has a fragment, uses
 * a port of another service, is an IP address in a forbidden network, or names the control plane's own machine. Other names are vetted
 * at each attempt, when they are resolved.
 */
export function checkUrl(text: string, allowed: readonly string[]): string {
  if (!URL.canParse(text)) throw refused('must be an https address, such as https://example.com/hooks');
  const { protocol, username, password, hash, port, hostname, href } = new URL(text);
  if (protocol !== 'https:') throw refused('must begin with https://');
  if (username !== '' || password !== '') throw refused('must not contain a user or a password');
  if (hash !== '') throw refused('must not contain a fragment (#)');
  const number = Number(port || HTTPS_PORT);
  if (number !== HTTPS_PORT && number < FIRST_FREE_PORT) throw refused('must use port 443, or one from 1024 to 65535');
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const address = IS_THIS_MACHINE.test(host) ? '127.0.0.1' : host;
  if (isIP(address) !== 0 && isForbidden(address, allowed))
    throw refused('is in a network that webhooks cannot reach; ask the operator to allow it');
  return href;
}

function refused(message: string): Refusal {
  return invalidField('url', message);
}
