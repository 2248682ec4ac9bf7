import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';

/** Runs inside the namespace: what connects there goes on to where it is told. */
const RELAY = `
const { connect, createServer } = require('node:net');
const [at, host, port] = process.argv.slice(1);
createServer((near) => {
  const far = connect(Number(port), host);
  near.pipe(far).pipe(near);
  for (const end of [near, far]) end.on('error', () => (near.destroy(), far.destroy()));
}).listen(0, at, function () {
  console.log(this.address().port);
});
`;

/** A connection's way around over a cable that can be pulled: packets vanish on it, and nobody is told. */
export class CutOff {
  readonly name: string;
  private readonly subnet: string;
  private readonly servers: Server[] = [];
  private readonly relays: ChildProcess[] = [];

  /** `number` tells its namespace from others at the same time: 0 to 255. Its addresses lead nowhere else. */
  constructor(number: number) {
    this.name = `gpurent-t${number}`;
    this.subnet = `10.213.${number}`;
    this.remove();
    ip('netns', 'add', this.name);
    ip('link', 'add', this.cable, 'type', 'veth', 'peer', 'name', 'host0', 'netns', this.name);
    ip('address', 'add', `${this.subnet}.1/24`, 'dev', this.cable);
    ip('link', 'set', this.cable, 'up');
    this.inside('address', 'add', `${this.subnet}.2/24`, 'dev', 'host0');
    this.inside('link', 'set', 'host0', 'up');
    this.inside('link', 'set', 'lo', 'up');
  }

  /** Leads to a server on this machine's loopback, out over the cable and back. Answers where the way begins. */
  async wayTo(target: string): Promise<string> {
    const back = await this.forward(`${this.subnet}.1`, target);
    const [host = '', port = ''] = back.split(':');
    const there = `${this.subnet}.2`;
    const program = ['netns', 'exec', this.name, process.execPath, '-e', RELAY, there, host, port];
    const relay = spawn('ip', program, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.relays.push(relay);
    const [line] = (await once(relay.stdout, 'data')) as [Buffer];
    return this.forward('127.0.0.1', `${there}:${String(line).trim()}`);
  }

  /** Answers where it listens. */
  private async forward(at: string, target: string): Promise<string> {
    const [host = '', port = ''] = target.split(':');
    const server = createServer((near) => {
      const far = connect(Number(port), host);
      near.pipe(far).pipe(near);
      for (const end of [near, far]) end.on('error', () => [near, far].forEach((socket) => socket.destroy()));
    });
    server.listen(0, at);
    await once(server, 'listening');
    this.servers.push(server);
    return `${at}:${(server.address() as AddressInfo).port}`;
  }

  /** The cable is out. */
  pull(): void {
    ip('link', 'set', this.cable, 'down');
  }

  plug(): void {
    ip('link', 'set', this.cable, 'up');
  }

  close(): void {
    for (const relay of this.relays) relay.kill('SIGKILL');
    for (const server of this.servers) server.close();
    this.remove();
  }

  private get cable(): string {
    return this.name;
  }

  private inside(...args: string[]): void {
    ip('-n', this.name, ...args);
  }

  private remove(): void {
    const names = execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' });
    if (names.split('\n').some((line) => line.split(' ')[0] === this.name)) ip('netns', 'delete', this.name);
    try {
      execFileSync('ip', ['link', 'delete', this.cable], { stdio: 'ignore' });
    } catch {
      // It went with its namespace.
    }
  }
}

function ip(...args: string[]): void {
  execFileSync('ip', args);
}
