import { fileURLToPath } from 'node:url';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { randomBytes } from 'node:crypto';
import { connect, type Gpurent, type Instance } from '../client/api/index.js';
import { Daemon } from './daemon.js';
import { eventually } from './eventually.js';
import { messageOf } from '../shared/coded-error.js';

const run = promisify(execFile);
const dist = fileURLToPath(new URL('../', import.meta.url));
const controlPlaneScript = join(dist, 'bundle/control-plane.js');
const agentScript = join(dist, 'bundle/agent.js');

const { values: options } = parseArgs({
  options: {
    once: { type: 'boolean', default: false },
    gpus: { type: 'string', default: 'simulated:8' },
    'guest-tools': { type: 'string', default: '' },
    image: { type: 'string', default: '' },
  },
});
const { once, gpus, image, 'guest-tools': guestTools } = options;

const PATIENCE_MS = 120_000;
const RENTER = 'renter@localhost.test';
const OPERATOR = 'operator@localhost.test';
const HOUR_PRICE_MICRO = 1_200_000;
const GREETING = 'hello from your instance';

const folder = mkdtempSync(join(tmpdir(), 'gpurent-quickstart-'));
const daemons: Daemon[] = [];
const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => interrupted.abort(new Error('interrupted')));

async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
  interrupted.signal.throwIfAborted();
  const began = performance.now();
  const result = await work();
  console.log(`${name.padEnd(52)} ${((performance.now() - began) / 1000).toFixed(2).padStart(7)} s`);
  return result;
}

function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const lookWhileAllRun = () => {
    for (const daemon of daemons) daemon.requireRunning();
    return look();
  };
  return eventually(what, lookWhileAllRun, PATIENCE_MS).catch((error: unknown) => {
    const reason = error instanceof Error && error.cause !== undefined ? `: ${messageOf(error.cause)}` : '';
    throw new Error(`${messageOf(error)}${reason}; the logs are in ${folder}`, { cause: error });
  });
}

function untilInterrupted(): Promise<void> {
  return new Promise((resolve) => {
    interrupted.signal.addEventListener('abort', () => resolve(), { once: true });
    if (interrupted.signal.aborted) resolve();
  });
}

interface Stage {
  renter: Gpurent;
  operator: Gpurent;
  token: string;
  apiUrl: string;
  password: string;
  operatorPassword: string;
  keyFile: string;
}

async function startControlPlane(): Promise<{
  http: string;
  grpc: string;
  env: Record<string, string>;
  operatorPassword: string;
}> {
  const env = {
    GPURENT_HTTP_ADDRESS: once ? '127.0.0.1:0' : '127.0.0.1:8080',
    GPURENT_GRPC_ADDRESS: once ? '127.0.0.1:0' : '127.0.0.1:8090',
    GPURENT_DATABASE: join(folder, 'gpurent.db'),
    GPURENT_SECRET_KEY_FILE: join(folder, 'secret.key'),
  };
  const operatorPassword = randomBytes(12).toString('hex');
  execFileSync(process.execPath, [controlPlaneScript, 'create-operator', '--email', OPERATOR], {
    env: { ...process.env, ...env },
    input: operatorPassword,
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  const daemon = Daemon.start(
    'the control plane',
    controlPlaneScript,
    ['serve'],
    env,
    join(folder, 'control-plane.log'),
    true,
  );
  daemons.push(daemon);
  return { ...(await daemon.firstLine<{ http: string; grpc: string }>()), env, operatorPassword };
}

async function startAgent(grpc: string, token: string): Promise<string> {
  const env = {
    GPURENT_AGENT_STATE_DIR: join(folder, 'agent'),
    GPURENT_AGENT_GUEST_TOOLS: guestTools,
    GPURENT_AGENT_PUBLIC_ADDRESS: '127.0.0.1',
    GPURENT_AGENT_BIND_ADDRESS: '127.0.0.1',
    GPURENT_AGENT_GPUS: gpus,
  };
  const enroll = [agentScript, 'enroll', '--control-plane', grpc, '--token', token];
  const enrolled = await run(process.execPath, enroll, { env: { ...process.env, ...env } }).catch((error: unknown) => {
    throw new Error((error as { stderr?: string }).stderr?.trim() || 'the agent did not enroll', { cause: error });
  });
  daemons.push(Daemon.start('the agent', agentScript, ['run'], env, join(folder, 'agent.log'), true));
  return (JSON.parse(enrolled.stdout) as { host_id: string }).host_id;
}

async function prepare(): Promise<Stage & { offerId: string; templateId: string; sshKeyId: string }> {
  const { http, grpc, operatorPassword } = await step('control plane up', startControlPlane);
  const url = `http://${http}`;
  const anybody = connect({ url });
  const operatorAccount = { email: OPERATOR, password: operatorPassword };
  const operator = connect({ url, token: (await anybody.post('/v1/auth/sign-in', { body: operatorAccount })).token });
  const machineId = await step(`agent enrolled and connected (${gpus})`, async () => {
    const { token } = await operator.post('/v1/operator/enrollment-tokens', { body: {} });
    const id = await startAgent(grpc, token);
    await until('the agent to connect', async () => {
      const { connected } = await operator.get('/v1/operator/machines/{id}', { params: { path: { id } } });
      return connected || undefined;
    });
    // An ordinary file system cannot limit each renter's disk to its size, so the quickstart waives that.
    await operator.put('/v1/operator/machines/{id}/disk-quota-waiver', { params: { path: { id } } });
    return id;
  });
  return step('account, credit, offer, template and SSH key', async () => {
    const password = randomBytes(12).toString('hex');
    const signedUp = await anybody.post('/v1/auth/sign-up', {
      body: { email: RENTER, password, name: 'Renter' },
    });
    if (!('token' in signedUp)) throw new Error('this control plane mails links, and asks for them at a sign-up');
    const { token, organization } = signedUp;
    const renter = connect({ url, token });
    await operator.post('/v1/operator/organizations/{id}/credits', {
      params: { path: { id: organization?.id ?? '' } },
      body: { amount_micro: 10_000_000, reason: 'quickstart' },
    });
    const offer = await operator.post('/v1/operator/offers', {
      body: {
        machine_id: machineId,
        num_gpus: 1,
        price_per_hour_micro: HOUR_PRICE_MICRO,
        storage_price_per_gb_hour_micro: 100,
      },
    });
    const template = await operator.post('/v1/operator/templates', {
      body: {
        name: 'Sample',
        description: 'A static shell; prints the time to its log',
        image,
        command: ['sh', '-c', `echo "${GREETING}"; while :; do date; sleep 10; done`],
      },
    });
    const keyFile = join(folder, 'id_ed25519');
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'quickstart', '-f', keyFile]);
    const key = await renter.post('/v1/ssh-keys', {
      body: { name: 'quickstart', public_key: readFileSync(`${keyFile}.pub`, 'utf8') },
    });
    return {
      renter,
      operator,
      token,
      // Another name than that of the instances, which browsers would show the cookie of a session there.
      apiUrl: `http://${http.replace('127.0.0.1', 'localhost')}`,
      password,
      operatorPassword,
      keyFile,
      offerId: offer.id,
      templateId: template.id,
      sshKeyId: key.id,
    };
  });
}

function statusIs(renter: Gpurent, id: string, wanted: string): Promise<Instance> {
  return until(`the instance to be ${wanted}`, async () => {
    const instance = await renter.get('/v1/instances/{id}', { params: { path: { id } } });
    if (instance.status === 'error') throw new Error(`the instance failed: ${instance.error_message}`);
    return instance.status === wanted ? instance : undefined;
  });
}

function sshArguments(keyFile: string, instance: Instance): string[] {
  const quiet = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR', 'IdentitiesOnly=yes'];
  const target = `${instance.ssh_user}@${instance.ssh_host}`;
  return [...quiet.flatMap((option) => ['-o', option]), '-i', keyFile, '-p', String(instance.ssh_port), target];
}

async function ssh(keyFile: string, instance: Instance, command: string): Promise<string> {
  return (await run('ssh', [...sshArguments(keyFile, instance), command], { timeout: 30_000 })).stdout.trim();
}

async function tour({ renter, keyFile }: Stage, id: string): Promise<void> {
  const running = await renter.get('/v1/instances/{id}', { params: { path: { id } } });
  await step('SSH in, write a file', () => ssh(keyFile, running, 'echo kept > /root/file'));
  await step('read the log', () =>
    until('the greeting in the log', async () => {
      const { lines } = await renter.get('/v1/instances/{id}/logs', { params: { path: { id } } });
      return lines.includes(GREETING) || undefined;
    }),
  );
  await step('stop', async () => {
    await renter.post('/v1/instances/{id}/stop', { params: { path: { id } } });
    await statusIs(renter, id, 'stopped');
  });
  const again = await step('start again', async () => {
    await renter.post('/v1/instances/{id}/start', { params: { path: { id } } });
    return statusIs(renter, id, 'running');
  });
  await step('SSH in, the file is still there', async () => {
    const found = await ssh(keyFile, again, 'cat /root/file');
    if (found !== 'kept') throw new Error(`the file holds "${found}"`);
  });
}

/** Destroys all instances of an account, also those that were deployed in the console: nothing of them may stay in Docker. */
async function destroyAll(account: Gpurent): Promise<void> {
  const listed = async () => (await account.get('/v1/instances')).items;
  for (const { id } of await listed()) await account.delete('/v1/instances/{id}', { params: { path: { id } } });
  await until('the instances to be destroyed', async () => ((await listed()).length === 0 ? true : undefined));
}

/** Prints how a browser signs in. The links are made last: they work for ten minutes. */
async function printConsole({ renter, operator, apiUrl, password, operatorPassword }: Stage): Promise<void> {
  const linkOf = async (account: Gpurent) =>
    `${apiUrl}/sign-in/link#${(await account.post('/v1/auth/sign-in-link')).token}`;
  console.log('Console (each link once, within 10 minutes; a browser is signed in as one of them at a time):');
  console.log(`  renter    ${await linkOf(renter)}`);
  console.log(`  operator  ${await linkOf(operator)}`);
  console.log(`Sign in:    ${apiUrl}/sign-in`);
  console.log(`  renter    ${RENTER} with the password ${password}`);
  console.log(`  operator  ${OPERATOR} with the password ${operatorPassword}`);
  console.log(`API:        ${apiUrl}/v1`);
}

async function main(): Promise<void> {
  const stage = await prepare();
  const { renter, operator } = stage;
  const { offerId: offer_id, templateId: template_id, sshKeyId: ssh_key_id } = stage;
  try {
    const instance = await step('instance deployed and running', async () => {
      const body = { offer_id, template_id, ssh_key_id, disk_gb: 10 };
      const { id } = await renter.post('/v1/instances', { body });
      return statusIs(renter, id, 'running');
    });
    if (once) {
      await tour(stage, instance.id);
    } else {
      console.log(`\nReach it:   ssh ${sshArguments(stage.keyFile, instance).join(' ')}`);
      await printConsole(stage);
      console.log(
        `Its state:  curl -H 'Authorization: Bearer ${stage.token}' ${stage.apiUrl}/v1/instances/${instance.id}`,
      );
      console.log(`Logs:       ${folder}\nCtrl-C stops everything.`);
      await Promise.race([untilInterrupted(), ...daemons.map((daemon) => daemon.untilEnded())]);
    }
  } finally {
    const began = performance.now();
    for (const account of [renter, operator]) await destroyAll(account);
    console.log(`${'destroy'.padEnd(52)} ${((performance.now() - began) / 1000).toFixed(2).padStart(7)} s`);
  }
}

let failed = false;
try {
  await main();
} catch (error) {
  if (!interrupted.signal.aborted) {
    failed = true;
    console.error(`quickstart: ${error instanceof Error ? error.message : String(error)}`);
  }
} finally {
  for (const daemon of daemons.reverse()) await daemon.stop();
  if (!failed) rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failed ? 1 : 0;
