import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { inlineOf } from '../harness/guide-blocks.js';
import { GuideWalk, Reader } from '../rig/guide-walk.js';
import { SERVICES_IMAGE, SystemdMachine } from '../rig/systemd-machine.js';
import { GuideMarket } from './guide-market.js';
import { AT_NIGHT } from './guide-plan.js';

const PATIENCE_MS = 180_000;
const DAY_TWO = 'docs/day-two.md';
const NAME = 'gpurent.example.com';
const CERTIFICATES = `/etc/letsencrypt/live/${NAME}`;
/** Whoever comes from elsewhere: a network of its own, by a cable to the machine. */
const VISITOR = '203.0.113.10';
const MACHINE = '203.0.113.1';
const AS_VISITOR = 'ip netns exec visitor';

let machine: SystemdMachine;
let market: GuideMarket;
const walk = new GuideWalk();

beforeAll(async () => {
  machine = await SystemdMachine.boot(SERVICES_IMAGE);
  market = await GuideMarket.on(machine, walk, `https://${NAME}`);
  await plugVisitorIn();
}, 3 * PATIENCE_MS);
afterAll(() => machine.remove());

// Each step stands on the ones before it.
let hasFailed = false;
beforeEach(({ skip }) => skip(hasFailed));
afterEach(({ task }) => void (hasFailed ||= task.result?.state === 'fail'));

const plugVisitorIn = () =>
  machine.sh(`
    mkdir -p /etc/netns/visitor
    echo ${MACHINE} ${NAME} >/etc/netns/visitor/hosts
    ip netns add visitor
    ip link add to-visitor type veth peer name eth0 netns visitor
    ip address add ${MACHINE}/24 dev to-visitor
    ip link set to-visitor up
    ip -n visitor address add ${VISITOR}/24 dev eth0
    ip -n visitor link set eth0 up`);

const statusOf = (url: string, options = '') =>
  machine.sh(`${AS_VISITOR} curl -sS --max-time 20 -o /dev/null -w '%{http_code}' ${options} '${url}'`);

/** What is promised of any proxy before the API. */
async function isServed(): Promise<void> {
  const at = `https://${NAME}`;
  await eventually('an answer', async () => (await statusOf(`${at}/healthz`).catch(() => '')) === '200', PATIENCE_MS);
  expect(await statusOf(`http://${NAME}/healthz`)).toMatch(/^30[18]$/);
  for (const path of ['/metrics', '//metrics', '/metrics/', '/%6detrics', '/metrics?x=1', '/./metrics', '/METRICS'])
    expect([path, await statusOf(`${at}${path}`, '--path-as-is')]).toEqual([path, '404']);
  expect(await machine.sh(`${AS_VISITOR} curl -sS --head ${at}/healthz`)).toMatch(
    /strict-transport-security: max-age=31536000/i,
  );
}

/** Whose a request is that says it were somebody else's, by the log of the control plane. */
async function addressOfForger(): Promise<unknown> {
  const forged = ['X-Forwarded-For: 198.51.100.7', 'Forwarded: for=198.51.100.7', 'X-Real-IP: 198.51.100.7'];
  const headers = [...forged, 'Content-Type: application/json'].map((header) => `-H '${header}'`).join(' ');
  const body = `-d '{"email": "nobody@example.com", "password": "a wrong password"}'`;
  const answer = JSON.parse(
    await machine.sh(`${AS_VISITOR} curl -sS ${headers} ${body} https://${NAME}/v1/auth/sign-in`),
  ) as { request_id: string };
  const lines = await machine.sh(
    `journalctl --sync; journalctl --output cat -u gpurent-control-plane | grep '${answer.request_id}'`,
  );
  expect(lines).not.toContain('198.51.100.7');
  return (JSON.parse(lines.split('\n').at(-1) ?? '') as { address?: unknown }).address;
}

/** Which of some ports a visitor is let in at: whether or not anybody listens there. */
async function letIn(...ports: number[]): Promise<number[]> {
  const tries = ports.map(
    (port) =>
      `{ said=$(timeout 2 ${AS_VISITOR} bash -c 'exec 3<>/dev/tcp/${MACHINE}/${port}' 2>&1) || status=$?
         case "\${status:-0} $said" in '0 '* | *'Connection refused'*) echo ${port} ;; esac; } &`,
  );
  const said = await machine.sh(`${tries.join('\n')}\nwait`);
  return said
    .split('\n')
    .filter(Boolean)
    .map(Number)
    .sort((one, other) => one - other);
}
const PORTS = [22, 25, 80, 443, 2375, 8080, 8090, 9090, 9464, 19999, 20500, 20999, 21000, 32768];

/** The agent's own packet rules, without their counters. */
const agentRules = () =>
  machine.sh('{ iptables-save; ip6tables-save; } | grep -iE "gpurent|gpr" | sed "s/\\[[0-9:]*\\]//"');

/** An instance is reached by its renter from elsewhere, and the agent's rules are the ones that it has set up. */
async function rentersAreServed(id: string, rules: string): Promise<void> {
  expect(rules).not.toBe('');
  expect(await agentRules()).toBe(rules);
  const { ssh_port: port } = JSON.parse(await market.see(id)) as { ssh_port: number };
  const ssh = `ssh -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no -o ConnectTimeout=10 -i /home/renter/.ssh/id_ed25519`;
  expect(await machine.sh(`${AS_VISITOR} ${ssh} -p ${port} root@${MACHINE} 'echo reached' 2>/dev/null`)).toBe(
    'reached',
  );
}

describe('README.md', () => {
  it('installs a control plane and a host', async () => {
    const block = walk.open(new Reader(machine, 'reader', market.usual), 'README.md: Use it');
    // The release of this run, made by the same script.
    await machine.sh('cd; mkdir release; ln *.tar.gz release');
    await block.upTo('tar -xzf', { 'npm run release ': 'true ' });
    await block.upTo('install-control-plane');
    await market.signIn();
    await block.rest({ 'enr_...': `${await market.token({})} --gpus simulated:2` });
    await market.rentLocalImages();
    await market.isConnected();
  });
});

describe('a proxy', () => {
  it('nginx, through which a renter rents', async () => {
    await machine.sh(`
      mkdir -p ${CERTIFICATES} && cd ${CERTIFICATES}
      openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=${NAME} \\
        -addext subjectAltName=DNS:${NAME} -keyout privkey.pem -out fullchain.pem 2>/dev/null
      chgrp caddy privkey.pem && chmod 640 privkey.pem
      cp fullchain.pem /usr/local/share/ca-certificates/letsencrypt-of-the-test.crt && update-ca-certificates >/dev/null 2>&1
      systemctl start nginx`);
    await walk.follow(market.operator, 'day-two.md: A proxy before the API');
    await isServed();
    for (const where of ['healthz', 'metrics']) {
      const said = inlineOf(DAY_TWO, `curl -s https://${NAME}/${where}`);
      expect((await machine.attempt(`${AS_VISITOR} ${said} | grep -q ok`)).ok).toBe(where === 'healthz');
    }
    expect(await addressOfForger()).toBe(VISITOR);
    const renting = await market.signUp();
    await market.offer();
    await market.rent(renting);
    await machine.sh('systemctl stop nginx');
  });

  it('Caddy', async () => {
    await machine.sh('systemctl enable --now --quiet caddy');
    await walk.follow(market.operator, 'day-two.md: A proxy before the API (2)', {
      // No Let's Encrypt is reached from here.
      [`${NAME} {`]: `${NAME} {\n  tls ${CERTIFICATES}/fullchain.pem ${CERTIFICATES}/privkey.pem`,
    });
    await isServed();
    expect(await addressOfForger()).toBe(VISITOR);
  });
});

describe('a firewall', () => {
  let id = '';
  let rules = '';

  it('is not there at first', async () => {
    id = await market.deploy();
    rules = await agentRules();
    expect(await letIn(...PORTS)).toEqual(PORTS);
  });

  it('ufw, on the control plane', async () => {
    await walk.follow(market.operator, 'day-two.md: Firewalls');
    expect(await letIn(...PORTS)).toEqual([22, 80, 443, 8090]);
    await machine.sh('ufw --force reset >/dev/null');
  });

  it('ufw, on a host', async () => {
    await walk.follow(market.owner, 'day-two.md: Firewalls (2)');
    expect(await letIn(...PORTS)).toEqual([22, 20500, 20999]);
    await rentersAreServed(id, rules);
    await machine.sh('ufw --force reset >/dev/null');
    await rentersAreServed(id, rules);
  });

  it('nftables, on the control plane and on a host', async () => {
    const block = walk.commandOf('day-two.md: Firewalls (3)', 'cat >/etc/nftables');
    const load = walk.commandOf('day-two.md: Firewalls (3)', 'nft -f');
    const ofControlPlane = inlineOf(DAY_TWO, 'tcp dport { 80, 443, 8090 } accept');
    await market.operator.paste(block, { 'tcp dport 20000-20999 accept': ofControlPlane });
    await market.operator.paste(load);
    expect(await letIn(...PORTS)).toEqual([22, 80, 443, 8090]);
    await walk.follow(market.owner, 'day-two.md: Firewalls (3)');
    expect(await letIn(...PORTS)).toEqual([22, 20500, 20999]);
    await rentersAreServed(id, rules);
  });

  it('nftables is loaded at every boot, beside the rules of Docker and the agent', async () => {
    const include = inlineOf(DAY_TWO, 'include "/etc/nftables.d-gpurent.nft"');
    await machine.sh(`sed -i '/^flush ruleset/d' /etc/nftables.conf; echo '${include}' >>/etc/nftables.conf`);
    await machine.sh(inlineOf(DAY_TWO, 'systemctl enable nftables'));
    await machine.reboot();
    await machine.sh(`echo 127.0.0.1 ${NAME} >>/etc/hosts`);
    await plugVisitorIn();
    await market.isConnected();
    await eventually('the same rules', async () => (await agentRules()) === rules, PATIENCE_MS);
    expect(await letIn(...PORTS)).toEqual([22, 20500, 20999]);
    await market.becomes('running', () => market.see(id));
    await rentersAreServed(id, rules);
    await machine.sh('nft delete table inet gpurent_host');
  });
});

describe('Prometheus', () => {
  it('scrapes both programs, and takes the rules', async () => {
    // The end of the tunnel of the guide, for the host is this machine.
    await machine.sh(
      'echo GPURENT_AGENT_METRICS_ADDRESS=127.0.0.1:19464 >>/etc/gpurent/agent.conf; systemctl restart gpurent-agent; systemctl start prometheus',
    );
    await walk.follow(market.operator, 'day-two.md: Prometheus and Grafana');
    const ask = async (path: string) =>
      (JSON.parse(await machine.sh(`curl -sS --fail http://127.0.0.1:9090/api/v1/${path}`)) as { data: unknown }).data;
    const targets = async () => {
      const { activeTargets } = (await ask('targets')) as { activeTargets: { health: string; scrapePool: string }[] };
      const up = activeTargets.filter(({ health }) => health === 'up').map(({ scrapePool }) => scrapePool);
      return up.length === 2 && up;
    };
    expect((await eventually('both targets', targets, PATIENCE_MS)).sort()).toEqual([
      'gpurent-agent',
      'gpurent-control-plane',
    ]);
    const { groups } = (await ask('rules')) as { groups: { rules: { health: string }[] }[] };
    const health = groups.flatMap(({ rules }) => rules.map((rule) => rule.health));
    expect(health.length).toBeGreaterThan(5);
    expect(health).not.toContain('err');
  });
});

it('every block of the plan was pasted to its end', () =>
  expect([...walk.walked].sort()).toEqual([...AT_NIGHT].sort()));
