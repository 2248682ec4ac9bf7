/** Why the pull relay refuses, in words for the renter. */
const REFUSALS = {
  forbidden_address:
    'the registry, or a server that it names, is at an address that instances may not reach; use a public registry',
  without_tls: 'the registry leads to an address without TLS (http); use a registry that serves everything by https',
  unauthorized:
    'the registry refuses access to it (unauthorized): check the image name in the template, and the user name and password for the registry',
  not_found: 'the registry has no such image (not found): check its name and tag',
  rate_limited:
    'the registry limits how often images are pulled; try again later, or put a user name and password for it into the template',
  unresolved: 'the name of the registry cannot be resolved',
  unreachable: 'the registry cannot be reached',
  certificate: 'the certificate of the registry cannot be verified',
  unsound: 'what the registry serves is not a sound image',
  foreign_layers: 'some of its layers are on other servers than its registry; use an image without such layers',
  too_large: 'it is larger than this machine takes; use a smaller image or another machine',
  too_many_requests: 'it needs more requests than this machine makes for one image; use another image',
  server_error: 'the registry has answered with an error',
} as const;

export type PullRefusal = keyof typeof REFUSALS;

/** The refusal of a request by the pull relay. */
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

/** Returns the text with which the relay tells Docker of a refusal; Docker repeats it, and `pullFailure` recognizes it. */
export function markOf(refusal: PullRefusal): string {
  return `${MARK}${refusal}`;
}

/**
 * Patterns in Docker's errors, and the reasons that the renter reads instead. Docker's errors contain responses of the registry, and a
 * renter who names an internal server as the registry must not read its responses that way.
 */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [
    /no matching manifest|does not match the specified platform|image operating system/i,
    'it is not made for the processor of this machine; use an image for this architecture',
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
    'it has files of users or groups with ids above 65535, which this machine does not support (user namespaces are remapped); use another image or machine',
  ],
  [/invalid|unsupported|unknown (blob|media)|digest|unpack|archive|gzip|tar/i, REFUSALS.unsound],
];

/** Returns why an image could not be pulled, in words for the renter, from Docker's error. */
export function pullFailure(said: string): string {
  const refusal = MARKED.exec(said)?.[1];
  if (refusal !== undefined && Object.hasOwn(REFUSALS, refusal)) return REFUSALS[refusal as PullRefusal];
  return REASONS.find(([pattern]) => pattern.test(said))?.[1] ?? REFUSALS.server_error;
}
