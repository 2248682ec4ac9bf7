import type { Clock } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import { agentSocket, type AgentConfig } from '../config.js';
import { remedyOf } from '../domain/link-remedy.js';
import type { Snapshot } from '../insight/snapshot.js';
import { askAgent } from '../insight/status-server.js';
import type { LinkFailure } from '../link/failure.js';
import { loadIdentity, type Identity } from '../link/identity.js';
import { probe } from '../link/probe.js';
import { bad, good, type Check, type Finding } from './finding.js';

/** What is known of the link: what the daemon says, or what a call of one's own finds out. */
export interface LinkSenses {
  /** Rejects where the daemon does not answer. */
  ask: () => Promise<Pick<Snapshot, 'connected'> & Partial<Pick<Snapshot, 'disconnected' | 'refusal'>>>;
  /** How the control plane answers this host; null: it takes it. */
  dial: (identity: Identity) => Promise<LinkFailure | null>;
}

const SILENT =
  'see that the control plane runs, that the way to it (tunnel, firewall) is open, and that nothing in between speaks for it';

/** Whether the control plane takes this host. */
export function linkChecks(config: AgentConfig, clock: Clock, senses: Partial<LinkSenses> = {}): Check[] {
  const {
    ask = async () => JSON.parse(await askAgent(agentSocket(config), '/status')) as Snapshot,
    dial = (identity: Identity) => probe(identity, clock),
  } = senses;
  return [{ name: 'enrolment', look: () => checkLink(config.stateDir, { ask, dial }) }];
}

async function checkLink(stateDir: string, { ask, dial }: LinkSenses): Promise<Finding[]> {
  let identity: Identity;
  try {
    identity = loadIdentity(stateDir);
  } catch (error) {
    return [bad('this host is not enrolled', messageOf(error))];
  }
  try {
    return [judgeStanding(identity, await ask())];
  } catch (error) {
    const silent = bad(
      messageOf(error),
      '"systemctl start gpurent-agent"; "journalctl -u gpurent-agent -n 50" says why it does not stay up',
    );
    return [silent, judgeAnswer(identity, await dial(identity))];
  }
}

function judgeStanding({ controlPlane }: Identity, standing: Awaited<ReturnType<LinkSenses['ask']>>): Finding {
  const { connected, refusal, disconnected } = standing;
  if (connected) return good(`connected to ${controlPlane}`);
  if (refusal) return bad(`${controlPlane} has refused this host at ${refusal.at}: ${refusal.reason}`, refusal.remedy);
  return bad(`enrolled at ${controlPlane}, and not connected: ${disconnected?.reason ?? 'not tried yet'}`, SILENT);
}

function judgeAnswer({ controlPlane }: Identity, failure: LinkFailure | null): Finding {
  if (!failure) return good(`enrolled at ${controlPlane}, which takes this host`);
  if (failure.kind === 'other')
    return bad(`enrolled at ${controlPlane}, which cannot be spoken to: ${failure.reason}`, SILENT);
  return bad(`${controlPlane} refuses this host: ${failure.reason}`, remedyOf(failure));
}
