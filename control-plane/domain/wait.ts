/** What keeps a host from running something new. */
export type HostTrouble = 'host_away' | 'docker_down' | 'obstacle';

/** What a command waits for that its host has not answered for good. */
export const WAIT_REASONS = ['host_away', 'docker_down', 'not_answered', 'under_way'] as const;
export type WaitReason = (typeof WAIT_REASONS)[number];

export function waitReason(trouble: HostTrouble | null, isAccepted: boolean): WaitReason {
  if (trouble === 'host_away' || trouble === 'docker_down') return trouble;
  return isAccepted ? 'under_way' : 'not_answered';
}

/** The same in words, for people. */
export const WAIT_WORDS: Readonly<Record<WaitReason, string>> = {
  host_away: 'the host is not connected; it is told again as soon as it is back',
  docker_down: 'Docker on the host does not answer; the host goes on as soon as it does',
  not_answered: 'the host has been told, and has not answered yet',
  under_way: 'the host is at it',
};
