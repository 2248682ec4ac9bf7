import { basename } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PullRefused } from '../../agent/domain/pull-failure.js';
import { eventually } from '../../scripts/eventually.js';
import { SAMPLE_IMAGE } from '../harness/docker.js';
import { atNight } from '../harness/at-night.js';
import { SystemdMachine, releaseTarball } from '../rig/systemd-machine.js';
import { giveRelease } from '../rig/host-release.js';
import { runInSandbox } from '../rig/unit-sandbox.js';

const PASSWORD = 'the password of an operator';
const SECRET = 'a-value-that-nobody-may-read-in-a-log';
const PATIENCE_MS = 180_000;
const HEADERS = '-H "Content-Type: application/json"';
const CONTROL_PLANE = 'gpurent-control-plane.service';
const AGENT = 'gpurent-agent.service';
const PROXY = 'gpurent-agent-proxy.service';
/** The address of the operator's registry, as docs/air-gap.md has it. */
const REGISTRY = '10.77.0.1';
/** Of the database, from before there was an instance. */
const BACKUP = '/var/lib/gpurent/before.db';

let machine: SystemdMachine;
let release: string;
let operator = '';
let session = '';
let token = '';
let instanceId = '';
let renterKey = '';
let wanted: Record<string, unknown> = {};
const secrets = [PASSWORD, SECRET];

beforeAll(async () => {
  machine = await SystemdMachine.boot();
  await machine.unpack(releaseTarball(), '/root/release');
  release = await machine.sh('echo /root/release/*');
  await machine.load(SAMPLE_IMAGE);
}, 3 * PATIENCE_MS);
afterAll(() => machine.remove());

async function api<T = Record<string, unknown>>(method: string, path: string, body?: object, as = session): Promise<T> {
  const auth = as === '' ? '' : `-H "Authorization: Bearer ${as}"`;
  const data = body === undefined ? '' : `-d '${JSON.stringify(body)}'`;
  const text = await machine.sh(`curl -sS -X ${method} ${HEADERS} ${auth} ${data} http://127.0.0.1:8080${path}`);
  return (text === '' ? {} : JSON.parse(text)) as T;
}

/** Returns the line that the console and `gpurent machines add` show for a new host. */
async function lineForHosts(): Promise<string> {
  const { install } = await api<{ install: { url: string; sha256: string } }>(
    'POST',
    '/v1/operator/enrollment-tokens',
    { max_uses: 1 },
    operator,
  );
  return `curl -fsSL ${install.url} | sh -s -- --sha256 ${install.sha256}`;
}

const status = async () => (await api<{ status: string }>('GET', `/v1/instances/${instanceId}`)).status;
const becomes = (wanted: string) => eventually(wanted, async () => (await status()) === wanted, PATIENCE_MS);
const container = () =>
  machine.sh(`docker inspect --format '{{.Id}} {{.State.StartedAt}} {{.State.Running}}' gpurent-${instanceId}`);
/** Both services are up, and the control plane has the host. */
const isUp = async () =>
  (await machine.attempt('gpurent-control-plane ready && gpurent-agent status')).ok &&
  (await api<{ items: { connected: boolean }[] }>('GET', '/v1/operator/machines', undefined, operator)).items.some(
    ({ connected }) => connected,
  );
const machineOf = async () =>
  (await api<{ items: { id: string }[] }>('GET', '/v1/operator/machines', undefined, operator)).items[0]?.id ?? '';
/** What an enrollment takes: a token for once, of a machine where one is named. */
const enrollment = async (machine_id?: string) => {
  const made = await api<{ token: string }>('POST', '/v1/operator/enrollment-tokens', { machine_id }, operator);
  secrets.push(made.token);
  return `--control-plane 127.0.0.1:8090 --token ${made.token}`;
};
const doctorSays = (what: RegExp) =>
  eventually(
    `the doctor to say ${what}`,
    async () => what.test((await machine.attempt('gpurent-agent doctor')).said),
    PATIENCE_MS,
  );
const overSsh = async (command: string) => {
  const { ssh_port: port } = await api<{ ssh_port: number }>('GET', `/v1/instances/${instanceId}`);
  const options = '-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -i /root/renter';
  return machine.sh(`ssh ${options} -p ${port} root@127.0.0.1 '${command}'`);
};

/** What the agent puts into every container, and what a login there needs. */
const hasItsTools = async () => {
  expect(await machine.sh(`docker exec gpurent-${instanceId} /.gpurent/bin/busybox echo here`)).toBe('here');
  expect(await overSsh('cat /root/mine')).toBe('kept');
};

/** What systemd thinks of how much a service could do. */
async function exposure(unit: string): Promise<number> {
  const report = await machine.sh(`systemd-analyze security --no-pager ${unit}`);
  const concerns = report.split('\n').filter((line) => line.startsWith('✗'));
  process.stdout.write(`${unit}\n${concerns.join('\n')}\n${report.split('\n').at(-1)}\n`);
  return Number(/Overall exposure level for .*: ([\d.]+)/.exec(report)?.[1]);
}

describe('a release, unpacked on a machine with Docker,', () => {
  it('is refused where nobody could install it', async () => {
    const asNobody = await machine.attempt(`runuser -u nobody -- ${release}/scripts/install-control-plane`);
    expect(asNobody).toMatchObject({ ok: false });
    expect(await machine.attempt(`${release}/scripts/install-control-plane --operater x`)).toEqual({
      ok: false,
      said: expect.stringContaining('usage: ') as string,
    });
    // The Node of this release is missing, and the one of the machine says of itself that it is another one.
    const other = `/root/other/${basename(release)}`;
    await machine.sh(`
      mkdir -p /root/other /opt/node-23 && cp -r ${release} /root/other/ && rm -r ${other}/node
      echo 'Object.defineProperty(process, "version", { value: "v23.1.0" })' >/opt/node-23/version.cjs
      printf '#!/bin/sh\nexec /opt/its-node/node --require /opt/node-23/version.cjs "$@"\n' >/opt/node-23/node
      chmod 755 /opt/node-23/node`);
    for (const program of ['install-control-plane', 'install-agent']) {
      const without = await machine.attempt(`${other}/scripts/${program}`);
      expect(without.said).toContain('this machine has no other');
      const { ok, said } = await machine.attempt(`PATH=/opt/node-23:$PATH ${other}/scripts/${program}`);
      expect([without.ok, ok]).toEqual([false, false]);
      expect(said).toContain('this is Node 23.1.0; install one of 20 (from 20.19)');
      expect(said).toContain("this machine's Node does not fit");
    }
    expect(await machine.sh('ls -d /opt/gpurent /etc/gpurent 2>/dev/null || true')).toBe('');
  });

  it('installs a control plane that can do little beside its work', async () => {
    await machine.sh(`echo '${PASSWORD}' | ${release}/scripts/install-control-plane --operator op@example.com`);
    await machine.sh('gpurent-control-plane ready');
    const credentials = { email: 'op@example.com', password: PASSWORD };
    operator = (await api<{ token: string }>('POST', '/v1/auth/sign-in', credentials)).token;
    session = operator;
    expect(await exposure(CONTROL_PLANE)).toBeLessThanOrEqual(2);
    for (const path of [
      '/var/lib/gpurent/gpurent.db',
      '/var/lib/gpurent/gpurent.db.key',
      '/etc/gpurent/control-plane.conf',
    ])
      expect(await machine.attempt(`runuser -u nobody -- cat ${path}`)).toMatchObject({ ok: false });
  });

  it('listens on every form of address that the settings take, by its unit', async () => {
    const forms = [
      ['127.0.0.1:0', '127.0.0.1:0'],
      ['0.0.0.0:8080', '[::]:8090'],
      ['[::]:8080', '[::1]:8090'],
      ['[::1]:8080', 'localhost:8090'],
      ['localhost:8080', '$(hostname):8090'],
      ['$(hostname):8080', '127.0.0.1:8090'],
      ['127.0.0.1:8080', '0.0.0.0:8090'],
    ];
    const tried = forms.map(([http, grpc]) => {
      const isChosen = http?.endsWith(':0') === true;
      return `
        sed -i "/^GPURENT_HTTP_ADDRESS=/d; s/^GPURENT_GRPC_ADDRESS=.*/GPURENT_GRPC_ADDRESS=${grpc}/" $conf
        echo "GPURENT_HTTP_ADDRESS=${http}" >>$conf
        systemctl restart ${CONTROL_PLANE} || { journalctl --output cat --lines 5 --unit ${CONTROL_PLANE} >&2; exit 1; }
        ${isChosen ? 'curl -sS "http://$(last)/readyz"' : 'gpurent-control-plane ready'}
        echo`;
    });
    const last = `journalctl --sync; journalctl --output cat _SYSTEMD_UNIT=${CONTROL_PLANE} | sed -n 's/^{"http":"\\([^"]*\\)".*/\\1/p' | tail -n 1`;
    const said = await machine.sh(
      `conf=/etc/gpurent/control-plane.conf; cp $conf /root/as-installed; last() { ${last}; }\n${tried.join('')}\ncat /root/as-installed >$conf`,
    );
    expect(said.match(/"status":/g)).toHaveLength(forms.length);
  });

  it('installs an agent that enrolls by TLS, after it has looked at its host', async () => {
    const install = `${release}/scripts/install-agent`;
    token = (await api<{ token: string }>('POST', '/v1/operator/enrollment-tokens', { max_uses: 1 })).token;
    expect((await machine.attempt(`${install} --gpus nvidia`)).said).toContain('not enrolled yet');
    expect((await machine.attempt(`systemctl restart ${AGENT}`)).ok).toBe(false);
    await machine.sh(
      `printf 'GPURENT_AGENT_PUBLIC_ADDRESS=127.0.0.1\\nGPURENT_AGENT_LOCAL_IMAGES=any\\nGPURENT_AGENT_EGRESS_ALLOW=${REGISTRY}/32\\n' >>/etc/gpurent/agent.conf`,
    );
    // The token is good for once, and is not shown before this host can be rented out.
    const enroll = `--control-plane 127.0.0.1:8090 --token ${token}`;
    expect((await machine.attempt(`gpurent-agent enroll ${enroll}`)).said).toContain('nvidia-smi');
    await giveRelease(machine);
    const line = await lineForHosts();
    expect(await machine.sh(`GPURENT_ENROLLMENT_TOKEN=${token} sh -c '${line} --dry-run' 2>&1`)).toContain(
      'makes this machine a GPU host of http://localhost:8080',
    );
    const stranger = await machine.attempt(`GPURENT_ENROLLMENT_TOKEN=enr_${'0'.repeat(48)} sh -c '${line}'`);
    expect(stranger).toMatchObject({ ok: false, said: expect.stringContaining('refuses the token') as string });
    await machine.sh(`GPURENT_ENROLLMENT_TOKEN=${token} sh -c '${line} -- --gpus simulated:2'`);
    expect(await machine.sh('which node || true')).toBe('');
    expect(await machine.sh('grep GPUS /etc/gpurent/agent.conf')).toBe('GPURENT_AGENT_GPUS=simulated:2');
    await eventually('the host', isUp, PATIENCE_MS);
    const identity = JSON.parse(await machine.sh('cat /var/lib/gpurent-agent/identity.json')) as {
      proof: { kind: string };
    };
    expect(identity.proof.kind).toBe('certificate');
    expect((await machine.attempt('curl -sS --max-time 5 http://127.0.0.1:8090/')).ok).toBe(false);
    expect(await exposure(AGENT)).toBeLessThanOrEqual(4.4);
    expect(await exposure(PROXY)).toBeLessThanOrEqual(2);
    // What is doubtful on a machine that was made for a test is neither.
    expect(await machine.sh('gpurent-agent doctor')).not.toMatch(/^BAD/m);
  });

  it('runs a workload on real Docker', async () => {
    const { items } = await api<{ items: { id: string }[] }>('GET', '/v1/operator/machines');
    const machineId = items[0]?.id ?? '';
    await api('PUT', `/v1/operator/machines/${machineId}/disk-quota-waiver`);
    const prices = { price_per_hour_micro: 1_000_000, storage_price_per_gb_hour_micro: 100 };
    const offer = await api<{ id: string }>('POST', '/v1/operator/offers', {
      machine_id: machineId,
      num_gpus: 1,
      ...prices,
    });
    const env = [{ key: 'PRIVATE', value: SECRET, secret: true }];
    const ports = [{ port: 8000, open_button: true, label: 'App' }];
    const fields = { name: 'Shell', image: SAMPLE_IMAGE, mode: ['ssh'], env, ports };
    const template = await api<{ id: string }>('POST', '/v1/operator/templates', fields);
    const account = { email: 'renter@example.com', password: 'the password of a renter', name: 'Renter' };
    const signedUp = await api<{ token: string; organization: { id: string } }>('POST', '/v1/auth/sign-up', account);
    const { organization } = signedUp;
    const credit = { amount_micro: 50_000_000, reason: 'test' };
    await api('POST', `/v1/operator/organizations/${organization.id}/credits`, credit);
    secrets.push(session, signedUp.token, account.password);
    session = signedUp.token;
    await machine.sh('ssh-keygen -q -t ed25519 -N "" -f /root/renter');
    renterKey = await machine.sh('cat /root/renter');
    const key = { name: 'key', public_key: await machine.sh('cat /root/renter.pub') };
    const { id: sshKeyId } = await api<{ id: string }>('POST', '/v1/ssh-keys', key);
    wanted = { offer_id: offer.id, template_id: template.id, disk_gb: 10, ssh_key_id: sshKeyId };
    await machine.sh(`gpurent-control-plane backup ${BACKUP}`);
    instanceId = (await api<{ id: string }>('POST', '/v1/instances', wanted)).id;
    await becomes('running');
    expect(await overSsh('echo kept > /root/mine; echo $PRIVATE')).toBe(SECRET);
  });

  it('tells the host key of its SSH server, which an account without rights has read', async () => {
    const read = () => api<{ ssh_port: number; ssh_host_key: string | null }>('GET', `/v1/instances/${instanceId}`);
    const key = await eventually('the host key', async () => (await read()).ssh_host_key ?? undefined, PATIENCE_MS);
    const scanned = await machine.sh(`ssh-keyscan -t ed25519 -p ${(await read()).ssh_port} 127.0.0.1 2>/dev/null`);
    expect(scanned.split(' ').slice(1).join(' ')).toBe(key);
  });

  it('is measured, by programs and files that the unit of the agent does not keep from it', async () => {
    const used = async () => {
      const usage = await api<Record<string, unknown[]>>('GET', `/v1/instances/${instanceId}/usage`);
      const lists = ['cpu_cores', 'memory_used_bytes', 'network_in_bytes', 'ssh_sessions', 'port_connections'];
      return lists.every((name) => usage[name]?.some((value) => value !== null));
    };
    await eventually('the measurements', used, PATIENCE_MS);
    const path = `/v1/operator/machines/${await machineOf()}/findings`;
    const read = async () => {
      const told = await api<{ findings: { check: string; what: string }[] }>('GET', path, undefined, operator);
      return told.findings.length > 0 && told.findings;
    };
    const found = await eventually('the findings', read, PATIENCE_MS);
    const of = (check: string) => found.filter((one) => one.check === check).map(({ what }) => what);
    expect(of('SSH host keys')).toEqual([expect.stringContaining('can be read')]);
    expect(of('clock')).toEqual([expect.not.stringContaining('unknown')]);
    expect(of('known vulnerabilities')).toContainEqual(expect.stringContaining('runc'));
  });

  it('has an agent whose unit lets it do what it does for GPUs and renters', async () => {
    const said = await runInSandbox(machine, AGENT, [
      'dmesg >/dev/null && echo kernel log',
      'iptables-save >/dev/null && ip6tables-save >/dev/null && echo packet rules',
      'setpriv --reuid 65534 --regid 65534 --clear-groups timeout --signal=KILL 10 id -u',
      `gpurent-agent carry-out find ${instanceId} | grep -o '"state":"running"'`,
      'cp /bin/true /usr/local/bin/planted 2>/dev/null || echo sealed',
    ]);
    expect(said).toEqual(['kernel log', 'packet rules', '65534', '"state":"running"', 'sealed']);
  });

  it('guards its ports in a process that is not root', async () => {
    await overSsh('/.gpurent/bin/busybox httpd -p 8000 -h /root');
    const link = () => api<{ open_url: string | null }>('GET', `/v1/instances/${instanceId}`);
    const url = await eventually('the link', async () => (await link()).open_url ?? undefined, PATIENCE_MS);
    const fetched = 'curl -sS --max-time 60 -o /dev/null -w "%{http_code}"';
    expect(await machine.sh(`${fetched} '${new URL('/mine', url).href}${new URL(url).search}'`)).toBe('200');
    expect(await machine.sh(`${fetched} '${new URL('/mine', url).href}'`)).toBe('401');
    const users = await machine.sh(
      "ps -eo user:32,args | awk '/agent\\/proxy\\/main.js/ && !/awk/ { print $1 }' | sort -u",
    );
    // Without systemd's module for names, its user shows as a number of those that systemd gives away.
    expect(users).toMatch(/^(gpurent-agent-proxy|6[1-5]\d{3})$/);
  });

  it('speaks to registries in a process that can do little beside', async () => {
    expect(await exposure('gpurent-agent-pull@0.service')).toBeLessThanOrEqual(2);
    const template = { name: 'Neighbour', image: '127.0.0.1:5000/team/app:1', mode: ['ssh'] };
    const { id } = await api<{ id: string }>('POST', '/v1/operator/templates', template, operator);
    const refused = await api<{ id: string }>('POST', '/v1/instances', { ...wanted, template_id: id });
    const reason = async () =>
      (await api<{ error_message: string | null }>('GET', `/v1/instances/${refused.id}`)).error_message ?? undefined;
    expect(await eventually('the refusal', reason, PATIENCE_MS)).toContain(
      new PullRefused('forbidden_address').message,
    );
    await api('DELETE', `/v1/instances/${refused.id}`);
    const relays = () => machine.sh("ps -eo args | grep -c '[p]ulls/main.js' || true");
    await eventually('the end of the relay', async () => (await relays()) === '0', PATIENCE_MS);
  });
});

it('without a route out, an instance runs from the image of a registry of the operator', async () => {
  expect(await machine.sh('ip route show default')).toBe('');
  const image = `${REGISTRY}:5000/team/app:1`;
  await machine.copy('/usr/bin/docker-registry', '/usr/local/bin');
  await machine.sh(`
    ip address add ${REGISTRY}/32 dev lo
    mkdir -p /root/registry /etc/docker/certs.d/${REGISTRY}:5000
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=registry -addext subjectAltName=IP:${REGISTRY} \
      -keyout /root/registry/key.pem -out /root/registry/ca.pem 2>/dev/null
    cp /root/registry/ca.pem /etc/docker/certs.d/${REGISTRY}:5000/ca.crt
    echo '{"version":0.1,"log":{"accesslog":{"disabled":true}},"storage":{"filesystem":{"rootdirectory":"/root/registry/data"}},"http":{"addr":"${REGISTRY}:5000","tls":{"certificate":"/root/registry/ca.pem","key":"/root/registry/key.pem"}}}' >/root/registry/config.yml
    systemd-run --quiet --unit registry docker-registry serve /root/registry/config.yml`);
  await eventually('the registry', async () => (await machine.attempt(`curl -sk https://${REGISTRY}:5000/v2/`)).ok);
  await machine.sh(`docker tag ${SAMPLE_IMAGE} ${image}; docker push --quiet ${image}; docker rmi ${image}`);
  const { id } = await api<{ id: string }>(
    'POST',
    '/v1/operator/templates',
    { name: 'Pulled', image, mode: ['ssh'] },
    operator,
  );
  const pulled = await api<{ id: string }>('POST', '/v1/instances', { ...wanted, template_id: id });
  const read = () => api<{ status: string; error_message: string | null }>('GET', `/v1/instances/${pulled.id}`);
  await eventually('its instance', async () => (await read()).status !== 'creating', PATIENCE_MS);
  expect(await read()).toMatchObject({ status: 'running', error_message: null });
  await api('DELETE', `/v1/instances/${pulled.id}`);
  await eventually('its end', async () => (await read()).status === 'destroyed', PATIENCE_MS);
});

describe('a workload is the same', () => {
  it('after both services were restarted, and killed', async () => {
    const before = await container();
    // Which waits for both, so they answer at once.
    await machine.sh(
      `systemctl restart ${CONTROL_PLANE} ${AGENT}; gpurent-control-plane ready && gpurent-agent status`,
    );
    await eventually('the host', isUp, PATIENCE_MS);
    await machine.sh(`systemctl kill --signal=KILL ${CONTROL_PLANE} ${AGENT}`);
    await eventually('the host again', isUp, PATIENCE_MS);
    expect(await container()).toBe(before);
    expect(await status()).toBe('running');
    expect(await overSsh('cat /root/mine')).toBe('kept');
  });

  it('after an upgrade of both, which keeps the settings', async () => {
    const before = await container();
    const settings = await machine.sh('cat /etc/gpurent/*.conf');
    await machine.sh(`cp -r ${release} /root/newer && echo '{"version":"9.9.9"}' >/root/newer/dist/build.json`);
    await machine.sh('/root/newer/scripts/install-control-plane && /root/newer/scripts/install-agent');
    expect(await machine.sh('gpurent-agent --version && gpurent-control-plane --version')).toBe('9.9.9\n9.9.9');
    await eventually('the host', isUp, PATIENCE_MS);
    expect(await machine.sh('cat /etc/gpurent/*.conf')).toBe(settings);
    expect(await container()).toBe(before);
    // And back again: installing is switching to a release, twice the same changes nothing.
    await machine.sh(
      `${release}/scripts/install-agent && ${release}/scripts/install-agent && ${release}/scripts/install-control-plane`,
    );
    await eventually('the host again', isUp, PATIENCE_MS);
    expect(await container()).toBe(before);
    expect(await status()).toBe('running');
    await hasItsTools();
  });

  it('after the machine was rebooted: brought back, on the same disk', async () => {
    const [id, startedAt] = (await container()).split(' ');
    await machine.reboot();
    await eventually('the workload', async () => (await container()).endsWith('true'), PATIENCE_MS);
    await eventually('the host', isUp, PATIENCE_MS);
    await becomes('running');
    const [sameId, laterStart] = (await container()).split(' ');
    expect(sameId).toBe(id);
    expect(laterStart).not.toBe(startedAt);
    expect(await eventually('its SSH', () => overSsh('cat /root/mine').catch(() => ''), PATIENCE_MS)).toBe('kept');
  });

  it('after the agent was uninstalled and installed again', async () => {
    const before = await container();
    const purged = await machine.attempt(`${release}/scripts/install-agent --uninstall --purge`);
    expect(purged).toEqual({ ok: false, said: expect.stringContaining('nothing was removed') as string });
    expect(await machine.sh(`ls /var/lib/gpurent-agent/identity.json && systemctl is-active ${AGENT}`)).toMatch(
      /active$/,
    );
    const { said } = await machine.attempt(`${release}/scripts/install-agent --uninstall`);
    expect(said).toContain('a workload of renters is still on this host');
    expect((await machine.attempt('gpurent-agent status')).ok).toBe(false);
    await hasItsTools();
    const mistyped = `echo GPURENT_AGENT_PROTS=1 >>/etc/gpurent/agent.conf; ${release}/scripts/install-agent`;
    const failed = await machine.attempt(mistyped);
    expect(failed).toEqual({ ok: false, said: expect.stringContaining('PROTS is not a setting') as string });
    // The installer asks before it installs anything.
    expect((await machine.attempt('gpurent-agent status')).ok).toBe(false);
    await machine.sh(`sed -i /PROTS/d /etc/gpurent/agent.conf; ${release}/scripts/install-agent`);
    await eventually('the host', isUp, PATIENCE_MS);
    expect(await container()).toBe(before);
  });
});

it('a stop takes no longer than what is under way', async () => {
  const took = await machine.sh(`
    exec 3<>/dev/tcp/127.0.0.1/8080 4<>/dev/tcp/127.0.0.1/8090
    systemctl stop ${CONTROL_PLANE}
    systemctl show --property Result,ExecMainStatus ${CONTROL_PLANE}
    # An agent is up whether or not it finds its control plane.
    systemctl restart ${AGENT}
    systemctl start ${CONTROL_PLANE}`);
  expect(took.split('\n').sort()).toEqual(['ExecMainStatus=0', 'Result=success']);
  await eventually('the host', isUp, PATIENCE_MS);
});

atNight(() => {
  describe('there is a way on', () => {
    it('where the folder of backups cannot be used: the alert is raised, and nobody is stopped', async () => {
      const overdue = "curl -sS http://127.0.0.1:8080/metrics | sed -n 's/^gpurent_backup_overdue_seconds //p'";
      const conf = '/etc/gpurent/control-plane.conf';
      const withFile = `sed -i.bak 's|^GPURENT_BACKUP_FOLDER=.*|GPURENT_BACKUP_FOLDER=/var/lib/gpurent/gpurent.db|' ${conf}`;
      expect(await machine.sh(`${withFile}; systemctl restart ${CONTROL_PLANE}; ${overdue}`)).toBe('+Inf');
      expect(await machine.sh(`mv ${conf}.bak ${conf}; systemctl restart ${CONTROL_PLANE}; ${overdue}`)).toBe('0');
      await eventually('the host', isUp, PATIENCE_MS);
    });

    it('where an older backup has never heard of a workload: it is adopted as it was, and reached at once', async () => {
      const before = await container();
      await machine.sh(
        `systemctl stop ${CONTROL_PLANE}; gpurent-control-plane restore ${BACKUP}; systemctl start ${CONTROL_PLANE}`,
      );
      await eventually('the host', isUp, PATIENCE_MS);
      const { items } = await api<{ items: { id: string }[] }>('GET', '/v1/operator/quarantine', undefined, operator);
      expect(items).toMatchObject([{ instance_id: instanceId, template_name: 'Shell' }]);
      await api('POST', `/v1/operator/quarantine/${items[0]?.id}/adopt`, {}, operator);
      expect(await status()).toBe('running');
      expect(await overSsh('cat /root/mine')).toBe('kept');
      expect(await container()).toBe(before);
    });

    it('where credentials were revoked: the host says so, and is the same machine again by a token of it', async () => {
      const [id, before] = [await machineOf(), await container()];
      await api('DELETE', `/v1/operator/machines/${id}/credentials`, undefined, operator);
      await doctorSays(/^BAD.*revoked/m);
      await machine.sh(`gpurent-agent enroll --again ${await enrollment(id)}; systemctl restart ${AGENT}`);
      await eventually('the host', isUp, PATIENCE_MS);
      expect(await machineOf()).toBe(id);
      expect(await container()).toBe(before);
    });

    it('where a machine was declared lost, and came back, and was removed: its host is a new one', async () => {
      const id = await machineOf();
      await machine.sh(`systemctl stop ${AGENT}`);
      await api('POST', `/v1/operator/machines/${id}/lost`, undefined, operator);
      await becomes('error');
      await machine.sh(`systemctl start ${AGENT}`);
      await eventually('the host', isUp, PATIENCE_MS);
      await api('DELETE', `/v1/operator/instances/${instanceId}`, undefined, operator);
      await becomes('destroyed');
      await api('DELETE', `/v1/operator/machines/${id}`, undefined, operator);
      await doctorSays(/^BAD.*removed[^]*enroll --new/m);
      await machine.sh(`${release}/scripts/install-agent --new ${await enrollment()}`);
      await eventually('the host', isUp, PATIENCE_MS);
      expect(await machineOf()).not.toBe(id);
    });
  });
});

it('no log has a secret', async () => {
  const journal = await machine.sh('journalctl --no-pager --output cat');
  expect(journal.includes('"host connected"')).toBe(true);
  const { proof } = JSON.parse(await machine.sh('cat /var/lib/gpurent-agent/identity.json')) as {
    proof: { key: string };
  };
  const keyLines = [proof.key, renterKey].flatMap((pem) =>
    pem.split('\n').filter((line) => /^[\w+/=]{40,}$/.test(line)),
  );
  const masterKey = await machine.sh('cat /var/lib/gpurent/gpurent.db.key');
  for (const secret of [...secrets, token, masterKey, ...keyLines]) expect(journal.includes(secret)).toBe(false);
});

it('what is uninstalled with all that it knew leaves nothing', async () => {
  await api('DELETE', `/v1/instances/${instanceId}`);
  await becomes('destroyed');
  // What a crash may leave: a network without a container.
  await machine.sh(
    'docker network create --label gpurent.host=any --opt com.docker.network.bridge.name=gprleft left-by-a-crash',
  );
  await machine.sh(`${release}/scripts/install-agent --uninstall --purge`);
  expect(await machine.sh('{ iptables-save; ip6tables-save; ip link; } | grep -iE "gpurent|gpr" || true')).toBe('');
  expect(await machine.sh('docker images --quiet "localhost/gpurent/*"; docker ps --all --quiet')).toBe('');
  // The control plane goes on with its release; the one that nobody uses any more is gone.
  expect(await machine.sh('cd /opt/gpurent && echo *')).toMatch(/^\d[\w.+-]* control-plane$/);
  await machine.sh('gpurent-control-plane ready');
  await machine.sh(`${release}/scripts/install-control-plane --uninstall --purge`);
  const left =
    'ls -d /opt/gpurent /etc/gpurent /var/lib/gpurent* /usr/local/bin/gpurent* /etc/systemd/system/gpurent* 2>/dev/null || true';
  expect(await machine.sh(left)).toBe('');
  expect(await machine.sh("systemctl list-units --all --plain --no-legend 'gpurent*'")).toBe('');
  expect((await machine.attempt('id gpurent')).ok).toBe(false);
});
