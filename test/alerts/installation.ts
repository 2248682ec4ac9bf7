import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { Prometheus, type FiringAlert } from '../rig/prometheus.js';
import { SmallDisk } from '../rig/small-disk.js';
import { WatchedAgent } from './watched-agent.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const HEARTBEAT_MS = 10_000;
/** So that one scrape that comes too late on a busy machine raises nothing. */
const LONGEST_FOR_MS = 1_000;

export const RULES = 'packaging/alerts.yml';
/** Where a release has them. */
export const RULES_INSTALLED = '/opt/gpurent/control-plane/packaging/alerts.yml';
export const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** How the guide configures Prometheus. */
export function guideConfig(): string {
  return /prometheus\.yml <<'CONF'\n([^]*?\n)CONF\n/.exec(read('docs/day-two.md'))?.[1] ?? '';
}

/** Replaces what must be there. */
function replace(text: string, what: string | RegExp, by: string): string {
  const replaced = text.replace(what, by);
  if (replaced === text) throw new Error(`${String(what)} is not in ${text}`);
  return replaced;
}

/** The guide's configuration for these targets, so quick that a test need not wait, and without anybody whom it tells of alerts. */
function configFor(rules: string, everyMs: number, controlPlane: string, agent: string | undefined): string {
  const alone = replace(guideConfig(), /^alerting:\n(?: .*\n)+/m, '');
  const quick = ['scrape_interval', 'scrape_timeout', 'evaluation_interval'].map((name) => `${name}: ${everyMs}ms`);
  const paced = replace(alone, 'scrape_interval: 15s', quick.join('\n  '));
  const ruled = replace(paced, RULES_INSTALLED, rules);
  const watching = replace(ruled, '127.0.0.1:8080', controlPlane);
  return agent === undefined
    ? replace(watching, /^ {2}- job_name: gpurent-agent\n[^]*/m, '')
    : replace(watching, '127.0.0.1:19464', agent);
}

/** A control plane, an agent where one is wanted, and a Prometheus that scrapes both. Its rules wait a second at most. */
export class Installation {
  private constructor(
    readonly controlPlane: TestControlPlane,
    /** There only where the test has asked for one. */
    readonly agent: WatchedAgent | undefined,
    private readonly prometheus: Prometheus,
    private readonly everyMs: number,
    /** For whatever the test has to put somewhere. */
    readonly folder: string,
    /** Where the control plane has its database, and one more. */
    readonly disks: { database: SmallDisk; other: SmallDisk },
  ) {}

  /** `everyMs`: how often Prometheus scrapes and evaluates. A scrape that takes longer fails. */
  static async start({ agent: hasAgent = false, everyMs = 500 }): Promise<Installation> {
    const disks = { database: new SmallDisk('128m'), other: new SmallDisk('8m') };
    const home = join(disks.database.path, 'gpurent');
    mkdirSync(home);
    const controlPlane = await TestControlPlane.start({ folder: home });
    const agent = hasAgent ? await WatchedAgent.start(controlPlane) : undefined;
    const folder = mkdtempSync(join(tmpdir(), 'gpurent-alerts-'));
    const rules = join(folder, 'alerts.yml');
    writeFileSync(rules, read(RULES).replace(/\bfor: \d+\w/g, `for: ${LONGEST_FOR_MS}ms`));
    const config = configFor(rules, everyMs, new URL(controlPlane.url).host, agent?.metricsAddress);
    const prometheus = await Prometheus.start(folder, config);
    const installation = new Installation(controlPlane, agent, prometheus, everyMs, folder, disks);
    await installation.settled();
    return installation;
  }

  /** Which alerts fire, and what they say. */
  firing(): Promise<FiringAlert[]> {
    return this.prometheus.firing();
  }

  /** Waits until Prometheus has seen everything as it stands, for longer than any rule waits. */
  async settled(): Promise<void> {
    const targets = this.agent ? 2 : 1;
    await eventually('Prometheus to scrape', async () => (await this.prometheus.count('up')) === targets);
    const since = Date.now() + LONGEST_FOR_MS + 2 * this.everyMs;
    const evaluations = await eventually('the rules to be evaluated', async () => {
      const groups = await this.prometheus.evaluations();
      return groups.length > 0 && groups.every(({ at }) => at > since) && groups;
    });
    const errors = evaluations.flatMap((group) => group.errors);
    if (errors.length > 0) throw new Error(`rules cannot be evaluated: ${errors.join()}`);
  }

  /** Lets time pass, in which every host that is connected speaks and the agent has its turns. */
  async pass(ms: number): Promise<void> {
    const { controlPlane, agent } = this;
    const stepMs = agent ? 1_000 : HEARTBEAT_MS;
    for (let passed = 0; passed < ms; passed += stepMs) {
      controlPlane.advance(stepMs);
      for (const host of controlPlane.agents) if (host.connected) host.beat();
      // So that it is heard before more time passes.
      await controlPlane.api.request('GET', '/healthz');
    }
  }

  async stop(): Promise<void> {
    await this.prometheus.stop();
    await this.agent?.stop();
    await this.controlPlane.stop();
    for (const disk of Object.values(this.disks)) disk.remove();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
