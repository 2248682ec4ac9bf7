import type { NetworkInspectInfo } from 'dockerode';
import { createHash } from 'node:crypto';
import { BRIDGE_PREFIX } from '../../domain/egress.js';
import { Failure } from '../../domain/failure.js';
import { freeSubnets, parseSubnet, type Subnet } from '../../domain/subnets.js';
import { DEADLINE_MS, reasonOf, statusOf, type Engine } from './engine.js';
import { LABEL } from './labels.js';

const TRIES = 20;
/** An interface may have fifteen characters. */
const BRIDGE_DIGITS = 12;

/** A network of its own for each instance, with nobody else on it. */
export class InstanceNetworks {
  private making: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly engine: Engine,
    private readonly hostId: string,
    private readonly pool: Subnet,
  ) {}

  /** Makes it unless it is there; answers its name. Throws Failure CONTAINER_FAILED when the pool is used up. */
  async ensure(instanceId: string): Promise<string> {
    const name = networkName(instanceId);
    // One after the other, so that no two choose the same addresses.
    const made = this.making.then(() => this.make(instanceId, name));
    this.making = made.catch(() => undefined);
    await made;
    return name;
  }

  async remove(instanceId: string): Promise<void> {
    await this.engine
      .call('remove the network', DEADLINE_MS.remove, (docker) => docker.getNetwork(networkName(instanceId)).remove())
      .catch((error: unknown) => {
        if (statusOf(error) !== 404) throw error;
      });
  }

  /** Removes those of this host whose instance is not in `kept`: a crash came between them and their containers. */
  async prune(kept: ReadonlySet<string>): Promise<void> {
    for (const { Labels } of await this.list()) {
      const instanceId = Labels?.[LABEL.instance];
      if (Labels?.[LABEL.host] === this.hostId && instanceId && !kept.has(instanceId)) await this.remove(instanceId);
    }
  }

  private async make(instanceId: string, name: string): Promise<void> {
    const networks = await this.list();
    if (networks.some(({ Name }) => Name === name)) return;
    const used = networks.flatMap(({ IPAM }) =>
      ((IPAM?.Config as { Subnet?: string }[] | null | undefined) ?? []).flatMap(
        ({ Subnet: subnet = '' }) => parseSubnet(subnet) ?? [],
      ),
    );
    const digest = createHash('sha256').update(instanceId).digest();
    let tries = 0;
    for (const subnet of freeSubnets(this.pool, used, digest.readUInt32BE(0))) {
      try {
        return await this.create(instanceId, name, subnet);
      } catch (error) {
        // Another agent on the same Docker has just taken it.
        if (!/overlap/i.test(reasonOf(error)) || ++tries === TRIES) throw error;
      }
    }
    throw new Failure('CONTAINER_FAILED', 'every network of GPURENT_AGENT_SUBNET is in use on this host');
  }

  private async create(instanceId: string, name: string, subnet: string): Promise<void> {
    const bridge = BRIDGE_PREFIX + createHash('sha256').update(instanceId).digest('hex').slice(0, BRIDGE_DIGITS);
    await this.engine.bring(instanceId, 'create the network', DEADLINE_MS.create, (docker) =>
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
