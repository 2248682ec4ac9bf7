import type { Clock } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import type { AgentConfig } from '../config.js';
import { remedyOf } from '../domain/link-remedy.js';
import type { LinkFailure } from '../link/failure.js';
import { loadIdentity, type Identity } from '../link/identity.js';
import { probe } from '../link/probe.js';
import { bad, good, type Check, type Finding } from './finding.js';

/** How the daemon says that it stands; one of an older release says no more than whether it is connected. */
interface Standing {
  connected: boolean;
  disconnected?: { reason: string } | null;
  refusal?: { at: string; reason: string; remedy: string } | null;
}

/** Rejects where the daemon does not answer. */
type AskDaemon = () => Promise<Standing>;

const SILENT =
  'see that the control plane runs, that the way to it (tunnel, firewall) is open, and that nothing in between speaks for it';

/** Whether the control plane takes this host: by what the daemon says, or by a call of one's own. */
export function linkChecks({ stateDir }: AgentConfig, clock: Clock, ask: AskDaemon): Check[] {
  return [{ name: 'enrolment', look: () => checkLink(stateDir, clock, ask) }];
}

async function checkLink(stateDir: string, clock: Clock, ask: AskDaemon): Promise<Finding[]> {
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
    return [silent, judgeAnswer(identity, await probe(identity, clock))];
  }
}

function judgeStanding({ controlPlane }: Identity, { connected, refusal, disconnected }: Standing): Finding {
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
