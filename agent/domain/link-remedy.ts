const ENROLL = 'gpurent-agent enroll --control-plane HOST:PORT --token TOKEN';
const AGAIN = `"${ENROLL} --again"`;
/** The service holds the journal open that is put aside. */
const AS_NEW = `"systemctl stop gpurent-agent", "${ENROLL} --new", "systemctl start gpurent-agent"`;

/** What a control plane of this release or the one before says, and what a host's owner does about it. */
const REMEDIES: readonly [RegExp, string][] = [
  [
    /has removed this host/,
    `where that was meant, uninstall the agent; to be a new machine, get an enrolment token from the operator, then ${AS_NEW}`,
  ],
  [
    /replaced by a newer one|revoked|certificate of this host has expired/,
    `ask the operator for a token of this machine, then ${AGAIN} and "systemctl restart gpurent-agent"; its workloads stay`,
  ],
  [
    /belongs to no host/,
    `see with the operator that this is the right control plane. Where it knows this machine, get a token of it, then ${AGAIN} and "systemctl restart gpurent-agent"; where it does not, get an ordinary token, then ${AS_NEW}`,
  ],
  [/speaks? protocol/, 'upgrade the older one of the two: the newer release’s scripts/install-agent, or the operator'],
  [/epoch|copies of one store|older copy/, 'tell the operator: two control planes run, or one runs on an older copy'],
  [
    /too much at once|too many refused/,
    'wait a minute; where it goes on, "journalctl -u gpurent-agent -n 50", and tell the operator',
  ],
];
const UNTRUSTED = `see that the address leads to the control plane, and that nobody is in between; where the control plane has another certificate or authority now, ask the operator for a token of this machine, then ${AGAIN} and "systemctl restart gpurent-agent"`;

/** What a host's owner does about a control plane that does not take the host, by what was said. */
export function remedyOf({ kind, reason }: { kind: 'refused' | 'untrusted' | 'other'; reason: string }): string {
  if (kind === 'untrusted') return UNTRUSTED;
  const [, remedy] = REMEDIES.find(([said]) => said.test(reason)) ?? [];
  return remedy ?? 'ask the operator, whose log says the same';
}
