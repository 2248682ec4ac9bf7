/** A renter's container that this host created under another identity. */
export interface LeftWorkload {
  hostId: string;
  container: string;
  isRunning: boolean;
}

const MOST_NAMED = 20;

/**
 * Describes what earlier identities of a host have left on it, one line for each machine, and how the host owner removes it. Only the
 * owner removes it, because it contains disks of renters.
 */
export function describeLeft(left: readonly LeftWorkload[]): { what: string; advice: string }[] {
  const machines = [...new Set(left.map(({ hostId }) => hostId))];
  return machines.map((hostId) => {
    const own = left.filter((each) => each.hostId === hostId);
    const named = own
      .slice(0, MOST_NAMED)
      .map(({ container, isRunning }) => `${container} (${isRunning ? 'running' : 'down'})`);
    const more = own.length > MOST_NAMED ? ` and ${own.length - MOST_NAMED} more` : '';
    const of = `--filter label=gpurent.host=${hostId}`;
    return {
      what: `containers of machine ${hostId}, with the disks of renters: ${named.join(', ')}${more}`,
      advice: `once nobody needs them any more: docker rm --force --volumes $(docker ps --all --quiet ${of}); docker network rm $(docker network ls --quiet ${of})`,
    };
  });
}
