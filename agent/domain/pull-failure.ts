/**
 * Why an image could not be pulled, in our own words: what Docker says holds what the registry has answered, and whoever names a
 * registry is not to read with that what others serve.
 */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [
    /no matching manifest|does not match the specified platform|image operating system/i,
    'it is not made for the processor of this machine; take an image for this architecture',
  ],
  [
    /toomanyrequests|too many requests|rate limit/i,
    'the registry limits how often it is asked; try again later, or put a user name and password of it into the template',
  ],
  [
    /unauthorized|authentication required|no basic auth|access denied|denied:|forbidden/i,
    'the registry does not give it out (unauthorized): check its name, and user name and password of the registry in the template',
  ],
  [
    /manifest unknown|not found|does not exist|name unknown/i,
    'the registry has no such image (not found): check name and tag',
  ],
  [/no space left/i, 'the disk of this machine is full; try another machine'],
  [/x509|certificate|tls:|http response to https/i, 'the certificate of the registry cannot be verified'],
  [/no such host|server misbehaving|lookup .*:53/i, 'the name of the registry cannot be resolved'],
  [
    /timeout|deadline exceeded|connection re(fused|set)|unreachable|no route|unexpected eof|: eof/i,
    'the registry cannot be reached',
  ],
  [
    /cannot be mapped to a host|available in user namespace/i,
    'it has files of accounts with ids above 65535, which this machine cannot keep apart (user namespaces are remapped); take another image or machine',
  ],
  [
    /invalid|unsupported|unknown (blob|media)|digest|unpack|archive|gzip|tar/i,
    'what the registry serves is not a sound image',
  ],
];

export function pullFailure(said: string): string {
  return REASONS.find(([pattern]) => pattern.test(said))?.[1] ?? 'the registry has answered with an error';
}
