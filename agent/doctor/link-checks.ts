import { expiryOf, expiryWords } from '../../shared/network/certificate-term.js';
import type { Clock } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import type { AgentConfig } from '../config.js';
import { remedyOf } from '../domain/link-remedy.js';
import type { LinkFailure } from '../link/failure.js';
import { loadIdentity, type Identity } from '../link/identity.js';
import { probe } from '../link/probe.js';
import { bad, doubtful, good, type Check, type Finding } from './finding.js';

/** What the checks read of the daemon's status. A daemon of an older release sends only `connected`. */
interface Standing {
  connected: boolean;
  disconnected?: { reason: string } | null;
  refusal?: { at: string; reason: string; remedy: string } | null;
  hostKeyFault?: string;
  needs?: string[];
}

/** Asks the daemon for its status. Rejects when the daemon does not answer. */
export type AskDaemon = () => Promise<Standing>;

const SILENT =
  'check that the control plane runs, that a firewall or tunnel lets this host reach it, and that no proxy in between answers for it';

/**
 * Returns the checks whether the control plane accepts this host, and what the agent lacks: from the status of the daemon, or, where the daemon does not
 * run, by a call to the control plane.
 */
export function linkChecks({ stateDir }: AgentConfig, clock: Clock, ask: AskDaemon): Check[] {
  return [
    { name: 'enrollment', look: () => checkLink(stateDir, clock, ask) },
    { name: 'needs of the agent', look: () => checkNeeds(ask) },
  ];
}

/** Finds nothing while the daemon does not answer, which the check of the enrollment reports. */
async function checkNeeds(ask: AskDaemon): Promise<Finding[]> {
  const standing = await ask().catch(() => undefined);
  if (!standing) return [];
  const { needs = [] } = standing;
  if (needs.length === 0) return [good('are met')];
  return needs.map((need) => bad(need, 'the agent looks again every 30 seconds'));
}

async function checkLink(stateDir: string, clock: Clock, ask: AskDaemon): Promise<Finding[]> {
  let identity: Identity;
  try {
    identity = loadIdentity(stateDir);
  } catch (error) {
    return [bad('this host is not enrolled', messageOf(error))];
  }
  const term = termOf(identity, clock.now());
  try {
    return [judgeStanding(identity, await ask()), ...term];
  } catch (error) {
    const silent = bad(
      messageOf(error),
      'run "systemctl start gpurent-agent"; if it does not stay up, "journalctl -u gpurent-agent -n 50" says why',
    );
    return [silent, judgeAnswer(identity, await probe(identity, clock)), ...term];
  }
}

/** The agent renews its certificate every month, so one that ends within two weeks was not renewed for eleven. */
function termOf({ proof }: Identity, now: number): Finding[] {
  if (proof.kind !== 'certificate') return [];
  const words = expiryWords(expiryOf(proof.certificate), now);
  if (words === undefined) return [];
  const remedy =
    'let the agent reach the control plane, so that it is renewed; once it has expired, enroll this host again with a token for its machine';
  return [doubtful(`the certificate of this host ${words}`, remedy)];
}

function judgeStanding({ controlPlane }: Identity, { connected, refusal, disconnected }: Standing): Finding {
  if (connected) return good(`connected to ${controlPlane}`);
  if (refusal) return bad(`${controlPlane} refused this host at ${refusal.at}: ${refusal.reason}`, refusal.remedy);
  return bad(`enrolled at ${controlPlane}, but not connected: ${disconnected?.reason ?? 'not tried yet'}`, SILENT);
}

function judgeAnswer({ controlPlane }: Identity, failure: LinkFailure | null): Finding {
  if (!failure) return good(`enrolled at ${controlPlane}, which accepts this host`);
  if (failure.kind === 'other')
    return bad(`enrolled at ${controlPlane}, which cannot be reached: ${failure.reason}`, SILENT);
  return bad(`${controlPlane} refuses this host: ${failure.reason}`, remedyOf(failure));
}
