import type { NetworkInspectInfo } from 'dockerode';
import { createHash } from 'node:crypto';
import { BRIDGE_PREFIX } from '../../domain/egress.js';
import { Failure } from '../../domain/failure.js';
import { freeSubnets, parseSubnet, type Subnet } from '../../domain/subnets.js';
import { DEADLINE_MS, reasonOf, statusOf, type Engine } from './engine.js';
import { LABEL } from './labels.js';

const TRIES = 20;
/** The name of an interface has at most fifteen characters. */
const BRIDGE_DIGITS = 12;

/** Manages a separate network for each instance, with nothing else on it. */
export class InstanceNetworks {
  private making: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly engine: Engine,
    private readonly hostId: string,
    private readonly pool: Subnet,
  ) {}

  /** Creates the network of an instance unless it exists. Throws Failure CONTAINER_FAILED when the pool is used up. */
  async ensure(instanceId: string): Promise<{ name: string; isNew: boolean }> {
    const name = networkName(instanceId);
    // One after the other, so that no two networks choose the same addresses.
    const made = this.making.then(() => this.make(instanceId, name));
    this.making = made.catch(() => undefined);
    return { name, isNew: await made };
  }

  /**
   * Creates the network of a stopped container again if it is missing: Docker counts such a network as unused, so
   * somebody can have pruned it.
   */
  async restore(instanceId: string, Container: string): Promise<void> {
    const { name, isNew } = await this.ensure(instanceId);
    if (!isNew) return;
    const network = this.engine.docker.getNetwork(name);
    // The container still refers to the removed network.
    await this.engine
      .call('leave the network', DEADLINE_MS.remove, () => network.disconnect({ Container, Force: true }))
      .catch(() => undefined);
    await this.engine.callTracked(instanceId, 'join the network', DEADLINE_MS.create, () =>
      network.connect({ Container }),
    );
  }

  async remove(instanceId: string): Promise<void> {
    const remove = () =>
      this.engine.call('remove the network', DEADLINE_MS.remove, (docker) =>
        docker.getNetwork(networkName(instanceId)).remove(),
      );
    try {
      // 403: a container is still on the network, at least by Docker's records.
      await remove().catch(async (error: unknown) => {
        if (statusOf(error) !== 403) throw error;
        await this.clear(instanceId);
        await remove();
      });
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
    }
  }

  private async clear(instanceId: string): Promise<void> {
    const network = this.engine.docker.getNetwork(networkName(instanceId));
    const info = (await this.engine.call('inspect the network', DEADLINE_MS.inspect, () => network.inspect())) as {
      Containers?: Record<string, unknown> | null;
    };
    for (const Container of Object.keys(info.Containers ?? {})) {
      await this.engine.call('clear the network', DEADLINE_MS.remove, () =>
        network.disconnect({ Container, Force: true }),
      );
    }
  }

  /** Removes the networks of this host whose instance is not in `kept`: a crash has left them without a container. */
  async prune(kept: ReadonlySet<string>): Promise<void> {
    for (const { Labels } of await this.list()) {
      const instanceId = Labels?.[LABEL.instance];
      if (Labels?.[LABEL.host] !== this.hostId || !instanceId || kept.has(instanceId)) continue;
      // Nobody waits for this network, so a failure is harmless.
      await this.remove(instanceId).catch(() => undefined);
    }
  }

  private async make(instanceId: string, name: string): Promise<boolean> {
    const networks = await this.list();
    if (networks.some(({ Name }) => Name === name)) return false;
    const used = networks.flatMap(({ IPAM }) =>
      ((IPAM?.Config as { Subnet?: string }[] | null | undefined) ?? []).flatMap(
        ({ Subnet: subnet = '' }) => parseSubnet(subnet) ?? [],
      ),
    );
    const digest = createHash('sha256').update(instanceId).digest();
    let tries = 0;
    for (const subnet of freeSubnets(this.pool, used, digest.readUInt32BE(0))) {
      try {
        await this.create(instanceId, name, subnet);
        return true;
      } catch (error) {
        // Another agent on the same Docker has just taken the subnet.
        if (!/overlap/i.test(reasonOf(error)) || ++tries === TRIES) throw error;
      }
    }
    throw new Failure('CONTAINER_FAILED', 'every network of GPURENT_AGENT_SUBNET is in use on this host');
  }

  private async create(instanceId: string, name: string, subnet: string): Promise<void> {
    const bridge = BRIDGE_PREFIX + createHash('sha256').update(instanceId).digest('hex').slice(0, BRIDGE_DIGITS);
    await this.engine.callTracked(instanceId, 'create the network', DEADLINE_MS.create, (docker) =>
      docker.createNetwork({
        Name: name,
        Driver: 'bridge',
        CheckDuplicate: true,
        IPAM: { Driver: 'default', Config: [{ Subnet: subnet }] },
        Labels: { [LABEL.host]: this.hostId, [LABEL.instance]: instanceId },
        Options: { 'com.docker.network.bridge.name': bridge },
      }),
    );
  }

  private list(): Promise<NetworkInspectInfo[]> {
    return this.engine.call('list networks', DEADLINE_MS.inspect, (docker) => docker.listNetworks());
  }
}

function networkName(instanceId: string): string {
  return `gpurent-${instanceId}`;
}
