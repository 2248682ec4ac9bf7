import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { CommandLine, destroyAll, type RunOptions } from '../harness/command-line.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { makeKeyPair } from '../harness/keys.js';

const HOST_KEY = `ssh-ed25519 ${'A'.repeat(68)}`;

let test: TestControlPlane;
let agent: FakeAgent;
let renter: Renter;
let person: CommandLine;
let offer: string;
const { publicKey, privateKey } = makeKeyPair('-t', 'ed25519');

beforeAll(async () => {
  test = await TestControlPlane.start();
  agent = await test.host({ gpus: 8 });
  offer = await test.offer(agent);
  await test.template({ name: 'PyTorch', recommended: true });
});
afterAll(() => test.stop());
beforeEach(async () => {
  renter = await test.renter();
  const env = { GPURENT_URL: test.url, GPURENT_TOKEN: renter.api.token ?? '' };
  person = new CommandLine(env, () => test.clock.now());
});
afterEach(async () => {
  agent.automatic = true;
  await destroyAll(renter);
  person.remove();
});

/** Runs a command that succeeds, and returns what it prints. */
async function run(line: string, options?: RunOptions): Promise<string> {
  const { code, stdout, stderr } = await person.run(line.split(' '), options);
  expect({ line, code, stderr: code === 0 ? '' : stderr }).toEqual({ line, code: 0, stderr: '' });
  return stdout;
}

const json = async (line: string): Promise<Record<string, unknown>> =>
  JSON.parse(await run(`${line} --json`)) as Record<string, unknown>;

const deploy = async (more = ''): Promise<string> =>
  (await json(`deploy --gpu a --template PyTorch --no-ssh-key --yes --wait${more}`))['id'] as string;

/** The host says where the SSH server of an instance is, and its host key. */
async function hasSsh(id: string): Promise<void> {
  Object.assign(agent.workloads.get(id) ?? {}, { sshHostKey: HOST_KEY });
  agent.report(id);
  await eventually(
    'the host key',
    async () => (await renter.api.get<{ ssh_host_key: string }>(`/v1/instances/${id}`)).ssh_host_key,
  );
}

describe('a person signs in', () => {
  it('by a code that is approved in a browser, into a file of mode 600, and out again', async () => {
    const own = new CommandLine({}, () => test.clock.now());
    const { running, output } = own.begin(['login', test.url], { onWait: (ms) => test.clock.advance(ms) });
    const [, code = ''] = await eventually(
      'the code',
      async () => /type ([A-Z]{4}-[A-Z]{4})/.exec(output.stderr) ?? undefined,
    );
    const { id } = await renter.api.post<{ id: string }>('/v1/me/device-codes', { user_code: code });
    await renter.api.post(`/v1/me/device-codes/${id}/approve`);
    expect(await running).toBe(0);
    expect(output.stdout).toContain(`as ${renter.email}`);
    const file = join(own.home, '.config/gpurent/contexts.json');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(join(own.home, '.config/gpurent')).mode & 0o777).toBe(0o700);
    expect((await own.run(['ls'])).code).toBe(0);
    const { token } = (JSON.parse(readFileSync(file, 'utf8')) as { contexts: Record<string, { token: string }> })
      .contexts[new URL(test.url).host] ?? { token: '' };
    expect(await own.run(['logout'])).toMatchObject({ code: 0 });
    expect(readFileSync(file, 'utf8')).not.toContain(token);
    expect(await test.api.as(token).request('GET', '/v1/me')).toMatchObject({ status: 401 });
    expect(await own.run(['ls'])).toMatchObject({ code: 7 });
    own.remove();
  });

  it('with a key from standard input, in several contexts and organizations', async () => {
    const own = new CommandLine();
    const { secret } = await renter.api.post<{ secret: string }>('/v1/api-keys', { name: 'ci' });
    const begun = await own.run(['login', test.url, '--with-token', '--name', 'ci'], { input: `${secret}\n` });
    expect(begun).toMatchObject({ code: 0, stdout: expect.stringContaining('as an API key') as string });
    await own.run(['login', test.url, '--with-token'], { input: renter.api.token ?? '' });
    await renter.api.post('/v1/orgs', { name: 'second' });
    expect(await own.run(['context', 'org', 'second'])).toMatchObject({ code: 0 });
    expect((await own.run(['cost'])).stdout).toContain('second: balance $0.00');
    expect((await own.run(['cost', '--context', 'ci'])).stdout).toContain('balance $100.00');
    expect((await own.run(['context'])).stdout).toMatch(/^ +ci +.*API key/m);
    expect(await own.run(['context', 'use', 'ci'])).toMatchObject({ code: 0 });
    expect((await own.run(['context'])).stdout).toMatch(/^\* +ci/m);
    expect(await own.run(['context', 'remove', 'ci'])).toMatchObject({ code: 0 });
    expect(await own.run(['ls'])).toMatchObject({ code: 7 });
    own.remove();
  });
});

describe('a renter', () => {
  it('sees what can be rented and run, on any terminal', async () => {
    expect(await run('offers --gpus 1 --sort price_asc')).toMatch(/^ID .*MAINTENANCE\n[0-9a-f]{8} /);
    expect(await run('offers')).toMatch(/ CORES +RAM .* MACHINE CORES +MACHINE RAM .*\n.* 2 +8\.0 GiB .* 16 +64 GiB /);
    const narrow = (await run('offers', { columns: 40 })).split('\n');
    expect(Math.max(...narrow.map((line) => line.length))).toBeLessThanOrEqual(40);
    expect(narrow[0]).toMatch(/^ID .*\$\/HOUR/);
    expect(await json('offers --max-price 0.5')).toEqual({ items: [] });
    expect(await run('templates --tab recommended')).toContain('PyTorch');
    expect(await run('templates show PyTorch')).toContain('test:1');
  });

  it('adds SSH keys, and never a private one', async () => {
    writeFileSync(join(person.home, '.ssh/id_ed25519.pub'), publicKey);
    expect(await run('ssh-keys add --name laptop')).toContain('SHA256:');
    expect(await run('ssh-keys')).toContain('laptop');
    writeFileSync(join(person.home, '.ssh/id_ed25519'), privateKey);
    const refused = await person.run(['ssh-keys', 'add', join(person.home, '.ssh/id_ed25519')]);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('is a private key') as string });
    expect(await run('ssh-keys remove laptop')).toContain('removed');
  });

  it('logs in with the key that fits, or is told which one does and how to replace it', async () => {
    const file = join(person.home, '.ssh/work key');
    writeFileSync(`${file}.pub`, publicKey);
    writeFileSync(join(person.home, '.ssh/id_ed25519.pub'), makeKeyPair('-t', 'ed25519').publicKey);
    await person.run(['ssh-keys', 'add', `${file}.pub`, '--name', 'work']);
    await run('ssh-keys add --name other');
    const words = 'deploy --gpu a --template PyTorch --label box --ssh-key work --yes --wait';
    const { id, ssh_key_fingerprint: fingerprint } = (await json(words)) as Record<string, string>;
    await hasSsh(id ?? '');
    const refused = { program: async () => 255 };

    writeFileSync(file, privateKey);
    await run('ssh box');
    expect(person.programs.at(-1)?.join(' ')).toContain(` -i ${file} -o IdentitiesOnly=yes -p `);
    rmSync(file);
    const agent = { read: async (name: string) => (name === 'ssh-add' ? `ssh-rsa AAAA old\n${publicKey}` : '') };
    await run('cp box:/root/out .', agent);
    const kept = join(person.home, `.local/state/gpurent/keys/gpurent-${id}.pub`);
    expect(person.programs.at(-1)?.join(' ')).toContain(` -i ${kept} -o IdentitiesOnly=yes -P `);
    expect(publicKey).toContain(readFileSync(kept, 'utf8').trim());
    const configured = {
      read: async (name: string) =>
        name === 'ssh' ? `user root\nidentityfile ~/.ssh/id_ed25519.pub\n` : `256 ${fingerprint} c (ED25519)`,
    };
    await run('ssh box', configured);
    expect(person.programs.at(-1)?.join(' ')).toContain(` -i ${join(person.home, '.ssh/id_ed25519.pub')} -o Id`);
    await run('ssh box -i given');
    expect(person.programs.at(-1)?.join(' ')).not.toContain('IdentitiesOnly');

    const { code, stderr } = await person.run(['ssh', 'box'], refused);
    expect({ code, stderr }).toMatchObject({
      code: 8,
      stderr: expect.stringContaining(`${fingerprint} can log in`) as string,
    });
    expect(stderr).toContain(`gpurent access ${id} --ssh-key KEY`);
    for (const line of ['ssh box -- true', 'cp box:/root/out .']) {
      const shown = await person.run(line.split(' '), refused);
      expect(shown).toMatchObject({
        code: 255,
        stderr: expect.stringContaining(`${fingerprint} can log in`) as string,
      });
    }
    expect(await run('access box --ssh-key other')).toContain('is being replaced');
    writeFileSync(join(person.home, '.ssh/id_ed25519'), '');
    await eventually('the other key', async () => (await json('show box'))['ssh_key_fingerprint'] !== fingerprint);
    expect((await person.run(['ssh', 'box'], refused)).stderr).not.toContain('can log in');
  });

  it('deploys with limits, and reads the price before', async () => {
    writeFileSync(join(person.home, '.ssh/id_ed25519.pub'), publicKey);
    await run('ssh-keys add --name laptop');
    const line = `deploy --offer ${offer.slice(0, 8)} --template PyTorch --label trainer --for 4h --max-cost 5 --idle-stop 30m --on-limit destroy --env EPOCHS=10 --secret-env WANDB --yes --wait`;
    const { code, stdout, stderr } = await person.run([...line.split(' '), '--explain'], {
      env: { WANDB: 'a secret value' },
    });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toMatch(/^trainer is up in \d+ s\ngpurent ssh trainer\n$/);
    expect(stderr).toContain('PyTorch, 1 x Fake GPU, 2 CPU cores, 8.0 GiB memory on fake (test), 20 GB disk');
    expect(stderr).toContain('$1.00 an hour while it runs');
    expect(stderr).toMatch(/Balance \$100\.00: lasts 4 days 4 h/);
    expect(stderr).toContain('Destroyed when it has cost $5.00');
    expect(stderr).toMatch(
      /curl 'http.*\/v1\/instances' -H "Authorization: Bearer \$GPURENT_TOKEN" -H 'Idempotency-Key: /,
    );
    expect(stderr).not.toContain('a secret value');
    expect(stderr).not.toContain(renter.api.token);
    const instance = await json('show trainer');
    expect(instance).toMatchObject({ max_charge_micro: 5_000_000, idle_stop_minutes: 30, on_limit: 'destroy' });
    expect(Date.parse(instance['stop_at'] as string)).toBe(test.clock.now() + 4 * 3_600_000);
    expect(await run('limits trainer --for off --max-cost 7.5 --label other')).toContain('$7.50');
    expect(await json('show other')).toMatchObject({ stop_at: null });
    expect(await run('ls')).toMatch(/other +running/);
  });

  it('stops, starts, schedules and destroys it, by a prefix of its id', async () => {
    const id = await deploy();
    const short = id.slice(0, 8);
    expect(await run(`stop ${short} --wait`)).toBe(`${short} is stopped\n`);
    expect(await run(`start ${short} --wait`)).toBe(`${short} is running\n`);
    expect(
      await run(`schedule set ${short} --start mon-fri@08:00 --stop mon-fri@18:30 --time-zone Europe/Berlin`),
    ).toContain('start at 08:00');
    expect(await json(`schedule ${short}`)).toMatchObject({ time_zone: 'Europe/Berlin' });
    await run(`schedule remove ${short}`);
    expect(await run(`events ${short} --limit 5`)).toContain('instance.status_changed');
    expect(await run(`usage ${short}`)).toBe('');
    expect(await run(`destroy ${short} --yes --wait`)).toBe(`${short} is destroyed\n`);
    expect(await run('ls')).toBe('');
    expect(await run('ls --all')).toContain('destroyed');
    expect(await run('cost --by day')).toContain('balance $100.00');
  });

  it('follows its log and its events, and no sequence of it reaches the terminal', async () => {
    const id = await deploy();
    const interrupt = new AbortController();
    const log = person.begin(['logs', '-f', id], { interrupt, columns: 80 });
    const events = person.begin(['events', '-f', '--json'], { interrupt });
    await eventually('the host to be asked', async () => agent.subscriptions.size > 0);
    agent.print(id, 'one', '\u001b[31mred\u001b[2J\u001b]0;title\u0007\u0007', 'three\r');
    await eventually('the third line', async () => log.output.stdout.includes('three'));
    expect(log.output.stdout).toBe('one\n\u001b[31mred\u001b[0m\nthree\n\n');
    await renter.api.post(`/v1/instances/${id}/stop`);
    await eventually('an event', async () => events.output.stdout.includes('"stopped"'));
    // The log ends with the workload, the events at Ctrl-C.
    expect(await log.running).toBe(0);
    expect(log.output.stderr).toContain('(the instance is stopped)');
    interrupt.abort();
    expect(await events.running).toBe(0);
    expect(await run(`logs ${id}`)).toContain('red\n');
  });

  it('has its first connection verified: ssh, scp and the SSH configuration know the host key', async () => {
    const id = await deploy(' --label box');
    await hasSsh(id);
    await run('ssh box -- nvidia-smi -L');
    const [program, ...args] = person.programs[0] ?? [];
    const known = join(person.home, '.local/state/gpurent/known_hosts', `gpurent-${id}`);
    expect(program).toBe('ssh');
    expect(args).toContain(`HostKeyAlias=gpurent-${id}`);
    expect(args).toContain('StrictHostKeyChecking=yes');
    expect(args).toContain(`UserKnownHostsFile="${known}"`);
    expect(args.slice(args.indexOf('-p'))).toEqual([
      '-p',
      expect.stringMatching(/^4\d{4}$/),
      '-l',
      'root',
      '--',
      expect.any(String),
      'nvidia-smi',
      '-L',
    ]);
    expect(readFileSync(known, 'utf8')).toBe(`gpurent-${id} ${HOST_KEY}\n`);
    expect(await person.run(['ssh', 'box', '--', 'false'], { program: async () => 42 })).toMatchObject({
      code: 42,
      stderr: '',
    });
    await run('cp -r box:/root/out ./out');
    expect(person.programs.at(-1)?.slice(-3)).toEqual(['--', expect.stringMatching(/^root@.*:\/root\/out$/), './out']);
    expect(await run('ssh-config')).toMatch(
      new RegExp(`^Host gpurent-box\n  HostName .*\n  Port 4\\d{4}\n  User root\n  HostKeyAlias gpurent-${id}\n`),
    );
    await run('ssh-config --write');
    expect(statSync(join(person.home, '.config/gpurent/ssh_config')).mode & 0o777).toBe(0o600);
  });

  it('manages keys, caps, members and webhooks', async () => {
    const secret = (await run('keys create ci --read-only --expires 30d --cap-day 5')).trim();
    expect(secret).toMatch(/^svc_[0-9a-f]{48}$/);
    expect(await run('keys')).toMatch(/ci +svc_.*personal, read-only/);
    expect(await run('keys revoke ci')).toContain('revoked');
    expect(await run('caps set --day 20')).toContain('of $20.00');
    expect(await json('caps')).toMatchObject({ day_micro: 20_000_000, month_micro: null });
    expect(await run('team')).toContain(renter.email);
    await run('team invite new@example.com --role viewer');
    expect(await run('team invites')).toContain('new@example.com');
    expect(await run('team withdraw new@example.com')).toContain('withdrawn');
    expect((await run('webhooks create https://hooks.example.com/gpurent --types instance.idle')).trim()).toMatch(
      /^whsec_/,
    );
    expect(await run('webhooks')).toContain('instance.idle');
    expect((await run('webhooks rotate https://hooks.example.com/gpurent')).trim()).toMatch(/^whsec_/);
    await run('webhooks test https://hooks.example.com/gpurent');
    expect(await run('webhooks deliveries https://hooks.example.com/gpurent')).toContain('webhook.test');
    expect(await run('webhooks remove https://hooks.example.com/gpurent')).toContain('removed');
  });

  it('sends any request, and completes commands', async () => {
    expect(JSON.parse(await run('api GET /v1/orgs/current'))).toMatchObject({ id: renter.organizationId });
    const renamed = await person.run(['api', 'PATCH', '/v1/orgs/current', '--input', '-'], {
      input: '{"name": "renamed"}',
    });
    expect(JSON.parse(renamed.stdout)).toMatchObject({ name: 'renamed' });
    expect(await run('api GET /v1/billing/transactions.csv')).toContain('amount_micro');
    expect(await run('completion bash')).toContain("'gpurent offers create')");
  });
});
