import type { NetworkInspectInfo } from 'dockerode';
import { createHash } from 'node:crypto';
import type { Clock } from '../../../../shared/clock.js';
import { BRIDGE_PREFIX } from '../../../domain/egress.js';
import { Failure } from '../../../domain/failure.js';
import { freeSubnets, parseSubnet, type Subnet } from '../../../domain/subnets.js';
import { DEADLINE_MS, reasonOf, statusOf, type Engine } from '../engine.js';
import { LABEL } from '../labels.js';
import { ReadyNetworks, isMadeAhead } from './ready-networks.js';

const TRIES = 20;
/** The name of an interface has at most fifteen characters. */
const BRIDGE_DIGITS = 12;

/** Manages a separate network for each instance, with nothing else on it. */
export class InstanceNetworks {
  private making: Promise<unknown> = Promise.resolve();
  private readonly ready: ReadyNetworks;
  /** By instance: its network, where that was made in advance. */
  private readonly taken = new Map<string, string>();

  /** `mostReady`: how many networks are made in advance. */
  constructor(
    private readonly engine: Engine,
    private readonly hostId: string,
    private readonly pool: Subnet,
    clock: Clock,
    mostReady = 0,
  ) {
    this.ready = new ReadyNetworks(mostReady, clock, (name) => this.makeReady(name));
  }

  /** Begins to make networks in advance. Resolves once they are made, or one could not be made. */
  open(): Promise<void> {
    return this.ready.open();
  }

  /** Makes none in advance any more, and removes those that no instance has taken. */
  async close(): Promise<void> {
    for (const name of await this.ready.close()) await this.removeNetwork(name).catch(() => undefined);
  }

  /** Returns the network for the container of an instance: one that was made in advance, or its own. */
  async provide(instanceId: string): Promise<string> {
    const present = new Set((await this.list()).map(({ Name }) => Name));
    const name = present.has(this.nameOf(instanceId)) ? undefined : this.ready.take(present);
    if (name === undefined) return (await this.ensure(instanceId)).name;
    this.taken.set(instanceId, name);
    return name;
  }

  /** Remembers the network to which the container of an instance refers. */
  note(instanceId: string, network: string | undefined): void {
    if (network !== undefined && isMadeAhead(network)) this.taken.set(instanceId, network);
  }

  /** Creates the network of an instance unless it exists. Throws Failure CONTAINER_FAILED when the pool is used up. */
  async ensure(instanceId: string): Promise<{ name: string; isNew: boolean }> {
    const name = this.nameOf(instanceId);
    const create = (subnet: string) =>
      this.engine.callTracked(instanceId, 'create the network', DEADLINE_MS.create, () =>
        this.create(name, { [LABEL.instance]: instanceId }, subnet),
      );
    return { name, isNew: await this.make(name, create) };
  }

  /**
   * Creates the network of a stopped container again if it is missing: Docker counts such a network as unused, so
   * somebody can have pruned it.
   */
  async restore(instanceId: string, Container: string): Promise<void> {
    const { HostConfig } = await this.engine.call('inspect the container', DEADLINE_MS.inspect, (docker) =>
      docker.getContainer(Container).inspect(),
    );
    this.note(instanceId, HostConfig.NetworkMode);
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
    await this.removeNetwork(this.nameOf(instanceId));
    this.taken.delete(instanceId);
  }

  private async removeNetwork(name: string): Promise<void> {
    const remove = () =>
      this.engine.call('remove the network', DEADLINE_MS.remove, (docker) => docker.getNetwork(name).remove());
    try {
      // 403: a container is still on the network, at least by Docker's records.
      await remove().catch(async (error: unknown) => {
        if (statusOf(error) !== 403) throw error;
        await this.clear(name);
        await remove();
      });
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
    }
  }

  private async clear(name: string): Promise<void> {
    const network = this.engine.docker.getNetwork(name);
    const info = (await this.engine.call('inspect the network', DEADLINE_MS.inspect, () => network.inspect())) as {
      Containers?: Record<string, unknown> | null;
    };
    for (const Container of Object.keys(info.Containers ?? {})) {
      await this.engine.call('clear the network', DEADLINE_MS.remove, () =>
        network.disconnect({ Container, Force: true }),
      );
    }
  }

  /**
   * Removes the networks of this host whose instance is not in `kept`, and those made in advance to which no container refers: a
   * crash has left them. None of them is used again, because an instance may have had it.
   */
  async prune(kept: ReadonlySet<string>): Promise<void> {
    const own = (await this.list()).filter(({ Labels }) => Labels?.[LABEL.host] === this.hostId);
    const used = own.some(({ Name }) => isMadeAhead(Name)) ? await this.usedNetworks() : new Set<string>();
    for (const { Name, Labels } of own) {
      const instanceId = Labels?.[LABEL.instance];
      if (isMadeAhead(Name) ? used.has(Name) : !instanceId || kept.has(instanceId)) continue;
      // Nobody waits for this network, so a failure is harmless.
      await this.removeNetwork(Name).catch(() => undefined);
    }
  }

  /** Returns the networks of all containers, running or not. */
  private async usedNetworks(): Promise<Set<string>> {
    const containers = await this.engine.call('list containers', DEADLINE_MS.inspect, (docker) =>
      docker.listContainers({ all: true }),
    );
    return new Set(
      containers.flatMap(({ HostConfig, NetworkSettings }) => [
        HostConfig.NetworkMode,
        ...Object.keys(NetworkSettings.Networks),
      ]),
    );
  }

  private nameOf(instanceId: string): string {
    return this.taken.get(instanceId) ?? `gpurent-${instanceId}`;
  }

  private makeReady(name: string): Promise<boolean> {
    return this.make(name, (subnet) =>
      this.engine.call('create a network', DEADLINE_MS.create, () => this.create(name, {}, subnet)),
    );
  }

  /** Creates a network unless it exists; one after the other, so that no two choose the same addresses. Returns whether it is new. */
  private async make(name: string, create: (subnet: string) => Promise<unknown>): Promise<boolean> {
    const made = this.making.then(() => this.makeNext(name, create));
    this.making = made.catch(() => undefined);
    return made;
  }

  private async makeNext(name: string, create: (subnet: string) => Promise<unknown>): Promise<boolean> {
    const networks = await this.list();
    if (networks.some(({ Name }) => Name === name)) return false;
    const used = networks.flatMap(({ IPAM }) =>
      ((IPAM?.Config as { Subnet?: string }[] | null | undefined) ?? []).flatMap(
        ({ Subnet: subnet = '' }) => parseSubnet(subnet) ?? [],
      ),
    );
    const digest = createHash('sha256').update(name).digest();
    let tries = 0;
    for (const subnet of freeSubnets(this.pool, used, digest.readUInt32BE(0))) {
      try {
        await create(subnet);
        return true;
      } catch (error) {
        // Another agent on the same Docker has just taken the subnet.
        if (!/overlap/i.test(reasonOf(error)) || ++tries === TRIES) throw error;
      }
    }
    throw new Failure('CONTAINER_FAILED', 'every network of GPURENT_AGENT_SUBNET is in use on this host');
  }

  private create(name: string, labels: Record<string, string>, subnet: string): Promise<unknown> {
    const bridge = BRIDGE_PREFIX + createHash('sha256').update(name).digest('hex').slice(0, BRIDGE_DIGITS);
    return this.engine.docker.createNetwork({
      Name: name,
      Driver: 'bridge',
      CheckDuplicate: true,
      IPAM: { Driver: 'default', Config: [{ Subnet: subnet }] },
      Labels: { [LABEL.host]: this.hostId, ...labels },
      Options: { 'com.docker.network.bridge.name': bridge },
    });
  }

  private list(): Promise<NetworkInspectInfo[]> {
    return this.engine.call('list networks', DEADLINE_MS.inspect, (docker) => docker.listNetworks());
  }
}
