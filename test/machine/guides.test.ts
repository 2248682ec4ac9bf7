import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { inlineOf } from '../harness/guide-blocks.js';
import { GuideWalk } from '../rig/guide-walk.js';
import { SystemdMachine } from '../rig/systemd-machine.js';
import { GuideMarket, RELEASE_NAME } from './guide-market.js';
import { BY_DAY } from './guide-plan.js';

const PATIENCE_MS = 180_000;
const DAY_TWO = 'docs/day-two.md';
const KEY = '/var/lib/gpurent/gpurent.db.key';
const CONF = '/etc/gpurent/control-plane.conf';
const MAKE_FOLDER = 'install -d -o gpurent -g gpurent -m 700 /backups/gpurent';

let machine: SystemdMachine;
let market: GuideMarket;
const walk = new GuideWalk();
/** What the renter has running. */
let instanceId = '';
/** A copy of the database that the daemon has made before that was deployed. */
let copy = '';

beforeAll(async () => {
  machine = await SystemdMachine.boot();
  market = await GuideMarket.on(machine, walk, 'http://gpurent.example.com:8080');
}, 3 * PATIENCE_MS);
afterAll(() => machine.remove());

// Each step stands on the ones before it.
let hasFailed = false;
beforeEach(({ skip }) => skip(hasFailed));
afterEach(({ task }) => void (hasFailed ||= task.result?.state === 'fail'));

/** Written before a block of the guide that restarts the control plane. */
const set = (...settings: string[]) => machine.sh(`printf '%s\\n' ${settings.join(' ')} >>${CONF}`);
const status = async (id: string) => (JSON.parse(await market.see(id)) as { status: string }).status;

const containers = async () =>
  (await machine.sh('docker ps --all --quiet --filter label=gpurent.instance')).split('\n').filter(Boolean).length;

describe('the guides install', () => {
  it('a control plane, and a host', async () => {
    await walk.follow(market.operator, 'operator.md: Install');
    await market.install();
    await market.isConnected();
  });

  it('a market, on which an instance is rented, reached, stopped, started and destroyed', async () => {
    const renting = await market.signUp();
    await market.offer();
    const [offer] = await market.list<{ price_per_hour_micro: number }>('/v1/operator/offers');
    expect(offer?.price_per_hour_micro).toBe(1_200_000);
    await market.rent(renting);
  });
});

describe('day-two.md', () => {
  it('lets the service write to another folder', async () => {
    await machine.sh(`cp ${CONF} /root/as-installed`);
    await market.operator.paste(inlineOf('docs/operator.md', MAKE_FOLDER));
    await set('GPURENT_BACKUP_FOLDER=/backups/gpurent', 'GPURENT_SIGN_UP=invitation');
    await walk.follow(market.operator, 'day-two.md: Drop-ins without an editor');
    const made = async () => (await machine.sh('ls /backups/gpurent')).split('\n').find((file) => file.endsWith('.db'));
    copy = `/backups/gpurent/${await eventually('a copy', made, PATIENCE_MS)}`;
  });

  it('invites the admin of an organization of a customer', async () => {
    const block = walk.open(market.operator, 'operator.md: Who rents');
    const { id } = JSON.parse(await block.upTo('/v1/orgs ')) as { id: string };
    const its = { ORGANIZATION: id };
    const { token } = JSON.parse(await block.upTo('/invites', its)) as { token: string };
    const customer = { '"password": "..."': '"password": "a password of theirs"', '"name": "..."': '"name": "Ada"' };
    await block.upTo('/sign-up', { ...customer, 'inv_...': token });
    await block.rest(its);
    const users = await market.list<{ email: string; role: string }>(`/v1/operator/organizations/${id}/users`);
    expect(users).toMatchObject([{ email: 'admin@example.com', role: 'admin' }]);
  });

  it('lets the service listen on a port below 1024', async () => {
    await set('GPURENT_HTTP_ADDRESS=0.0.0.0:443', 'GPURENT_TLS_NAMES=gpurent.example.com');
    await walk.follow(market.operator, 'day-two.md: Drop-ins without an editor (2)');
    await market.operator.paste('gpurent-control-plane authority >/root/authority.pem');
    await machine.sh('curl --fail -sS --cacert /root/authority.pem https://gpurent.example.com/healthz');
    expect(await machine.sh(inlineOf(DAY_TWO, 'systemctl cat gpurent-control-plane'))).toContain('NET_BIND_SERVICE');
    await machine.sh(inlineOf(DAY_TWO, 'systemctl revert gpurent-control-plane'));
    expect(await machine.sh('systemctl cat gpurent-control-plane')).not.toContain('NET_BIND_SERVICE');
    await machine.sh(`cat /root/as-installed >${CONF}; systemctl restart gpurent-control-plane`);
    await market.isConnected();
  });
});

describe('operator.md, on the command line and with curl,', () => {
  it('changes prices, for what is deployed from then on', async () => {
    instanceId = await market.deploy();
    const offers = () => market.list<{ id: string }>('/v1/operator/offers');
    const [one, other] = (await offers()).map(({ id }) => id);
    if (one === undefined || other === undefined) throw new Error('there are not two offers');
    const dearer = { price_per_hour_micro: 1_500_000 };
    await market.operate('gpurent offers reprice OFFER --price 1.50 --storage-price 0.00015', { OFFER: one });
    const changed = (await offers()).find(({ id }) => id === one);
    expect(changed).toMatchObject({ ...dearer, storage_price_per_gb_hour_micro: 150 });
    const patch = `api PATCH /v1/operator/offers/OFFER '{"price_per_hour_micro": 1500000}'`;
    expect(JSON.parse(await market.operate(patch, { OFFER: other }))).toMatchObject(dearer);
    expect(JSON.parse(await market.see(instanceId))).toMatchObject({ price_per_hour_micro: 1_200_000 });
    await market.operate('gpurent offers withdraw OFFER', { OFFER: `--yes ${one}` });
    await market.operate('api DELETE /v1/operator/offers/OFFER', { OFFER: other });
    expect(await market.renter.paste('api /v1/offers')).toContain('"items":[]');
    expect(await status(instanceId)).toBe('running');
    await market.offerAgain();
  });

  it('suspends a renter, and restores them', async () => {
    const ORGANIZATION = market.organization;
    const suspend = 'gpurent suspend ORGANIZATION --reason "it sends spam" --keep-disks-days 14';
    await market.operate(suspend, { ORGANIZATION: `--yes ${ORGANIZATION}` });
    await market.becomes('stopped', () => market.see(instanceId));
    await market.operate('gpurent restore ORGANIZATION --reason "the stolen key was revoked"', { ORGANIZATION });
    await market.start(instanceId);
  });

  it('freezes a renter, and lets them go on', async () => {
    const its = { '/ID/': `/${market.organization}/` };
    await market.operate('api POST /v1/operator/organizations/ID/dispute', its);
    await expect(market.deploy()).rejects.toThrow(/"code":/);
    expect(await status(instanceId)).toBe('running');
    await market.operate('api DELETE /v1/operator/organizations/ID/dispute', its);
  });
});

describe('operator.md, where something went wrong,', () => {
  it('restores an older copy: what it has never heard of is in quarantine, adopted or removed', async () => {
    const [kept, removed] = [instanceId, await market.deploy()];
    const written = '/var/lib/gpurent/backups/gpurent-2026-01-31T03-00-00-000Z.db';
    // Sign-up was by invitation when it was made.
    await walk.follow(market.operator, 'operator.md: Backups', { [written]: `--accept-settings ${copy}` });
    await market.isConnected();
    const found = await market.list<{ id: string; instance_id: string }>('/v1/operator/quarantine');
    const entryOf = (id: string) => found.find((each) => each.instance_id === id)?.id ?? '';
    await market.operate('gpurent quarantine adopt WORKLOAD', { WORKLOAD: entryOf(kept) });
    await market.operate('api POST /v1/operator/quarantine/ID/remove', { '/ID/': `/${entryOf(removed)}/` });
    expect(await status(kept)).toBe('running');
    await eventually('its removal', async () => (await containers()) === 1, PATIENCE_MS);
  });

  it('goes on on a new machine, with the copy and the key', async () => {
    await walk.follow(market.operator, 'day-two.md: What to keep copies of');
    await machine.sh(
      `cd; mkdir new && cd new && ln ../*.tar.gz . && cp ${KEY} THE-KEY && cd ../gpurent-copies &&
      cp gpurent-*.db ../new/THE-COPY && cp settings-*.tar.gz ../new/THE-SETTINGS`,
    );
    expect(await machine.sh('tar -tzf /root/gpurent-copies/settings-*.tar.gz')).toContain(
      'etc/gpurent/control-plane.conf',
    );
    const installer = inlineOf('docs/operator.md', 'scripts/install-control-plane --uninstall');
    const purged = await market.operator.paste(`{ ${RELEASE_NAME}/${installer} --purge; } 2>&1; cd new`);
    expect(purged).toContain('/root/gpurent-copies');
    await walk.follow(market.operator, 'operator.md: Install');
    await walk.follow(market.operator, 'operator.md: Backups (2)');
    await market.isConnected();
    expect(await status(instanceId)).toBe('running');
  });

  it('exchanges the key', async () => {
    const before = await machine.sh(`cat ${KEY}`);
    await walk.follow(market.operator, 'operator.md: The secret key');
    expect(await machine.sh(`cat ${KEY}`)).not.toBe(before);
    expect(await machine.sh(`cat ${KEY}.before-*`)).toBe(before);
    await market.isConnected();
  });

  it('goes on without the key, once hosts have enrolled again', async () => {
    await machine.sh(`systemctl stop gpurent-control-plane; rm ${KEY}*`);
    await walk.follow(market.operator, 'day-two.md: The key is lost');
    expect(await market.renter.paste(`api /v1/instances/${instanceId}/events`)).toContain('secrets_lost');
    expect((await market.machine()).connected).toBe(false);
    await expect(market.deploy()).rejects.toThrow(/is empty/);
    await market.enrolAgain('--again', { machine_id: (await market.machine()).id });
    expect(await status(instanceId)).toBe('running');
    expect(await market.overSsh(instanceId, 'echo here')).toBe('here');
    await market.destroy(await market.deploy());
  });
});

describe('a host leaves', () => {
  const emptying = 'operator.md: A machine that leaves';

  it('cordoned, emptied and deleted', async () => {
    const MACHINE = (await market.machine()).id;
    const block = walk.open(market.operator, `${emptying} (2)`);
    expect(JSON.parse(await block.upTo('/cordon', { '/ID': `/${MACHINE}` }))).toMatchObject({ cordoned: true });
    expect(await block.upTo('GET', { '=ID': `=${MACHINE}` })).toContain(instanceId);
    await block.upTo('INSTANCE', { INSTANCE: instanceId });
    await market.becomes('destroyed', () => market.see(instanceId));
    await block.rest({ '/ID': `/${MACHINE}` });
    expect(await market.list('/v1/operator/machines')).toEqual([]);
  });

  it('comes back as a new one, and removes what an earlier one has left', async () => {
    await market.enrolAgain('--new', {});
    await market.offerAgain();
    instanceId = await market.deploy();
    const MACHINE = (await market.machine()).id;
    const block = walk.open(market.operator, emptying);
    expect(await block.upTo('machines show', { MACHINE })).toContain(instanceId);
    await machine.sh('systemctl stop gpurent-agent');
    await market.operate('api POST /v1/operator/machines/ID/lost', { '/ID/': `/${MACHINE}/` });
    await block.upTo('INSTANCE', { INSTANCE: instanceId });
    await block.rest({ MACHINE: `--yes ${MACHINE}` });
    await machine.sh('systemctl start gpurent-agent');
    expect(await market.enrolAgain('--new', {})).toContain(instanceId);
    expect((await machine.attempt('gpurent-agent doctor')).said).toContain(MACHINE);
    await walk.follow(market.owner, 'day-two.md: Workloads left on a host', { MACHINE });
    expect(await containers()).toBe(0);
    expect(await machine.sh(`docker network ls --quiet --filter label=gpurent.host=${MACHINE}`)).toBe('');
    expect((await machine.attempt('gpurent-agent doctor')).said).toContain('ok   left workloads');
  });

  it('and is cleaned', async () => {
    const uninstall = inlineOf('docs/host-owner.md', 'scripts/install-agent --uninstall --purge');
    await market.owner.paste(`${RELEASE_NAME}/${uninstall}`);
    expect(await machine.sh('{ iptables-save; ip link; } | grep -iE "gpurent|gpr" || true')).toBe('');
    expect(await machine.sh('ls -d /var/lib/gpurent-agent /etc/gpurent/agent.conf 2>/dev/null || true')).toBe('');
  });
});

it('every block of the plan was pasted to its end', () => expect([...walk.walked].sort()).toEqual([...BY_DAY].sort()));
