import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { messageOf } from '../shared/coded-error.js';
import { ApiError, connect, type Gpurent } from '../client/api/index.js';
import { eventually } from './eventually.js';

const FOLDER = '.local/dev';
const HTTP = '127.0.0.1:8080';
/** Another name than that of the instances, which browsers would show the cookie of a session there. */
const SHOWN = 'http://localhost:8080';
/** Where Vite serves the sources of the console: console/vite.config.js. */
const CONSOLE = 'http://localhost:8081';
const GRPC = '127.0.0.1:8090';
const CREDIT_MICRO = 100_000_000;
const GPUS = 8;
const PATIENCE_MS = 60_000;

interface Account {
  email: string;
  password: string;
}
interface Accounts {
  operator: Account;
  renter: Account;
}

const { values: options } = parseArgs({
  options: {
    'fake-hosts': { type: 'string' },
    'guest-tools': { type: 'string', default: '' },
    image: { type: 'string', default: '' },
  },
});
const path = (name: string) => join(FOLDER, name);
const env = {
  ...process.env,
  GPURENT_HTTP_ADDRESS: HTTP,
  GPURENT_GRPC_ADDRESS: GRPC,
  GPURENT_DATABASE: path('gpurent.db'),
  GPURENT_LOG_FORMAT: 'text',
  GPURENT_AGENT_STATE_DIR: path('agent'),
  GPURENT_AGENT_GUEST_TOOLS: options['guest-tools'],
  GPURENT_AGENT_PUBLIC_ADDRESS: '127.0.0.1',
  GPURENT_AGENT_BIND_ADDRESS: '127.0.0.1',
  GPURENT_AGENT_GPUS: `simulated:${GPUS}`,
};
const url = `http://${HTTP}`;
const anybody = connect({ url });
const children: ChildProcess[] = [];
const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupted.abort());

/** Runs a compiled program, and restarts it when a file that it has loaded changes. */
function watch(script: string, ...args: string[]): void {
  children.push(
    spawn(process.execPath, ['--watch', script, ...args], {
      env,
      stdio: 'inherit',
      detached: true,
    }),
  );
}

/** Compiles sources when they change. */
function compile(): void {
  const args = ['node_modules/typescript-native/bin/tsc', '-b', '--watch', '--preserveWatchOutput'];
  children.push(spawn(process.execPath, args, { stdio: 'inherit', detached: true }));
}

/** Serves the console from its sources, and shows each change at once. */
function serveConsole(): void {
  const args = ['node_modules/vite/bin/vite.js', '--logLevel', 'warn', 'console'];
  children.push(spawn(process.execPath, args, { env, stdio: 'inherit', detached: true }));
}

function accounts(): Accounts {
  const file = path('accounts.json');
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Accounts;
  const account = (name: string) => ({ email: `${name}@localhost.test`, password: randomBytes(12).toString('hex') });
  const made = { operator: account('operator'), renter: account('renter') };
  writeFileSync(file, JSON.stringify(made, null, 2), { mode: 0o600 });
  const args = ['dist/control-plane/main.js', 'create-operator', '--email', made.operator.email];
  execFileSync(process.execPath, args, { env, input: made.operator.password, stdio: ['pipe', 'ignore', 'inherit'] });
  return made;
}

async function signIn(account: Account): Promise<string> {
  return (await anybody.post('/v1/auth/sign-in', { body: account })).token;
}

/** Signs the renter in. Creates the account, with credit, if it does not exist. Returns the token of the session. */
async function renterOf(account: Account, operator: Gpurent): Promise<string> {
  try {
    const signedUp = await anybody.post('/v1/auth/sign-up', { body: { ...account, name: 'Renter' } });
    if (!('token' in signedUp)) throw new Error('this control plane mails links, and asks for them at a sign-up');
    const { token, organization } = signedUp;
    await operator.post('/v1/operator/organizations/{id}/credits', {
      params: { path: { id: organization?.id ?? '' } },
      body: { amount_micro: CREDIT_MICRO, reason: 'for trying out' },
    });
    return token;
  } catch (error) {
    if (error instanceof ApiError && error.is('EMAIL_TAKEN')) return signIn(account);
    throw error;
  }
}

async function startHosts(operator: Gpurent): Promise<void> {
  const token = async (max_uses: number) =>
    (await operator.post('/v1/operator/enrollment-tokens', { body: { max_uses } })).token;
  const count = options['fake-hosts'];
  if (count !== undefined) {
    const fake = ['--control-plane', GRPC, '--hosts', count, '--gpus', String(GPUS), '--state', path('hosts.json')];
    watch('dist/test/harness/fake-hosts.js', ...fake, '--token', await token(Number(count)));
    return;
  }
  if (!existsSync(path('agent/identity.json'))) {
    const enroll = ['enroll', '--control-plane', GRPC, '--token', await token(1)];
    execFileSync(process.execPath, ['dist/agent/main.js', ...enroll], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  }
  watch('dist/agent/main.js', 'run');
}

/** Creates an offer for each machine without one, and a template if there is none. */
async function openMarket(operator: Gpurent): Promise<void> {
  const machines = await eventually(
    'a host to connect',
    async () => {
      const { items } = await operator.get('/v1/operator/machines');
      return items.some(({ connected }) => connected) && items;
    },
    PATIENCE_MS,
  );
  const { items: offers } = await operator.get('/v1/operator/offers');
  for (const { id } of machines.filter(({ id }) => !offers.some(({ machine }) => machine.id === id))) {
    await operator.put('/v1/operator/machines/{id}/disk-quota-waiver', { params: { path: { id } } });
    const prices = { price_per_hour_micro: 1_200_000, storage_price_per_gb_hour_micro: 100 };
    await operator.post('/v1/operator/offers', { body: { machine_id: id, num_gpus: 1, ...prices } });
  }
  const { items: templates } = await operator.get('/v1/templates');
  if (templates.length === 0) {
    const command = ['sh', '-c', 'while :; do date; sleep 10; done'];
    const body = { name: 'Sample', image: options.image, command, mode: ['ssh' as const] };
    await operator.post('/v1/operator/templates', { body });
  }
}

async function main(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true, mode: 0o700 });
  const { operator: operatorAccount, renter: renterAccount } = accounts();
  compile();
  watch('dist/control-plane/main.js', 'serve');
  const impatient = connect({ url, attempts: 1 });
  const isReady = () =>
    impatient.get('/readyz').then(
      () => true,
      () => false,
    );
  await eventually('the control plane', isReady, PATIENCE_MS);
  const operatorToken = await signIn(operatorAccount);
  const operator = connect({ url, token: operatorToken });
  const renterToken = await renterOf(renterAccount, operator);
  await startHosts(operator);
  await openMarket(operator);
  serveConsole();
  process.stdout.write(
    `\nConsole:   ${CONSOLE}, from its sources; as it was built: ${SHOWN}\n` +
      `API:       ${SHOWN}/v1, described at ${SHOWN}/docs\n` +
      `Sign in:   ${SHOWN}/sign-in, with an account in ${path('accounts.json')}\n` +
      `operator:  ${operatorToken}\nrenter:    ${renterToken}\n` +
      `Try:       curl -H 'Authorization: Bearer ${renterToken}' ${SHOWN}/v1/offers\n\n`,
  );
  if (!interrupted.signal.aborted) await once(interrupted.signal, 'abort');
}

try {
  await main();
} catch (error) {
  process.stderr.write(`dev: ${messageOf(error)}\n`);
  process.exitCode = 1;
} finally {
  for (const child of children.reverse()) {
    const ended = once(child, 'exit');
    if (child.exitCode === null && child.kill()) await ended;
  }
}
