import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** Greets whoever connects, as a web server or for mail, and takes what it sends. */
const GREETER = `
const greeter = () =>
  require('node:net').createServer((socket) => socket.on('error', () => {}).resume().write('reached\\n'));
greeter().listen(25, '0.0.0.0', () => greeter().listen(80, '0.0.0.0', () => console.log('up')));
`;
const NAME = 'gpurent-out';
const NEAR = '198.51.100.1';

/**
 * A machine outside the host, in a network namespace, that has every address that renters must not reach, and one that they
 * may: so a packet that gets through is seen, and goes nowhere else.
 */
export class Outside {
  /** Stands for the Internet. */
  static readonly PUBLIC = '198.51.100.2';
  /** The host, as it is seen from there. */
  static readonly HOST = NEAR;
  private readonly greeter: ChildProcess;

  private constructor(addresses: readonly string[]) {
    remove();
    ip('netns', 'add', NAME);
    ip('link', 'add', NAME, 'type', 'veth', 'peer', 'name', 'host0', 'netns', NAME);
    ip('address', 'add', `${NEAR}/24`, 'dev', NAME);
    ip('link', 'set', NAME, 'up');
    inside('address', 'add', `${Outside.PUBLIC}/24`, 'dev', 'host0');
    inside('link', 'set', 'host0', 'up');
    inside('link', 'set', 'lo', 'up');
    for (const address of addresses) {
      inside('address', 'add', `${address}/32`, 'dev', 'lo');
      ip('route', 'replace', `${address}/32`, 'via', Outside.PUBLIC, 'dev', NAME);
    }
    this.greeter = spawn('ip', ['netns', 'exec', NAME, process.execPath, '-e', GREETER], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  }

  static async with(addresses: readonly string[]): Promise<Outside> {
    const outside = new Outside(addresses);
    if (outside.greeter.stdout) await once(outside.greeter.stdout, 'data');
    return outside;
  }

  close(): void {
    this.greeter.kill('SIGKILL');
    remove();
  }
}

function remove(): void {
  const names = execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' });
  if (names.split('\n').some((line) => line.split(' ')[0] === NAME)) ip('netns', 'delete', NAME);
  try {
    execFileSync('ip', ['link', 'delete', NAME], { stdio: 'ignore' });
  } catch {
    // It went with its namespace.
  }
}

function inside(...args: string[]): void {
  ip('-n', NAME, ...args);
}

function ip(...args: string[]): void {
  execFileSync('ip', args);
}
