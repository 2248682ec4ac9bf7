import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { createSecureContext } from 'node:tls';
import { promisify } from 'node:util';
import { expiryWords } from '../../shared/network/certificate-term.js';
import { messageOf } from '../../shared/coded-error.js';
import { fromFiles } from '../../shared/network/server-identity.js';
import type { AgentConfig } from '../config.js';
import { BRIDGE_PREFIX } from '../domain/egress.js';
import { networkOf, overlap } from '../domain/subnets.js';
import { requireGuestTools } from '../host/guest-tools.js';
import { publicAddressOf } from '../host/inventory.js';
import { missingForUpgrades } from '../host/upgrade-permission.js';
import { EgressGuard } from '../host/network/egress-guard.js';
import { bad, doubtful, good, type Check } from './finding.js';

const run = promisify(execFile);
const UPGRADES_ADVICE = 'see "Upgrades by themselves" in docs/host-owner.md, or set GPURENT_AGENT_UPGRADES to off';

/** Returns the checks of the host itself. */
export function hostChecks(config: AgentConfig): Check[] {
  return [
    { name: 'user', look: async () => [checkUser()] },
    { name: 'guest tools', look: async () => [checkTools(config)] },
    { name: 'ports', look: async () => [await checkPorts(config)] },
    { name: 'guarded ports', look: async () => [await checkLinks(config)] },
    { name: 'networks', look: async () => [checkNetworks(config)] },
    { name: 'egress guard', look: async () => [await checkGuard(config)] },
    { name: 'upgrades', look: async () => checkUpgrades(config) },
    { name: 'images made here', look: async () => [checkLocalImages(config)] },
    { name: 'clock', look: async () => [await checkClock()] },
  ];
}

function checkUser() {
  return process.getuid?.() === 0 ? good('root') : bad('not root', 'run doctor and the agent as root');
}

function checkTools({ guestTools }: AgentConfig) {
  try {
    requireGuestTools(guestTools);
    return good(guestTools);
  } catch (error) {
    return bad(messageOf(error), 'without guest tools, renters cannot reach their containers by SSH');
  }
}

/** Checks that the kernel does not take ports of instances for outgoing connections. */
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
        `${first}-${last} overlaps ${low}-${high}, from which the kernel takes ports for outgoing connections`,
        `run "sysctl -w net.ipv4.ip_local_reserved_ports=${first}-${last}", and put the same setting in /etc/sysctl.d`,
      );
}

/** Checks the TLS certificate of guarded ports. Visitors send access tokens to these ports. */
async function checkLinks(config: AgentConfig) {
  const { tls } = config;
  if (!tls)
    return doubtful(
      'use plain HTTP, so access tokens are sent unencrypted, and browsers do not say which renter’s page makes a request',
      'get a certificate for the name of this host, and set GPURENT_AGENT_TLS_CERTIFICATE_FILE and _KEY_FILE',
    );
  try {
    const shown = await fromFiles(tls)();
    createSecureContext({ cert: shown.certificate, key: shown.key });
    const certificate = new X509Certificate(shown.certificate);
    const home = await publicAddressOf(config);
    const address = config.namePerInstance ? `any.${home}` : home;
    if (Date.parse(certificate.validTo) < Date.now())
      return bad(
        `their certificate expired on ${certificate.validTo}`,
        'renew it; the agent reads it again every hour',
      );
    const isFor = isIP(address) === 0 ? certificate.checkHost(address) : certificate.checkIP(address);
    const words = expiryWords(Date.parse(certificate.validTo), Date.now());
    if (isFor && words !== undefined)
      return doubtful(`their certificate ${words}`, 'renew it; the agent reads it again every hour');
    return isFor
      ? good(`use TLS, with a certificate that expires on ${certificate.validTo}`)
      : bad(
          `their certificate is not for ${address}`,
          'set GPURENT_AGENT_PUBLIC_ADDRESS to the name in the certificate; with GPURENT_AGENT_NAME_PER_INSTANCE, the certificate must cover every name below it',
        );
  } catch (error) {
    return bad(messageOf(error), 'the agent does not start with this certificate; replace it');
  }
}

/** Checks that the networks of instances do not overlap a network that the host is in. */
function checkNetworks({ subnet }: AgentConfig) {
  const others = Object.entries(networkInterfaces()).filter(([name]) => !name.startsWith(BRIDGE_PREFIX));
  const clash = others.find(([, addresses]) =>
    addresses?.some(({ cidr }) => {
      const network = networkOf(cidr ?? '');
      return network && overlap(network, subnet);
    }),
  );
  return clash === undefined
    ? good('those of instances do not overlap those of the host')
    : bad(
        `${clash[0]} is in the range from which instances get their networks`,
        'set GPURENT_AGENT_SUBNET to another one',
      );
}

function checkLocalImages({ localImages }: AgentConfig) {
  if (localImages !== 'any')
    return good(localImages.length === 0 ? 'renters cannot use them' : `renters can use: ${localImages.join(', ')}`);
  return doubtful(
    'any renter who knows the name of an image that was built on this host can use it',
    'set GPURENT_AGENT_LOCAL_IMAGES to none, or to the names of the images that renters can use',
  );
}

function checkUpgrades(config: AgentConfig) {
  if (config.upgrades === 'off') return [good('the agent does not upgrade itself')];
  const missing = missingForUpgrades(config);
  if (missing.length === 0) return [good('the agent upgrades itself to signed releases')];
  return missing.map((what) => doubtful(`the agent does not upgrade itself: ${what}`, UPGRADES_ADVICE));
}

async function checkGuard({ egress }: AgentConfig) {
  if (!egress)
    return doubtful('is off', 'make sure that something else keeps renters away from this host and its networks');
  const guard = new EgressGuard(egress);
  return (await guard.stands())
    ? good(`is active; instances send at most ${await guard.mbit()} Mbit/s together (GPURENT_AGENT_EGRESS_MBIT)`)
    : doubtful('is not active', 'the agent sets it up when it starts and checks it every 30 seconds; see its log');
}

async function checkClock() {
  const { stdout } = await run('timedatectl', ['show', '--property=NTPSynchronized', '--value']).catch(() => ({
    stdout: '',
  }));
  if (stdout.trim() === 'yes') return good('synchronized');
  return doubtful(
    stdout.trim() === 'no' ? 'is not synchronized' : 'whether it is synchronized is unknown',
    'install and enable a time service (systemd-timesyncd or chrony): logs and charges use this clock',
  );
}
