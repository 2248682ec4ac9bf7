import type { LinkProps } from '@tanstack/react-router';
import { MACHINE_NEEDS, ORGANIZATION_NEEDS } from './listed-needs.js';
import type { Need, NeedItem } from './models.js';

interface Words {
  /** What is the matter with the thing of this name. */
  what: (name: string) => string;
  /** What to do, or what follows. */
  then: string;
  /** Where it can be mended; otherwise at its machine or its organization. */
  link?: Target | ((item: NeedItem) => Target);
}

type Target = LinkProps & { words: string };

const BACKUPS = { to: '/operator/control-plane', words: 'Look at the backups' } as const;
const IGNORED = { to: '/operator/ignored-stops', words: 'Credit it' } as const;
const WORKERS = { to: '/operator/control-plane', search: { tab: 'workers' }, words: 'Look at the workers' } as const;
const MAIL = { to: '/operator/control-plane', search: { tab: 'settings' }, words: 'Look at the settings' } as const;
const QUARANTINE_LIST = { to: '/operator/quarantine', words: 'Look at the quarantine' } as const;
const QUARANTINE = { to: '/operator/quarantine', words: 'Adopt or remove it' } as const;

/** The kinds of needs in words. The guide to the alerts says more of each. */
const WORDS: Readonly<Record<Need['kind'], Words>> = {
  clock_untrusted: { what: () => 'The clock is not trusted', then: 'Time-outs wait until you confirm it.' },
  disk_full: {
    what: () => 'The disk of the control plane is full',
    then: 'Until you make room, deploys, starts and new accounts are refused. Stops and destroys still work.',
  },
  backup_overdue: {
    what: () => 'No scheduled backup has been made in time',
    then: 'The log line “no backup could be made” says why. It is tried again every minute.',
    link: BACKUPS,
  },
  certificate_expiring: {
    what: (name) => `The certificate “${name}” of the control plane expires`,
    then: 'Renew it, then run “systemctl reload gpurent-control-plane”.',
  },
  worker_failing: {
    what: (name) => `The background worker ${name} fails`,
    then: 'It runs again every second. If the disk is full or failing, all workers fail.',
    link: WORKERS,
  },
  settlement_late: {
    what: () => 'Balances are settled late',
    then: 'Errors of the worker “settle” in the log name the organization and the reason.',
    link: WORKERS,
  },
  mail_waiting: {
    what: () => 'A mail has waited for more than an hour',
    then: 'The log line “a mail was not sent” has the answer of the mail server.',
    link: MAIL,
  },
  machine_away: {
    what: (name) => `${name} is away`,
    then: 'Its agent is not connected. Its workloads keep running.',
  },
  machine_lost: {
    what: (name) => `${name} is lost and not removed`,
    then: 'Remove it, unless it comes back.',
  },
  machine_refusing: { what: (name) => `${name} takes no instances`, then: '' },
  commands_failing: {
    what: (name) => `Commands of several organizations fail on ${name}`,
    then: 'Cordon it, and look at its log.',
  },
  gpus_unhealthy: {
    what: (name) => `${name} has unhealthy GPUs`,
    then: 'Nobody can rent them. A renter who has one goes on paying for it.',
  },
  gpus_disputed: {
    what: (name) => `${name} reports GPUs that belong to other machines`,
    then: 'Nobody can rent them there. If a card was moved, assign it to this machine.',
  },
  disks_unlimited: {
    what: (name) => `${name} is not offered`,
    then: 'It does not limit the disks of renters.',
  },
  clock_off: {
    what: (name) => `${name} has a wrong clock`,
    then: 'Set it, and let the host keep it by NTP.',
  },
  command_stuck: {
    what: (name) => `${name} has not done a command`,
    then: '',
    link: ({ machine_id, organization_id }) => {
      // The removal of a workload that is nobody's instance.
      if (organization_id === null) return QUARANTINE_LIST;
      return {
        to: '/operator/instances',
        search: { waiting: true, ...(machine_id === null ? {} : { machine: machine_id }) },
        words: 'Look at what waits',
      };
    },
  },
  workload_quarantined: {
    what: (name) => `${name} has a workload in quarantine`,
    then: 'Nobody pays for it, and it holds its GPUs.',
    link: QUARANTINE,
  },
  stop_ignored: {
    what: (name) => `An instance on ${name} was charged after a stop that its host did not confirm in time`,
    then: 'Credit its renter.',
    link: IGNORED,
  },
  payment_disputed: {
    what: (name) => `${name} disputes a payment`,
    then: 'It can neither deploy nor start.',
  },
  organization_suspended: {
    what: (name) => `${name} is suspended`,
    then: 'What it has is destroyed when its time is over, unless you restore it.',
  },
  admin_refused: {
    what: (name) => `The company of the last admin of ${name} has disabled their account`,
    then: 'They stay a member, and their personal API keys work.',
  },
};

/** A need as the overview shows it. */
export interface Shown {
  key: string;
  words: string;
  why: string;
  since: string | null;
  link: Target | undefined;
}

export function shownOf(kind: Need['kind'], item: NeedItem): Shown {
  // A later release of the control plane can know more kinds.
  const known: Readonly<Record<string, Words>> = WORDS;
  const { what, then, link } = known[kind] ?? { what: (name: string) => `${name}: ${kind}`, then: '' };
  return {
    key: `${kind} ${item.subject} ${item.name ?? ''}`,
    words: what(item.name ?? item.subject),
    why: [sentence(item.message ?? ''), then].filter(Boolean).join(' '),
    since: item.since,
    link: typeof link === 'function' ? link(item) : (link ?? linkOf(item)),
  };
}

/** Ends words with a full stop: others follow. */
function sentence(words: string): string {
  return words === '' || /[.!?…]$/.test(words) ? words : `${words}.`;
}

function linkOf({ machine_id, organization_id }: NeedItem): Shown['link'] {
  if (organization_id !== null)
    return { to: '/operator/organizations/$id', params: { id: organization_id }, words: 'Look at the organization' };
  if (machine_id !== null)
    return { to: '/operator/machines/$id', params: { id: machine_id }, words: 'Look at the machine' };
  return undefined;
}

/** Where all of a kind are listed that has more than are shown. */
export function listOf(kind: Need['kind']): Target {
  if (kind === 'worker_failing') return WORKERS;
  if (kind === 'command_stuck')
    return { to: '/operator/instances', search: { waiting: true }, words: 'All instances that wait' };
  if (kind === 'workload_quarantined') return { to: '/operator/quarantine', words: 'All in quarantine' };
  if (kind === 'stop_ignored') return { to: '/operator/ignored-stops', words: 'All ignored stops' };
  const words = 'All of these';
  if (isOf(ORGANIZATION_NEEDS, kind)) return { to: '/operator/organizations', search: { need: kind }, words };
  if (isOf(MACHINE_NEEDS, kind)) return { to: '/operator/machines', search: { need: kind }, words };
  return { to: '/operator/machines', words: 'All machines' };
}

function isOf<Kind extends string>(needs: Readonly<Record<Kind, string>>, kind: string): kind is Kind {
  return Object.hasOwn(needs, kind);
}
