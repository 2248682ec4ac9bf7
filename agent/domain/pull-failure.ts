/** Why the pull relay does not go on, in the words that a renter reads. */
const REFUSALS = {
  forbidden_address:
    'the registry, or what it names, is at an address that instances may not reach; take a public registry',
  without_tls: 'the registry leads to an address without TLS (http); take a registry that is reached by https alone',
  unauthorized:
    'the registry does not give it out (unauthorized): check its name, and user name and password of the registry in the template',
  not_found: 'the registry has no such image (not found): check name and tag',
  rate_limited:
    'the registry limits how often it is asked; try again later, or put a user name and password of it into the template',
  unresolved: 'the name of the registry cannot be resolved',
  unreachable: 'the registry cannot be reached',
  certificate: 'the certificate of the registry cannot be verified',
  unsound: 'what the registry serves is not a sound image',
  foreign_layers: 'it has layers that are to be fetched from elsewhere than its registry; take an image without',
  too_large: 'it is larger than this machine takes; take a smaller image, or another machine',
  too_many_requests: 'it takes more requests than this machine makes for one image',
  server_error: 'the registry has answered with an error',
} as const;

export type PullRefusal = keyof typeof REFUSALS;

/** The pull relay does not do what it was asked for. */
export class PullRefused extends Error {
  constructor(
    readonly refusal: PullRefusal,
    options?: ErrorOptions,
  ) {
    super(REFUSALS[refusal], options);
  }
}

const MARK = 'gpurent-pull-relay:';
const MARKED = new RegExp(`${MARK}([a-z_]+)`);

/** What the relay says to Docker of a refusal: Docker repeats it, and `pullFailure` knows it again. */
export function markOf(refusal: PullRefusal): string {
  return `${MARK}${refusal}`;
}

/**
 * Why an image could not be pulled, in our own words: what Docker says holds what the registry has answered, and whoever names a
 * registry is not to read with that what others serve.
 */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [
    /no matching manifest|does not match the specified platform|image operating system/i,
    'it is not made for the processor of this machine; take an image for this architecture',
  ],
  [/toomanyrequests|too many requests|rate limit/i, REFUSALS.rate_limited],
  [/unauthorized|authentication required|no basic auth|access denied|denied:|forbidden/i, REFUSALS.unauthorized],
  [/manifest unknown|not found|does not exist|name unknown/i, REFUSALS.not_found],
  [/no space left/i, 'the disk of this machine is full; try another machine'],
  [/x509|certificate|tls:|http response to https/i, REFUSALS.certificate],
  [/no such host|server misbehaving|lookup .*:53/i, REFUSALS.unresolved],
  [
    /timeout|deadline exceeded|connection re(fused|set)|unreachable|no route|unexpected eof|: eof/i,
    REFUSALS.unreachable,
  ],
  [
    /cannot be mapped to a host|available in user namespace/i,
    'it has files of accounts with ids above 65535, which this machine cannot keep apart (user namespaces are remapped); take another image or machine',
  ],
  [/invalid|unsupported|unknown (blob|media)|digest|unpack|archive|gzip|tar/i, REFUSALS.unsound],
];

export function pullFailure(said: string): string {
  const refusal = MARKED.exec(said)?.[1];
  if (refusal !== undefined && Object.hasOwn(REFUSALS, refusal)) return REFUSALS[refusal as PullRefusal];
  return REASONS.find(([pattern]) => pattern.test(said))?.[1] ?? REFUSALS.server_error;
}
