import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { createSecureContext } from 'node:tls';
import { promisify } from 'node:util';
import { messageOf } from '../../shared/coded-error.js';
import { fromFiles } from '../../shared/server-identity.js';
import type { AgentConfig } from '../config.js';
import { BRIDGE_PREFIX } from '../domain/egress.js';
import { networkOf, overlap } from '../domain/subnets.js';
import { requireGuestTools } from '../host/guest-tools.js';
import { publicAddressOf } from '../host/inventory.js';
import { EgressGuard } from '../host/network/egress-guard.js';
import { bad, doubtful, good, type Check } from './finding.js';

const run = promisify(execFile);

/** What of the machine itself has to be right. */
export function hostChecks(config: AgentConfig): Check[] {
  return [
    { name: 'user', look: async () => [checkUser()] },
    { name: 'guest tools', look: async () => [checkTools(config)] },
    { name: 'ports', look: async () => [await checkPorts(config)] },
    { name: 'guarded ports', look: async () => [await checkLinks(config)] },
    { name: 'networks', look: async () => [checkNetworks(config)] },
    { name: 'egress guard', look: async () => [await checkGuard(config)] },
    { name: 'images made here', look: async () => [checkLocalImages(config)] },
    { name: 'clock', look: async () => [await checkClock()] },
  ];
}

function checkUser() {
  return process.getuid?.() === 0 ? good('root') : bad('not root', 'run this, and the agent, as root');
}

function checkTools({ guestTools }: AgentConfig) {
  try {
    requireGuestTools(guestTools);
    return good(guestTools);
  } catch (error) {
    return bad(messageOf(error), 'without them nobody reaches a container');
  }
}

/** The kernel hands out ports of its own for outgoing connections: an instance's port must not be among them. */
async function checkPorts({ ports: { first, last } }: AgentConfig) {
  const read = async (name: string) => (await readFile(`/proc/sys/net/ipv4/${name}`, 'utf8')).trim();
  const [low = 0, high = 0] = (await read('ip_local_port_range')).split(/\s+/).map(Number);
  if (last < low || first > high) return good(`${first}-${last}`);
  const reserved = (await read('ip_local_reserved_ports')).split(',').map((part) => part.split('-').map(Number));
  const covers = reserved.some(
    ([from = Infinity, to = from]) => from <= Math.max(first, low) && to >= Math.min(last, high),
  );
  return covers
    ? good(`${first}-${last}, reserved`)
    : doubtful(
        `${first}-${last} overlaps the kernel's own ${low}-${high}, which may take one away`,
        `sysctl -w net.ipv4.ip_local_reserved_ports=${first}-${last}, and the same in /etc/sysctl.d`,
      );
}

/** Access tokens go through these ports. */
async function checkLinks(config: AgentConfig) {
  const { tls } = config;
  if (!tls)
    return doubtful(
      'speak plain HTTP, and access tokens go through them',
      'get a certificate for the name of this host, and set GPURENT_AGENT_TLS_CERTIFICATE_FILE and _KEY_FILE',
    );
  try {
    const shown = await fromFiles(tls)();
    createSecureContext({ cert: shown.certificate, key: shown.key });
    const certificate = new X509Certificate(shown.certificate);
    const home = await publicAddressOf(config);
    const address = config.namePerInstance ? `any.${home}` : home;
    if (Date.parse(certificate.validTo) < Date.now())
      return bad(`their certificate has ended on ${certificate.validTo}`, 'renew it; the agent reads it every hour');
    return (isIP(address) === 0 ? certificate.checkHost(address) : certificate.checkIP(address))
      ? good(`speak TLS, by a certificate that ends on ${certificate.validTo}`)
      : bad(
          `their certificate is not for ${address}`,
          'set GPURENT_AGENT_PUBLIC_ADDRESS to the name that it is for; with GPURENT_AGENT_NAME_PER_INSTANCE it has to be for every name below that',
        );
  } catch (error) {
    return bad(messageOf(error), 'the agent does not start with this certificate');
  }
}

/** An instance's network must hide none that the host is in. */
function checkNetworks({ subnet }: AgentConfig) {
  const others = Object.entries(networkInterfaces()).filter(([name]) => !name.startsWith(BRIDGE_PREFIX));
  const clash = others.find(([, addresses]) =>
    addresses?.some(({ cidr }) => {
      const network = networkOf(cidr ?? '');
      return network && overlap(network, subnet);
    }),
  );
  return clash === undefined
    ? good('instances have their own')
    : bad(`${clash[0]} is in the network of which instances get theirs`, 'set GPURENT_AGENT_SUBNET to another one');
}

function checkLocalImages({ localImages }: AgentConfig) {
  if (localImages !== 'any')
    return good(localImages.length === 0 ? 'are not rented out' : `rented out: ${localImages.join(', ')}`);
  return doubtful(
    'whoever knows the name of an image that was made on this host may rent it',
    'set GPURENT_AGENT_LOCAL_IMAGES to none, or to the names of those that are for renters',
  );
}

async function checkGuard({ egress }: AgentConfig) {
  if (!egress) return doubtful('is off', 'see that something else keeps renters away from this host and its networks');
  const guard = new EgressGuard(egress);
  return (await guard.stands())
    ? good(`stands; instances send at most ${await guard.mbit()} Mbit/s together (GPURENT_AGENT_EGRESS_MBIT)`)
    : doubtful('does not stand', 'the agent sets it up when it starts, and again every half minute; see its log');
}

async function checkClock() {
  const { stdout } = await run('timedatectl', ['show', '--property=NTPSynchronized', '--value']).catch(() => ({
    stdout: '',
  }));
  if (stdout.trim() === 'yes') return good('synchronized');
  return doubtful(
    stdout.trim() === 'no' ? 'is not synchronized' : 'nobody tells whether it is synchronized',
    'install and enable a time service (systemd-timesyncd or chrony): logs and charges carry its times',
  );
}
