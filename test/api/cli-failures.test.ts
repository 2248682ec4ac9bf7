import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { certificateFor } from '../harness/certificate.js';
import { CommandLine, destroyAll, type RunOptions } from '../harness/command-line.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';

let test: TestControlPlane;
let agent: FakeAgent;
let renter: Renter;
let person: CommandLine;
let machine: string;
let server: Server | undefined;

beforeAll(async () => {
  test = await TestControlPlane.start();
  agent = await test.host({ gpus: 8 });
  machine = await test.offer(agent);
  await test.template({ name: 'PyTorch' });
});
afterAll(() => test.stop());
beforeEach(async () => {
  renter = await test.renter(5_000_000);
  person = new CommandLine({ GPURENT_URL: test.url, GPURENT_TOKEN: renter.api.token ?? '' }, () => test.clock.now());
});
afterEach(async () => {
  agent.automatic = true;
  for (const command of Array.from(agent.held)) agent.done(command);
  await destroyAll(renter);
  server?.close();
  server = undefined;
  person.remove();
});

const DEPLOY = 'deploy --gpus 1 --template PyTorch --no-ssh-key --yes';
const run = (line: string, options?: RunOptions) => person.run(line.split(' '), options);
const instances = async () => (await renter.api.get<{ items: { id: string; label: string }[] }>('/v1/instances')).items;

const reprice = (price_per_hour_micro: number) =>
  test.operator.request('PATCH', `/v1/operator/offers/${machine}`, { price_per_hour_micro });

/** A server that answers like a proxy before the control plane. */
async function serve(listener: RequestListener): Promise<string> {
  server = createServer(listener);
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const isDeploy = ({ method, url }: IncomingMessage) => method === 'POST' && url === '/v1/instances';

/** Sends a request on to the control plane, and hands over its answer. */
function passOn(request: IncomingMessage, answer: (status: number, text: string) => void): void {
  const { method = 'GET', url = '/', headers: all } = request;
  const headers = Object.fromEntries(Object.entries(all).filter(([name]) => /^(auth|idem|content-t)/.test(name)));
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = chunks.length > 0 ? { body: Buffer.concat(chunks).toString() } : {};
    void fetch(test.url + url, { method, headers: headers as Record<string, string>, ...body }).then(async (answered) =>
      answer(answered.status, await answered.text()),
    );
  });
}

describe('each class of failures has its exit code, the reason, and what to do', () => {
  it.each<[name: string, code: number, line: string, says: string, advises: string]>([
    ['an unknown option', 2, 'ls --nothing', 'unknown option', 'gpurent help'],
    ['a malformed duration', 2, 'deploy --for ever', '"ever" is not a duration', '90m'],
    ['a malformed amount', 2, 'deploy --max-cost 1.2345678', 'is not an amount', '0.25'],
    ['what the control plane finds malformed', 2, 'keys create x --address nowhere', 'allowed_addresses', ''],
    ['what is missing without a terminal', 2, 'deploy --gpus 1 --yes', 'which template?', '--template'],
    ['a price that nobody can confirm', 2, DEPLOY.replace(' --yes', ''), 'nobody can be asked', '--yes'],
    ['a context that is not there', 2, 'ls --context other', 'no context "other"', 'gpurent context'],
    ['a variable that is not set', 2, `${DEPLOY} --secret-env NOT_HERE`, 'no variable NOT_HERE', 'Set it'],
    ['nothing to resume', 2, 'deploy --resume', 'no deploy', 'gpurent ls'],
    [
      'nothing that can be rented',
      3,
      'deploy --gpu nonesuch --template PyTorch --yes',
      'nothing like this',
      'gpurent offers',
    ],
    ['no such instance', 4, 'show nonesuch', 'no instance "nonesuch"', 'gpurent ls'],
    ['no instance of this id', 4, `show ${randomUUID()}`, 'no instance of this', 'gpurent ls'],
    ['a command for operators', 4, 'machines', '', 'operator'],
    ['a disk that costs more than there is', 5, `${DEPLOY} --max-cost 0.01`, '', 'gpurent caps'],
  ])('%s: %i', async (_name, code, line, says, advises) => {
    const { code: got, stdout, stderr } = await run(line);
    expect({ got, stdout, stderr }).toMatchObject({ got: code, stdout: '' });
    expect(stderr).toContain(says);
    expect(stderr).toContain(advises);
  });

  it('a refusal of the control plane: 3', async () => {
    await run(`${DEPLOY} --label one --wait`);
    const { code, stderr } = await run('start one');
    expect({ code, stderr }).toMatchObject({ code: 3, stderr: expect.stringContaining('running') as string });
    expect(stderr).toContain('gpurent show');
    expect(await run('ssh one')).toMatchObject({ code: 0 });
  });

  it('no money: 5, and nothing was deployed', async () => {
    test.setBalance(renter.organizationId, 1);
    expect(await run(DEPLOY)).toMatchObject({ code: 5, stderr: expect.stringContaining('gpurent cost') as string });
    expect(await instances()).toEqual([]);
  });

  it('no credential, and one that has ended: 7, without the token in the words', async () => {
    const nobody = new CommandLine();
    expect(await nobody.run(['ls'])).toMatchObject({
      code: 7,
      stderr: expect.stringContaining('gpurent login') as string,
    });
    nobody.remove();
    const env = { GPURENT_TOKEN: 'svc_0123456789' };
    const { code, stderr } = await run('ls --explain', { env });
    expect(code).toBe(7);
    expect(stderr).not.toContain('svc_0123456789');
    const broken = await run('ls', { env: { GPURENT_TOKEN: 'svc_0123\u00e4456789' } });
    expect(broken.code).toBe(2);
    expect(broken.stderr).not.toContain('0123');
  });

  it('a control plane that is away, and what is none: 6', async () => {
    expect(await run('ls', { env: { GPURENT_URL: 'http://127.0.0.1:1' } })).toMatchObject({
      code: 6,
      stderr: expect.stringContaining('was not reached') as string,
    });
    const url = await serve((_request, response) => response.writeHead(404).end('<h1>nothing here</h1>'));
    expect(await run('ls', { env: { GPURENT_URL: url } })).toMatchObject({ code: 6 });
  });

  it('a price that has risen since it was shown: 3, and nothing is deployed', async () => {
    const url = await serve((request, response) =>
      passOn(request, (status, text) => {
        const answer = () => response.writeHead(status, { 'Content-Type': 'application/json' }).end(text);
        if (request.url === '/v1/instances/estimate') void reprice(1_000_001).then(answer);
        else answer();
      }),
    );
    const { code, stderr } = await run(DEPLOY, { env: { GPURENT_URL: url } });
    await reprice(1_000_000);
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('Its price has risen') as string });
    expect(await instances()).toEqual([]);
  });

  it('an instance that fails: 8, with its reason', async () => {
    agent.automatic = false;
    const { running, output } = person.begin([...DEPLOY.split(' '), '--wait']);
    const command = await eventually('the command', async () => agent.held[0]);
    agent.fail(command, 'IMAGE_PULL_FAILED', 'no such image');
    expect(await running).toBe(8);
    expect(output.stderr).toContain('provision_failed');
    expect(output.stderr).toContain('gpurent logs');
  });

  it('as JSON where asked for', async () => {
    const { stderr } = await run('show nonesuch --json');
    expect(JSON.parse(stderr)).toEqual({
      exit_code: 4,
      code: null,
      message: 'there is no instance "nonesuch"',
      advice: 'List them: gpurent ls',
      request_id: null,
    });
  });
});

it('a sign-in waits neither too briefly nor for ever, whatever the control plane says', async () => {
  const code = { device_code: 'd', user_code: 'BCDF-GHJK', verification_uri: 'https://x/device', interval: 0 };
  const answers = [
    { ...code },
    { code: 'SLOW_DOWN', message: '', request_id: 'r', interval: 1e9 },
    { code: 'EXPIRED_TOKEN', message: 'over', request_id: 'r' },
  ];
  const url = await serve((_request, response) => {
    const answer = answers.shift() ?? {};
    response.writeHead('code' in answer ? 400 : 201, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(answer));
  });
  const waits: number[] = [];
  expect(await run(`login ${url}`, { onWait: (ms) => void waits.push(ms) })).toMatchObject({ code: 7 });
  expect(waits).toEqual([1_000, 60_000]);
});

it('a label or a prefix that means two is refused with both', async () => {
  await run(`${DEPLOY} --label twin`);
  await run(`${DEPLOY} --label twin`);
  const all = await instances();
  expect(all).toHaveLength(2);
  const { code, stderr } = await run('destroy twin --yes');
  expect(code).toBe(2);
  for (const { id } of all) expect(stderr).toContain(id);
});

it('no sequence in a label, a message or an answer reaches the terminal', async () => {
  const label = 'a\u001b[2Jb\u0007\u202ec\u009b1m';
  await renter.api
    .post('/v1/instances', { offer_id: machine, template_id: await test.template({ name: 'x' }), disk_gb: 10, label })
    .catch(() => undefined);
  const url = await serve((request, response) => {
    const body = request.url?.includes('instances')
      ? { items: [{ id: randomUUID(), label, status: 'running', template: { name: label } }] }
      : { code: 'X', message: label, request_id: '' };
    response.writeHead(request.url?.includes('instances') ? 200 : 409, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(body));
  });
  const env = { GPURENT_URL: url };
  for (const line of ['ls', 'ls --json', 'cost', 'cost --json', 'api GET /v1/instances']) {
    const { stdout, stderr } = await run(line, { env });
    // oxlint-disable-next-line no-control-regex
    expect(`${stdout}${stderr}`).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    expect(`${stdout}${stderr}`).toMatch(/a.*b.*c/s);
  }
});

describe('Ctrl-C in the middle of a deploy', () => {
  it('before the answer: --resume, and the same command, deploy nothing twice', async () => {
    // The deploy arrives, and its answer never does.
    const url = await serve((request, response) =>
      passOn(request, (status, text) => {
        if (isDeploy(request) && isCut) return;
        response.writeHead(status, { 'Content-Type': 'application/json' }).end(text);
      }),
    );
    let isCut = true;
    const env = { GPURENT_URL: url };
    const interrupt = new AbortController();
    const line = `${DEPLOY} --label once --for 4h`;
    const cut = person.begin(line.split(' '), { env, interrupt });
    await eventually('the deploy to arrive', async () => (await instances()).length === 1);
    const folder = join(person.home, '.local/state/gpurent/deploys');
    expect(statSync(join(folder, readdirSync(folder)[0] ?? '')).mode & 0o777).toBe(0o600);
    interrupt.abort();
    expect(await cut.running).toBe(130);
    expect(cut.output.stderr).toContain('gpurent deploy --resume');
    isCut = false;
    test.clock.advance(1_000);
    // Another price makes no other deploy of it.
    await reprice(1_100_000);
    const again = await run(line, { env });
    await reprice(1_000_000);
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('going on with it') as string });
    expect(await instances()).toHaveLength(1);
    expect(readdirSync(folder)).toEqual([]);
    expect(await run(`${DEPLOY} --label once --for 4h`, { env })).toMatchObject({ code: 0 });
    expect(await instances()).toHaveLength(2);
  });

  it.each([
    [429, '{"code":"RATE_LIMITED","message":"later","request_id":"r"}', 6],
    [403, '<h1>Sign in to this network</h1>', 6],
  ])('an answer %i that says nothing of the deploy leaves it open', async (status, body, code) => {
    const url = await serve((request, response) => {
      if (isDeploy(request)) return void response.writeHead(status).end(body);
      passOn(request, (answer, text) => response.writeHead(answer, { 'Content-Type': 'application/json' }).end(text));
    });
    expect(await run(DEPLOY, { env: { GPURENT_URL: url } })).toMatchObject({ code });
    expect(readdirSync(join(person.home, '.local/state/gpurent/deploys'))).toHaveLength(1);
  });

  it('after it: the instance goes on, and the words say how to see it', async () => {
    agent.automatic = false;
    const interrupt = new AbortController();
    const { running, output } = person.begin([...DEPLOY.split(' '), '--wait', '--label', 'left'], { interrupt });
    await eventually('the command', async () => agent.held[0]);
    interrupt.abort();
    expect(await running).toBe(130);
    const [{ id } = { id: '' }] = await instances();
    expect(output.stderr).toContain('left is creating, and goes on without you');
    expect(output.stderr).toContain(`gpurent show ${id}`);
    expect(output.stderr).toContain(`gpurent destroy ${id}`);
  });
});

it('mends a file of contexts that others could read, and says so; refuses one that is none', async () => {
  const own = new CommandLine();
  await own.run(['login', test.url, '--with-token'], { input: renter.api.token ?? '' });
  const file = join(own.home, '.config/gpurent/contexts.json');
  chmodSync(file, 0o644);
  expect((await own.run(['ls'])).stderr).toContain('had the mode 644');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  writeFileSync(file, '{"version": 7}');
  expect(await own.run(['ls'])).toMatchObject({ code: 2, stderr: expect.stringContaining('contexts.json') as string });
  expect(readFileSync(file, 'utf8')).toBe('{"version": 7}');
  own.remove();
});

it('trusts an authority of a company that the system or --cacert names, and says what to do where nobody does', async () => {
  const { certificate, key } = await certificateFor('127.0.0.1');
  const answer: RequestListener = ({ method }, response) =>
    method === 'DELETE'
      ? response.writeHead(202, { 'content-type': 'application/json' }).end('null')
      : response.writeHead(200, { 'content-type': 'application/json' }).end('{"items":[]}');
  const secure = createTlsServer({ cert: certificate, key }, answer);
  server = secure;
  await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve));
  const GPURENT_URL = `https://127.0.0.1:${(secure.address() as AddressInfo).port}`;
  const file = join(person.home, 'company.pem');
  writeFileSync(file, certificate);
  const env = { GPURENT_URL, SSL_CERT_FILE: join(person.home, 'none.pem') };
  const ask = (line: string, more: Record<string, string> = {}) => run(line, { env: { ...env, ...more } });

  const unknown = await ask('api POST /v1/instances --data {}');
  expect(unknown).toMatchObject({
    code: 6,
    stderr: expect.stringMatching(/self-signed certificate.*--cacert FILE/s) as string,
  });
  for (const answered of [
    await ask(`api GET /v1/instances --cacert ${file}`),
    await ask('api GET /v1/instances', { GPURENT_CACERT: file }),
    await ask('api GET /v1/instances', { SSL_CERT_FILE: file }),
    await ask('api GET /v1/instances', { NODE_EXTRA_CA_CERTS: file }),
  ])
    expect(answered).toEqual({ code: 0, stdout: '{\n  "items": []\n}\n', stderr: '' });
  expect(await ask(`api DELETE /v1/instances/1 --cacert ${file}`)).toEqual({ code: 0, stdout: '', stderr: '' });
  const expired = await certificateFor('127.0.0.1', new Date(Date.now() - 1));
  secure.closeAllConnections();
  secure.setSecureContext({ cert: expired.certificate, key: expired.key });
  writeFileSync(file, expired.certificate);
  expect(await ask(`api GET /v1/instances --cacert ${file}`)).toMatchObject({
    code: 6,
    stderr: expect.stringMatching(/certificate has expired.*has to be renewed: tell its operator/s) as string,
  });
  writeFileSync(file, 'no certificate');
  expect(await ask(`api GET /v1/instances --cacert ${file}`)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`${file} cannot be used as a certificate`) as string,
  });
});

it('sends a token to no other control plane than its own, and not in plain text', async () => {
  const own = new CommandLine();
  await own.run(['login', test.url, '--with-token'], { input: renter.api.token ?? '' });
  const asked: unknown[] = [];
  const url = await serve((request, response) => {
    asked.push(request.headers.authorization);
    response.writeHead(500).end();
  });
  expect(await own.run(['ls'], { env: { GPURENT_URL: url } })).toMatchObject({ code: 7 });
  expect(await own.run(['login', 'http://gpus.example'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('plain text') as string,
  });
  expect(asked).toEqual([]);
  mkdirSync(join(own.home, 'empty'));
  own.remove();
});
