import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { docker } from '../harness/docker.js';
import { takePort } from '../harness/worker.js';
import { eventually } from '../../scripts/eventually.js';

/** A registry of the test's own on loopback, which asks for a password. */
export class Registry {
  static readonly USER = { username: 'owner', password: 'a registry password' };
  readonly address: string;
  private readonly folder = mkdtempSync(join(tmpdir(), 'gpurent-registry-'));
  private readonly server: ChildProcess;

  private constructor() {
    this.address = `127.0.0.1:${takePort()}`;
    const { username, password } = Registry.USER;
    const passwords = execFileSync('htpasswd', ['-Bbn', username, password], { encoding: 'utf8' });
    writeFileSync(join(this.folder, 'passwords'), passwords);
    const config = {
      version: 0.1,
      log: { level: 'error', accesslog: { disabled: true } },
      storage: { filesystem: { rootdirectory: join(this.folder, 'data') } },
      http: { addr: this.address },
      auth: { htpasswd: { realm: 'test', path: join(this.folder, 'passwords') } },
    };
    writeFileSync(join(this.folder, 'config.yml'), JSON.stringify(config));
    this.server = spawn('docker-registry', ['serve', join(this.folder, 'config.yml')], { stdio: 'ignore' });
  }

  static async start(): Promise<Registry> {
    const registry = new Registry();
    await eventually('the registry', () => fetch(`http://${registry.address}/v2/`).catch(() => undefined), 30_000);
    return registry;
  }

  /** Pushes an image under a name of this registry, and leaves no copy of it on the host. Answers the name. */
  async take(image: string, name: string): Promise<string> {
    const full = `${this.address}/${name}`;
    await docker.getImage(image).tag({ repo: full, tag: '1' });
    const pushing = await docker
      .getImage(`${full}:1`)
      .push({ authconfig: { ...Registry.USER, serveraddress: this.address } });
    await new Promise((resolve, reject) =>
      docker.modem.followProgress(pushing, (error) => (error ? reject(error) : resolve(null))),
    );
    await docker.getImage(`${full}:1`).remove();
    return `${full}:1`;
  }

  stop(): void {
    this.server.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
