const ENROLL = 'gpurent-agent enroll --control-plane HOST:PORT --token TOKEN';
const AGAIN = `"${ENROLL} --again"`;
/** Stops the service first, because it holds the journal open that `enroll --new` moves aside. */
const AS_NEW = `"systemctl stop gpurent-agent", "${ENROLL} --new", "systemctl start gpurent-agent"`;

/** Messages of control planes of this release and the previous one, and what the host owner can do about each. */
const REMEDIES: readonly [RegExp, string][] = [
  [
    /has removed this host/,
    `if the removal was intended, uninstall the agent; to enroll as a new machine, get an enrollment token from the operator, then ${AS_NEW}`,
  ],
  [
    /replaced by a newer one|revoked|certificate of this host has expired/,
    `ask the operator for a token of this machine, then ${AGAIN} and "systemctl restart gpurent-agent"; its workloads stay`,
  ],
  [
    /belongs to no host/,
    `ask the operator whether this is the right control plane. If it knows this machine, get a token of this machine, then ${AGAIN} and "systemctl restart gpurent-agent"; if not, get an ordinary token, then ${AS_NEW}`,
  ],
  [
    /speaks? protocol/,
    'upgrade the older of the two: you upgrade the agent, with scripts/install-agent of the newer release; the operator upgrades the control plane',
  ],
  [
    /epoch|copies of one store|older copy/,
    'tell the operator: two control planes are running, or one runs on an older copy of the database',
  ],
  [
    /too much at once|too many refused|too many hosts/,
    'wait a minute; if it continues, read "journalctl -u gpurent-agent -n 50" and tell the operator',
  ],
];
const UNTRUSTED = `check that the address leads to the control plane and that nobody intercepts the connection; if the control plane has a new certificate or authority, ask the operator for a token of this machine, then ${AGAIN} and "systemctl restart gpurent-agent"`;

/** Returns what the host owner can do about a failure to connect, chosen by its reason. */
export function remedyOf({ kind, reason }: { kind: 'refused' | 'untrusted' | 'other'; reason: string }): string {
  if (kind === 'untrusted') return UNTRUSTED;
  const [, remedy] = REMEDIES.find(([said]) => said.test(reason)) ?? [];
  return remedy ?? 'ask the operator, whose log has the same message';
}
