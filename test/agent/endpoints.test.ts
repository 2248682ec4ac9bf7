import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { advanceUntil } from '../harness/advance-until.js';
import { TestHost, destroy, provision, start, stop } from './host.js';

const JUPYTER = { port: 8888, protocol: 'http', label: '', openButton: false, guard: 'proxy', jupyter: true };
const APP = { port: 8000, protocol: 'http', label: 'App', openButton: true, guard: 'bearer', jupyter: false };

let host: TestHost;
beforeEach(() => {
  host = new TestHost();
});
afterEach(() => host.close());

async function deploy() {
  const command = await provision(host, 1, { ports: [JUPYTER, APP], accessToken: 'secret' });
  host.executor.receive(command);
  return host.answered(command, 'DONE');
}

const links = () => {
  const { jupyterUrl = '', openUrl = '' } = host.reports.at(-1)?.observation ?? {};
  return { jupyterUrl, openUrl };
};
const passing = (what: string, isSo: () => boolean) => advanceUntil(what, { clock: host.clock, stepMs: 500 }, isSo);

const KEY = `ssh-ed25519 ${'A'.repeat(68)}`;
const hostKey = () => host.reports.at(-1)?.observation?.sshHostKey ?? '';

describe('The host key of an SSH server', () => {
  it('is reported once it is known, and again in the next run', async () => {
    const asked: number[] = [];
    host.hostKeyAt = async (port) => {
      asked.push(port);
      return asked.length < 3 ? '' : KEY;
    };
    host.watch();
    const { observation } = await deploy();
    expect(observation).toMatchObject({ sshHostKey: '', sshSilent: false });
    await passing('the key', () => hostKey() === KEY);
    expect(asked).toEqual([observation?.sshPort, observation?.sshPort, observation?.sshPort]);
    for (const command of [stop(2), await start(host, 3)]) {
      host.executor.receive(command);
      expect((await host.answered(command, 'DONE')).observation?.sshHostKey).toBe('');
    }
    await passing('the key again', () => asked.length === 4 && hostKey() === KEY);
  });

  it('is asked for five times in a run, and a host without ssh-keyscan goes on', async () => {
    let asked = 0;
    host.hostKeyAt = async () => {
      asked += 1;
      throw new Error('spawn ssh-keyscan ENOENT');
    };
    host.watch();
    host.speaking.add(APP.port);
    await deploy();
    await passing('the link to the app', () => links().openUrl !== '');
    await passing('five tries', () => asked === 5);
    for (let seconds = 0; seconds < 60; seconds += 1) host.clock.advance(1_000);
    expect([asked, hostKey()]).toEqual([5, '']);
  });
});

describe('What a workload serves', () => {
  it('is linked to once it answers, and not before', async () => {
    host.watch();
    expect((await deploy()).observation).toMatchObject({ jupyterUrl: '', openUrl: '' });
    expect(host.reports).toEqual([]);
    host.speaking.add(APP.port);
    await passing('the link to the app', () => links().openUrl !== '');
    expect(links()).toEqual({ jupyterUrl: '', openUrl: 'http://203.0.113.1:40002/' });
    host.speaking.add(JUPYTER.port);
    await passing('the link to JupyterLab', () => links().jupyterUrl !== '');
    expect(links()).toEqual({ jupyterUrl: 'http://203.0.113.1:40001/lab', openUrl: 'http://203.0.113.1:40002/' });
  });

  it('is guarded while it runs, by the agent after the next one, too', async () => {
    await deploy();
    expect([...host.guarded.keys()]).toEqual([40_001]);
    const halt = stop(2);
    host.executor.receive(halt);
    await host.answered(halt, 'DONE');
    expect(host.guarded.size).toBe(0);
    const again = await start(host, 3);
    host.executor.receive(again);
    await host.answered(again, 'DONE');
    host.guarded.clear();
    host.restart();
    await host.watch().compare();
    expect([...host.guarded.keys()]).toEqual([40_001]);
    const end = destroy(4);
    host.executor.receive(end);
    await host.answered(end, 'DONE');
    expect(host.guarded.size).toBe(0);
  });

  it('is closed when the workload has ended by itself', async () => {
    const watcher = host.watch();
    await deploy();
    host.runtime.exit('i', 0);
    await watcher.compare();
    expect(host.guarded.size).toBe(0);
  });

  it('has to answer again after another start', async () => {
    host.watch();
    host.speaking.add(APP.port);
    await deploy();
    await passing('the link to the app', () => links().openUrl !== '');
    host.speaking.clear();
    // A later run.
    host.clock.advance(1_000);
    for (const command of [stop(2), await start(host, 3)]) {
      host.executor.receive(command);
      const { observation } = await host.answered(command, 'DONE');
      expect(observation?.openUrl).toBe('');
    }
  });
});
