/** Why a host cannot run a new workload. */
export type HostTrouble = 'host_away' | 'docker_down' | 'obstacle';

/** What an open command waits for. */
export const WAIT_REASONS = ['host_away', 'docker_down', 'not_answered', 'under_way'] as const;
export type WaitReason = (typeof WAIT_REASONS)[number];

export function waitReason(trouble: HostTrouble | null, isAccepted: boolean): WaitReason {
  if (trouble === 'host_away' || trouble === 'docker_down') return trouble;
  return isAccepted ? 'under_way' : 'not_answered';
}

/** The reasons in words, for people. */
export const WAIT_WORDS: Readonly<Record<WaitReason, string>> = {
  host_away: 'the host is not connected; the command is sent again as soon as it reconnects',
  docker_down: 'Docker on the host does not answer; the host continues as soon as Docker answers',
  not_answered: 'the command was sent to the host, which has not answered yet',
  under_way: 'the host is carrying the command out',
};
