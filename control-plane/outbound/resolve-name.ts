import { Resolver, lookup } from 'node:dns/promises';

/** Returns the addresses of a name; none: it has none, or they cannot be found out until the signal is aborted. */
export type ResolveName = (name: string, signal: AbortSignal) => Promise<string[]>;

/** How long a name server may take for one question, and how often each is asked. */
const RESOLVE_MS = 3_000;
const RESOLVE_TRIES = 2;

/**
 * Returns the function that asks name servers: those of this machine, or `servers` (`ADDRESS:PORT`). Unlike the system's own look-up it
 * occupies no thread: slow name servers of one receiver would delay everybody else. So it does not read /etc/hosts.
 */
export function askingNameServers(servers?: readonly string[]): ResolveName {
  return async (name, signal) => {
    const resolver = new Resolver({ timeout: RESOLVE_MS, tries: RESOLVE_TRIES });
    if (servers) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
      return found.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  };
}

/**
 * Asks the system, which reads /etc/hosts, too. It occupies a thread, so it is only for the few names that an operator has chosen, and one
 * at a time.
 */
export const askingSystem: ResolveName = async (name) => {
  const found = await lookup(name, { all: true }).catch(() => []);
  return found.map(({ address }) => address);
};
