import { basename } from 'node:path';
import semver from 'semver';
import { expect } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { VERSION } from '../../shared/version.js';
import { SAMPLE_IMAGE } from '../harness/docker.js';
import { inlineOf } from '../harness/guide-blocks.js';
import { type GuideWalk, type OpenBlock, type Placeholders, Reader } from '../rig/guide-walk.js';
import { type SystemdMachine, releaseTarball } from '../rig/systemd-machine.js';

/** What the guides call the release. */
export const RELEASE_NAME = `gpurent-${semver.coerce(VERSION)?.version}-linux-x64`;
const PATIENCE_MS = 180_000;
/** `docker pull` finds no registry on the test's machine: this image is called as the one that the guide names. */
const IMAGE_OF_GUIDE = 'debian:12';
const RENTING = 'renter.md: With the API';
const WAIVER = '/v1/operator/machines/ID/disk-quota-waiver';
const LOGGING_IN = 'operator.md: Console, command line, curl';
const SIGNING_IN = `${LOGGING_IN} (2)`;
const ADDING = 'operator.md: Add a machine';
const OWNER = 'docs/host-owner.md';
const OFFERING = 'operator.md: From an empty control plane to the first renter';

interface Machine {
  id: string;
  connected: boolean;
}
interface Instance {
  id: string;
  status: string;
  ssh_host: string;
  ssh_port: number;
  ssh_user: string;
}

/** What the readers of the guides set up on one machine, and how it stands. */
export class GuideMarket {
  /** What stands for what, in every block. */
  readonly usual: Placeholders;
  readonly operator: Reader;
  readonly owner: Reader;
  readonly renter: Reader;
  organization = '';

  /** `api` is where the renter's API is. */
  private constructor(
    private readonly on: SystemdMachine,
    private readonly walk: GuideWalk,
    api: string,
  ) {
    // The name itself leads to this machine by its /etc/hosts.
    this.usual = {
      [RELEASE_NAME]: basename(releaseTarball(), '.tar.gz'),
      'https://gpurent.example.com': api,
    };
    this.operator = new Reader(on, 'operator', this.usual);
    this.owner = new Reader(on, 'owner', this.usual, 'root', '/root/host');
    this.renter = new Reader(on, 'renter', this.usual, 'renter');
  }

  static async on(machine: SystemdMachine, walk: GuideWalk, api: string): Promise<GuideMarket> {
    await machine.copy(releaseTarball(), '/root');
    await machine.sh('mkdir /root/host && ln /root/*.tar.gz /root/host');
    await machine.load(SAMPLE_IMAGE);
    await machine.sh(`
      echo 127.0.0.1 gpurent.example.com >>/etc/hosts
      docker commit --change 'CMD ["sh"]' "$(docker create ${SAMPLE_IMAGE} sh)" ${IMAGE_OF_GUIDE} >/dev/null
      useradd --create-home --shell /bin/bash renter
      # As npm installs it, which the machine does not have.
      mkdir /usr/local/lib/gpurent-cli
      tar -xzf /root/*.tar.gz -O --wildcards '*/clients/gpurent-[0-9]*.tgz' | tar -xz -C /usr/local/lib/gpurent-cli --strip-components 1
      printf '#!/bin/sh\nexec /opt/its-node/node /usr/local/lib/gpurent-cli/cli/bin.js "$@"\n' >/usr/local/bin/gpurent
      chmod 755 /usr/local/bin/gpurent
      runuser -u renter -- ssh-keygen -q -t ed25519 -N '' -f /home/renter/.ssh/id_ed25519
      echo 'StrictHostKeyChecking accept-new' >/home/renter/.ssh/config`);
    return new GuideMarket(machine, walk, api);
  }

  /** Asks the API as the operator; returns the answer. */
  async ask<T>(method: string, path: string): Promise<T> {
    const said = await this.operator.paste(
      `curl -s -X ${method} 'localhost:8080${path}' -H "Authorization: Bearer $OPERATOR"`,
    );
    return (said === '' ? {} : JSON.parse(said)) as T;
  }

  async list<T>(path: string): Promise<T[]> {
    return (await this.ask<{ items: T[] }>('GET', path)).items;
  }

  /** Returns the operator's one machine. */
  async machine(): Promise<Machine> {
    const [found] = await this.list<Machine>('/v1/operator/machines');
    if (!found) throw new Error('there is no machine');
    return found;
  }

  isConnected(): Promise<unknown> {
    return eventually('the host', async () => (await this.machine()).connected, PATIENCE_MS);
  }

  /** The operator makes a token by the guide, and the owner installs a host with it. */
  async install(): Promise<void> {
    await this.signIn();
    await this.walk.follow(this.operator, `${ADDING} (2)`);
    const line = await this.walk.follow(this.operator, ADDING);
    const [token = ''] = /enr_\S+/.exec(line) ?? [];
    // On a machine without an NVIDIA GPU the guide has --gpus added.
    await this.walk.follow(this.owner, 'host-owner.md: Install', { 'enr_...': `${token} --gpus simulated:2` });
    await this.rentLocalImages();
  }

  /** The image of the test was made on this host. */
  async rentLocalImages(): Promise<void> {
    const images = 's/^GPURENT_AGENT_LOCAL_IMAGES=.*/GPURENT_AGENT_LOCAL_IMAGES=any/';
    await this.on.sh(`sed -i ${images} /etc/gpurent/agent.conf; systemctl restart gpurent-agent`);
  }

  /** With curl, then on the command line: nobody is there to approve a sign-in in a browser. */
  async signIn(): Promise<void> {
    await this.walk.follow(this.operator, SIGNING_IN);
    await this.walk.follow(this.operator, LOGGING_IN, {
      'https://gpurent.example.com': 'http://localhost:8080',
      'gpurent login': 'echo "$OPERATOR" | gpurent login --with-token',
    });
  }

  /** A token to enroll with, by the guide. `body`: what is asked for instead of what the guide asks for. */
  async token(body: object): Promise<string> {
    const request = this.walk.commandOf(`${ADDING} (2)`, 'enrollment-tokens');
    const asked = { '{"max_uses": 1, "expires_in_hours": 24}': JSON.stringify(body) };
    return (JSON.parse(await this.operator.paste(request, asked)) as { token: string }).token;
  }

  /** The host enrolls once more, with `--again` or `--new`, as the guide of its owner says. */
  async enrolAgain(how: '--again' | '--new', body: object): Promise<string> {
    const enroll = inlineOf(OWNER, `gpurent-agent enroll --control-plane HOST:PORT --token enr_... ${how}`);
    const [before, after] =
      how === '--new'
        ? [inlineOf(OWNER, 'systemctl stop gpurent-agent'), inlineOf(OWNER, 'systemctl start gpurent-agent')]
        : ['true', inlineOf(OWNER, 'systemctl restart gpurent-agent')];
    const where = { 'HOST:PORT': 'gpurent.example.com:8090', 'enr_...': await this.token(body) };
    const said = await this.owner.paste(`${before}\n${enroll} 2>&1\n${after}`, where);
    await this.isConnected();
    return said;
  }

  /** Puts the machine on the market by the guide, on the command line and with curl, and gives credit to the renter, who has signed up. */
  async offer(): Promise<void> {
    const { organization } = this;
    const { id } = await this.machine();
    const its = { MACHINE: id, 'credit ORGANIZATION': `credit --yes ${organization}` };
    await this.walk.follow(this.operator, OFFERING, its);
    const block = this.walk.open(this.operator, `${OFFERING} (2)`);
    await block.upTo('offers', { '"machine_id": "..."': `"machine_id": "${id}"` });
    // Nothing holds renters to their disks on the machine of the test.
    await this.operate(`api PUT ${WAIVER}`, { '/ID/': `/${id}/` });
    await block.rest({ '/.../': `/${organization}/` });
  }

  /** The operator pastes a command that stands in a table of the guide. */
  operate(command: string, placeholders: Placeholders): Promise<string> {
    return this.operator.paste(inlineOf('docs/operator.md', command), placeholders);
  }

  /** Puts the machine that there is now on the market. */
  async offerAgain(): Promise<void> {
    const { id } = await this.machine();
    await this.ask('PUT', WAIVER.replace('ID', id));
    const command = this.walk.commandOf(`${OFFERING} (2)`, '/v1/operator/offers');
    await this.operator.paste(command, { '"machine_id": "..."': `"machine_id": "${id}"` });
  }

  /** The renter pastes the first lines of the guide, which need nothing to rent. */
  async signUp(): Promise<OpenBlock> {
    const block = this.walk.open(this.renter, RENTING);
    await block.upTo('api() {');
    this.organization = (JSON.parse(await this.renter.paste('api /v1/orgs/current')) as { id: string }).id;
    return block;
  }

  /** The rest of them: an instance is rented, reached, stopped, started and destroyed. */
  async rent(block: OpenBlock): Promise<void> {
    await block.upTo('api /v1/ssh-keys');
    const { id } = JSON.parse(await block.upTo('api /v1/instances -d', await this.choice())) as Instance;
    const its = { '/ID': `/${id}` };
    await block.upTo('until its status is "running"', its);
    const { ssh_host: host, ssh_port: port, ssh_user: user } = await this.becomes('running', () => block.again());
    const reached = { SSH_PORT: `${port}`, 'SSH_USER@SSH_HOST': `${user}@${host} 'echo mine >kept; cat kept'` };
    expect(await block.upTo('ssh -p', reached)).toBe('mine');
    await block.upTo('/stop', its);
    await this.becomes('stopped', () => this.see(id));
    await block.upTo('/start', its);
    await this.becomes('running', () => this.see(id));
    expect(await this.overSsh(id, 'cat kept')).toBe('mine');
    await block.rest(its);
    await this.becomes('destroyed', () => this.see(id));
  }

  /** Deploys an instance by the line of the guide; resolves to its id once it is running. */
  async deploy(): Promise<string> {
    const command = this.walk.commandOf(RENTING, 'api /v1/instances -d');
    const { id } = JSON.parse(await this.renter.paste(command, await this.choice())) as Instance;
    await this.becomes('running', () => this.see(id));
    return id;
  }

  /** Destroys it by the line of the guide. */
  async destroy(id: string): Promise<void> {
    await this.renter.paste(this.walk.commandOf(RENTING, '-X DELETE'), { '/ID': `/${id}` });
    await this.becomes('destroyed', () => this.see(id));
  }

  /** By the guide's line, with a command. */
  async overSsh(id: string, command: string): Promise<string> {
    const { ssh_host: host, ssh_port: port, ssh_user: user } = JSON.parse(await this.see(id)) as Instance;
    const there = { SSH_PORT: `${port}`, 'SSH_USER@SSH_HOST': `${user}@${host} '${command}'` };
    return this.renter.paste(this.walk.commandOf(RENTING, 'ssh -p'), there);
  }

  /** Starts it again by the line of the guide. */
  async start(id: string): Promise<void> {
    await this.renter.paste(this.walk.commandOf(RENTING, '/start'), { '/ID': `/${id}` });
    await this.becomes('running', () => this.see(id));
  }

  /** An instance, as its renter sees it. */
  see(id: string): Promise<string> {
    return this.renter.paste(this.walk.commandOf(RENTING, 'until its status'), { '/ID': `/${id}` });
  }

  async becomes(status: string, look: () => Promise<string>): Promise<Instance> {
    const seen = async () => {
      const instance = JSON.parse(await look()) as Instance;
      return instance.status === status && instance;
    };
    return eventually(`the instance to be ${status}`, seen, PATIENCE_MS);
  }

  private async choice(): Promise<Placeholders> {
    const first = async (path: string) => {
      const { items } = JSON.parse(await this.renter.paste(`api ${path}`)) as { items: { id: string }[] };
      if (!items[0]) throw new Error(`${path} is empty`);
      return items[0].id;
    };
    return {
      '"offer_id": "..."': `"offer_id": "${await first('/v1/offers')}"`,
      '"template_id": "..."': `"template_id": "${await first('/v1/templates')}"`,
      '"ssh_key_id": "..."': `"ssh_key_id": "${await first('/v1/ssh-keys')}"`,
    };
  }
}
