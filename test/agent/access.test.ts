import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Failure } from '../../agent/domain/failure.js';
import { shellExports } from '../../agent/domain/shell.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { TestHost, destroy, keep, start, stop } from './host.js';

const APP = { port: 8000, protocol: 'http', label: 'App', openButton: true, guard: 'proxy', jupyter: false };

let host: TestHost;
beforeEach(() => {
  host = new TestHost();
});
afterEach(() => host.close());

const deploy = () => host.provisioned({ ports: [APP], accessToken: 'secret' });

const hashes = () => [...host.guarded.values()].map(({ tokenHash }) => tokenHash);

describe('access that is replaced', () => {
  it('is in force when the command is done, and nothing is started or stopped for it', async () => {
    await deploy();
    const calls = [...host.runtime.calls];
    const command = keep(2);
    host.executor.receive(command);
    const result = await host.answered(command, 'DONE');
    expect(result).toMatchObject({ accessRevision: 1, sshKeyStays: false, observation: undefined });
    expect(hashes()).toEqual(['new']);
    expect(host.runtime.calls).toEqual(calls);
    expect(host.journal.instance('i')).toEqual({ instanceId: 'i', sequence: 2, desired: 'running' });
  });

  it('says that a key stays where it cannot be replaced', async () => {
    await deploy();
    host.runtime.keysStay = true;
    const command = keep(2);
    host.executor.receive(command);
    expect(await host.answered(command, 'DONE')).toMatchObject({ accessRevision: 1, sshKeyStays: true });
  });

  it('is not done while it cannot be written, or the proxy does not say so, and is when it is sent again', async () => {
    await deploy();
    const command = keep(2);
    host.runtime.failNext('replaceAccess', new Error('the disk is full'));
    host.executor.receive(command);
    await host.executor.idle();
    host.guardFails = true;
    host.executor.receive(command);
    await host.executor.idle();
    expect(host.outcomes(command)).toEqual([]);
    host.guardFails = false;
    host.executor.receive(command);
    await host.answered(command, 'DONE');
    expect(hashes()).toEqual(['new']);
  });

  it('holds up nothing that is still to be reported', async () => {
    const watcher = host.watch();
    await deploy();
    host.runtime.failNext('replaceAccess', new Error('the disk is full'));
    host.executor.receive(keep(2));
    await host.executor.idle();
    host.runtime.exit('i', 0);
    await advanceUntil('the report', { clock: host.clock, stepMs: 1_000 }, async () => {
      await watcher.compare();
      return host.reports.at(-1)?.observation?.exit !== undefined;
    });
    const command = keep(3);
    host.executor.receive(command);
    await host.answered(command, 'DONE');
    expect(host.journal.unacknowledgedReports()).toHaveLength(1);
    expect(host.journal.instance('i')?.desired).toBe('ended');
  });

  it('overtakes what is older, and is overtaken by what is newer', async () => {
    await deploy();
    host.executor.receive(keep(3));
    await host.executor.idle();
    const late = keep(2, { tokenHash: 'old' });
    host.executor.receive(late);
    expect(await host.answered(late, 'STALE')).toMatchObject({ highestSequence: 3 });
    expect(hashes()).toEqual(['new']);
  });

  it('comes with a start, which is refused where it cannot be written', async () => {
    await deploy();
    const halt = stop(2);
    host.executor.receive(halt);
    await host.answered(halt, 'DONE');
    const { access } = keep(0);
    host.runtime.failNext('replaceAccess', new Error('the disk is full'));
    const refused = { ...(await start(host, 3)), access };
    host.executor.receive(refused);
    await host.answered(refused, 'REFUSED');
    expect(host.runtime.calls.filter((call) => call.startsWith('start'))).toEqual([]);
    const again = { ...(await start(host, 4)), access };
    host.executor.receive(again);
    expect(await host.answered(again, 'DONE')).toMatchObject({ accessRevision: 1 });
    expect(hashes()).toEqual(['new']);
  });

  it('comes with a stop, which ends the workload in any case', async () => {
    await deploy();
    host.runtime.failNext('replaceAccess', new Error('the disk is full'));
    const halt = { ...stop(2), access: keep(0).access };
    host.executor.receive(halt);
    expect(await host.answered(halt, 'DONE')).toMatchObject({ accessRevision: 0 });
    expect(await host.runtime.find('i')).toMatchObject({ state: 'stopped' });
  });

  it('counts for the ports of a workload whose stop takes its time', async () => {
    await deploy();
    const letGo = host.runtime.hold('stop');
    const halt = { ...stop(2), access: keep(0).access };
    host.executor.receive(halt);
    await eventually('the new token', () => hashes()[0] === 'new');
    letGo();
    await host.answered(halt, 'DONE');
  });

  it('of what is not there is done', async () => {
    await deploy();
    const end = destroy(2);
    host.executor.receive(end);
    await host.answered(end, 'DONE');
    const command = keep(3);
    host.executor.receive(command);
    await host.answered(command, 'DONE');
    expect(host.journal.instance('i')?.desired).toBe('absent');
  });

  it('waits for a Docker that is away for a moment', async () => {
    await deploy();
    host.runtime.failNext('replaceAccess', new Failure('DOCKER_UNREACHABLE', 'Docker is down'));
    const command = keep(2);
    host.executor.receive(command);
    await host.answeredInTime(command, 'DONE');
  });
});

it('variables are told to a shell as they are, and a name that is none is not', () => {
  const env = [
    { key: 'A', value: `it's $(rm) "x"\n` },
    { key: 'not a name; rm', value: 'x' },
  ];
  expect(shellExports(env)).toBe(`export A='it'\\''s $(rm) "x"\n'\n`);
});
