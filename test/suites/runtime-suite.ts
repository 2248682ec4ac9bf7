import { randomUUID } from 'node:crypto';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { WorkloadSpec } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { ExistingWorkload, Runtime } from '../../agent/runtime/workload.js';
import { eventually } from '../../scripts/eventually.js';

export interface RuntimeUnderTest {
  runtime: Runtime;
  /** An image that is there. */
  image: string;
  ports: { first: number; last: number };
  /** Something else takes the port; answers how to give it back. */
  takePort(port: number): Promise<() => Promise<void>>;
  /** The workload prints a line. */
  print(instanceId: string, line: string): Promise<void>;
  /** The workload ends by itself. */
  exit(instanceId: string, code: number): Promise<void>;
}

const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti';

/** A workload that prints what is appended to a file. */
const PRINTS_FILE = ['sh', '-c', 'touch /out; exec tail -f /out'];

export function specOf(image: string, fields: Partial<WorkloadSpec> = {}): WorkloadSpec {
  return {
    ...WorkloadSpec.fromPartial({
      image,
      interactive: true,
      sshUser: 'root',
      sshAuthorizedKey: PUBLIC_KEY,
      gpuUuids: ['GPU-1'],
      diskGb: 10,
      cpuMillis: 500,
      memoryMb: 128,
    }),
    ...fields,
  };
}

/** What every runtime does. The fake and the one on Docker pass the same. */
export function describeRuntime(make: () => Promise<RuntimeUnderTest>): void {
  let test: RuntimeUnderTest;
  const made: string[] = [];

  beforeAll(async () => {
    test = await make();
  });
  afterEach(async () => {
    for (const id of made.splice(0)) await test.runtime.remove(id);
  });

  const create = async (fields: Partial<WorkloadSpec> = {}) => {
    const id = randomUUID();
    made.push(id);
    await test.runtime.create(id, 7, specOf(test.image, fields));
    return id;
  };
  const stateIs = (id: string, state: string) =>
    eventually(`${id} to be ${state}`, async () => (await test.runtime.find(id)).state === state);

  it('knows nothing of what it has not made, and stops and removes that in peace', async () => {
    const id = randomUUID();
    expect(await test.runtime.find(id)).toEqual({ state: 'absent' });
    await test.runtime.stop(id);
    await test.runtime.remove(id);
    expect(await test.runtime.tail(id, 10)).toEqual([]);
  });

  it('creates, stops, starts and removes, keeping port and GPUs', async () => {
    const { runtime, ports } = test;
    const id = await create({ origin: 'sealed' });
    const running = await runtime.find(id);
    const made = { instanceId: id, sequence: 7, gpuUuids: ['GPU-1'], diskGb: 10, origin: 'sealed' };
    expect(running).toMatchObject({ state: 'running', ...made });
    const { sshPort } = running as { sshPort: number };
    expect(sshPort).toBeGreaterThanOrEqual(ports.first);
    expect(sshPort).toBeLessThanOrEqual(ports.last);
    await eventually('SSH', () => runtime.sshAnswers(sshPort));
    expect((await runtime.list()).map(({ instanceId }) => instanceId)).toContain(id);

    await runtime.stop(id);
    expect(await runtime.find(id)).toMatchObject({ state: 'stopped', sshPort });
    await runtime.stop(id);
    await runtime.start(id);
    expect(await runtime.find(id)).toMatchObject({ state: 'running', sshPort, gpuUuids: ['GPU-1'] });
    await runtime.remove(id);
    expect(await runtime.find(id)).toEqual({ state: 'absent' });
    expect((await runtime.list()).map(({ instanceId }) => instanceId)).not.toContain(id);
  });

  it('takes the token that has replaced the first one, also over a stop and a start', async () => {
    const { runtime } = test;
    const access = { revision: 1, tokenHash: 'replaced', sshAuthorizedKey: PUBLIC_KEY, env: [] };
    const id = await create({ accessToken: 'first' });
    expect(await runtime.replaceAccess(id, access)).toEqual({ sshKeyStays: false });
    expect(await runtime.find(id)).toMatchObject({ tokenHash: 'replaced' });
    await runtime.stop(id);
    await runtime.start(id);
    expect(await runtime.find(id)).toMatchObject({ state: 'running', tokenHash: 'replaced' });
    await runtime.remove(id);
    expect(await runtime.replaceAccess(id, access)).toEqual({ sshKeyStays: false });
    expect(await runtime.find(id)).toEqual({ state: 'absent' });
  });

  it('publishes no port without a key', async () => {
    const id = await create({ sshAuthorizedKey: '' });
    expect(await test.runtime.find(id)).toMatchObject({ state: 'running', sshPort: null });
  });

  it('gives two workloads two ports', async () => {
    const ports = [];
    for (const id of [await create(), await create()])
      ports.push(((await test.runtime.find(id)) as { sshPort: number }).sshPort);
    expect(new Set(ports).size).toBe(2);
  });

  it('says how a workload ended', async () => {
    const id = await create({
      interactive: false,
      command: ['sh', '-c', 'while [ ! -e /exit ]; do sleep 0.1; done; exit $(cat /exit)'],
    });
    await test.exit(id, 3);
    await stateIs(id, 'stopped');
    expect(await test.runtime.find(id)).toMatchObject({ exitCode: 3, outOfMemory: false });
  });

  it('shows the last lines in order, and follows what comes after them', async () => {
    const { runtime } = test;
    const id = await create({ command: PRINTS_FILE });
    for (const line of ['one', 'two', 'three']) await test.print(id, line);
    const texts = async (count: number) => (await runtime.tail(id, count)).map(({ text }) => text);
    await eventually('three lines', async () => (await texts(10)).length === 3);
    expect(await texts(10)).toEqual(['one', 'two', 'three']);
    expect(await texts(2)).toEqual(['two', 'three']);

    const last = (await runtime.tail(id, 1))[0]?.at ?? '';
    const seen: string[] = [];
    const following = (async () => {
      for await (const lines of runtime.follow(id, last, new AbortController().signal))
        seen.push(...lines.map(({ text }) => text));
    })();
    await test.print(id, 'four');
    await eventually('the fourth line', () => seen.includes('four'));
    await runtime.stop(id);
    await following;
    expect(seen).toEqual(['four']);
  });

  it('begins to follow with the newest lines', async () => {
    const { runtime } = test;
    const id = await create({ command: PRINTS_FILE });
    for (const line of ['one', 'two', 'three']) await test.print(id, line);
    await eventually('three lines', async () => (await runtime.tail(id, 10)).length === 3);
    const stop = new AbortController();
    const seen: string[] = [];
    const following = (async () => {
      for await (const lines of runtime.follow(id, '', stop.signal, 2)) seen.push(...lines.map(({ text }) => text));
    })();
    await eventually('the last line', () => seen.includes('three'));
    await test.print(id, 'four');
    await eventually('the line after it', () => seen.includes('four'));
    stop.abort();
    await runtime.stop(id);
    await following;
    expect(seen).toEqual(['two', 'three', 'four']);
  });

  it('ends following when it is told to', async () => {
    const id = await create({ command: PRINTS_FILE });
    await test.print(id, 'one');
    const stop = new AbortController();
    const following = (async () => {
      for await (const lines of test.runtime.follow(id, '', stop.signal)) if (lines.length > 0) stop.abort();
    })();
    await eventually('the end', async () => {
      await following;
      return true;
    });
  });

  it('says which port is taken, and uses another one', async () => {
    const { runtime, ports } = test;
    const id = await create();
    const workload = (await runtime.find(id)) as ExistingWorkload & { sshPort: number };
    const { sshPort } = workload;
    await runtime.stop(id);
    await runtime.checkPorts(workload);
    const giveBack = await test.takePort(sshPort);
    await expect(runtime.checkPorts(workload)).rejects.toMatchObject({
      code: 'PORT_TAKEN',
      message: expect.stringContaining(String(sshPort)) as string,
    });
    await giveBack();

    const all = [];
    for (let port = ports.first; port <= ports.last; port++) all.push(await test.takePort(port));
    const refused = randomUUID();
    await expect(runtime.create(refused, 1, specOf(test.image))).rejects.toMatchObject({
      code: 'NO_FREE_PORT',
      message: expect.stringContaining(`${ports.first}-${ports.last}`) as string,
    });
    expect(await runtime.find(refused)).toEqual({ state: 'absent' });
    for (const give of all) await give();
  });

  it('says why an image cannot be had', async () => {
    const signal = new AbortController().signal;
    const progress: string[] = [];
    const onProgress = (kind: string) => progress.push(kind);
    await expect(test.runtime.fetchImage(specOf('127.0.0.1:1/none:1'), onProgress, signal)).rejects.toMatchObject({
      code: 'IMAGE_UNAVAILABLE',
      message: expect.stringContaining('127.0.0.1:1/none:1') as string,
    });
    expect(progress).toContain('pulling');
    await test.runtime.fetchImage(specOf(test.image), onProgress, signal);
  });
}
