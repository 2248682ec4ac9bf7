import type { Configuration, IDToken } from 'openid-client';
import type { Clock } from '../../shared/clock.js';
import type { Logger } from '../../shared/logger.js';
import { HOUR_MS, MINUTE_MS } from '../../shared/time.js';
import {
  CLOCK_TOLERANCE_S,
  IssuerFailure,
  issuerUrlOf,
  type Assertion,
  type BegunAtIssuer,
  type IssuerAccess,
  type OpenId,
  type WantedOfIssuer,
} from '../domain/identity/company.js';
import { meaningOf } from '../domain/identity/company-session.js';
import { entraClaimsOf } from '../domain/identity/microsoft.js';
import type { FetchFromIssuer } from './fetch-issuer.js';

/** How long one request to an issuer may take. */
const REQUEST_MS = 10_000;
/** What an issuer says of itself is asked again after this time; after a failure soon, but not for every stranger. */
const KNOWN_MS = HOUR_MS;
const FAILED_MS = 5_000;
/** Before a browser is sent there silently: nobody who opens a page here is to end at an issuer that is down. */
const SILENTLY_KNOWN_MS = MINUTE_MS;
/** Requests to one issuer at once: one that is slow must not hold up the control plane. */
const MOST_AT_ONCE = 20;
/** OpenID Connect allows no longer subjects. */
const MOST_SUBJECT_CHARS = 255;
const SCOPE = 'openid email profile';

type Library = typeof import('openid-client');

interface Known {
  /** What the configuration was made of. */
  access: string;
  configuration: Promise<Configuration>;
  /** Both on the monotonic clock. */
  askedAt: number;
  dueAt: number;
}

/** The authorization code flow of OpenID Connect, with PKCE. Keeps nothing of a person. */
export class OpenIdClient implements OpenId {
  /** By the id of the issuer: operators set a bounded number. */
  private readonly known = new Map<string, Known>();
  private readonly open = new Map<string, number>();

  constructor(
    private readonly fetch: FetchFromIssuer,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  begin(
    issuer: IssuerAccess,
    { redirectUri, isAgain, silentFor }: WantedOfIssuer,
  ): Promise<{ url: string; begun: BegunAtIssuer }> {
    const isSilent = silentFor !== undefined;
    return this.attempt(issuer, isSilent, async (library) => {
      const configuration = await this.configurationOf(library, issuer, isSilent ? SILENTLY_KNOWN_MS : KNOWN_MS);
      const [state, nonce, verifier] = [library.randomState(), library.randomNonce(), library.randomPKCECodeVerifier()];
      const code_challenge = await library.calculatePKCECodeChallenge(verifier);
      const url = library.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: SCOPE,
        state,
        nonce,
        code_challenge,
        code_challenge_method: 'S256',
        response_mode: 'query',
        ...(isAgain
          ? {
              prompt: 'login',
              max_age: '0',
            }
          : {}),
        // The hint keeps the issuer from an answer for somebody else who is signed in there with the same browser.
        ...(isSilent ? { prompt: 'none', login_hint: silentFor } : {}),
      });
      const askedAgainAt = isAgain ? this.clock.monotonic() : null;
      return { url: url.href, begun: { state, nonce, verifier, redirectUri, askedAgainAt, isSilent } };
    });
  }

  finish(issuer: IssuerAccess, begun: BegunAtIssuer, answer: string): Promise<Assertion> {
    return this.attempt(issuer, begun.isSilent, async (library) => {
      const configuration = await this.configurationOf(library, issuer);
      const tokens = await library.authorizationCodeGrant(configuration, new URL(begun.redirectUri + answer), {
        expectedState: begun.state,
        expectedNonce: begun.nonce,
        pkceCodeVerifier: begun.verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      // Some issuers speak for more than one: see `issuer` in the metadata of Microsoft's common endpoint.
      if (!claims || issuerUrlOf(claims.iss) !== issuer.url) throw new IssuerFailure('invalid', 'another issuer');
      checkSubject(claims.sub);
      const signedInForMs = signedInFor(claims, begun, this.clock.monotonic());
      const hasUserInfo = configuration.serverMetadata().userinfo_endpoint !== undefined;
      if (claims['email'] !== undefined || !hasUserInfo) return assertionOf(claims, signedInForMs);
      const more = await library.fetchUserInfo(configuration, tokens.access_token, claims.sub);
      return assertionOf({ ...claims, ...more }, signedInForMs);
    });
  }

  /** Runs `work`, and says in the log why it has failed, without what the issuer has said of anybody. */
  private async attempt<T>(
    { id }: IssuerAccess,
    isSilent: boolean,
    work: (library: Library) => Promise<T>,
  ): Promise<T> {
    const open = this.open.get(id) ?? 0;
    if (open >= MOST_AT_ONCE) throw new IssuerFailure('unreachable', 'too many sign-ins at once');
    this.open.set(id, open + 1);
    try {
      return await work(await import('openid-client'));
    } catch (error) {
      const failure = failureOf(error, isSilent);
      if (failure.kind === 'unreachable' || failure.kind === 'invalid')
        this.logger.warn({ issuer: id, kind: failure.kind, reason: failure.message }, 'a sign-in at an issuer failed');
      throw failure;
    } finally {
      this.open.set(id, (this.open.get(id) ?? 1) - 1);
    }
  }

  private configurationOf(library: Library, issuer: IssuerAccess, knownMs = KNOWN_MS): Promise<Configuration> {
    const access = JSON.stringify(issuer);
    const known = this.known.get(issuer.id);
    const now = this.clock.monotonic();
    if (known?.access === access && known.dueAt > now && known.askedAt + knownMs > now) return known.configuration;
    const configuration = this.discover(library, issuer);
    const fresh: Known = { access, configuration, askedAt: now, dueAt: now + KNOWN_MS };
    this.known.set(issuer.id, fresh);
    configuration.catch(() => (fresh.dueAt = this.clock.monotonic() + FAILED_MS));
    return configuration;
  }

  private async discover(library: Library, { url, clientId, clientSecret }: IssuerAccess): Promise<Configuration> {
    const isPlain = url.startsWith('http:');
    // Plain http reaches only loopback: see `issuerFetcher`.
    // oxlint-disable-next-line typescript/no-deprecated -- it is marked only to stand out
    const allowances: ((configuration: Configuration) => void)[] = isPlain ? [library.allowInsecureRequests] : [];
    const metadata = { [library.clockTolerance]: CLOCK_TOLERANCE_S };
    const discovered = await library.discovery(new URL(url), clientId, metadata, undefined, {
      [library.customFetch]: (address, asked) => this.request(url, address, asked),
      execute: allowances,
    });
    const server = discovered.serverMetadata();
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const isBasic = methods.includes('client_secret_basic');
    const proof = isBasic ? library.ClientSecretBasic(clientSecret) : library.ClientSecretPost(clientSecret);
    const configuration = new library.Configuration(server, clientId, metadata, proof);
    configuration[library.customFetch] = (address, asked) => this.request(url, address, asked);
    // Without it, the library trusts the connection to the issuer instead of the signature.
    library.enableNonRepudiationChecks(configuration);
    for (const allow of allowances) allow(configuration);
    return configuration;
  }

  private async request(
    issuer: string,
    address: string,
    { method, headers, body }: { method: string; headers: Record<string, string>; body?: unknown },
  ): Promise<Response> {
    const late = new AbortController();
    const timer = this.clock.schedule(REQUEST_MS, () => late.abort(new Error('it took too long')));
    try {
      return await this.fetch(issuer, address, { method, headers, body, signal: late.signal });
    } finally {
      timer.cancel();
    }
  }
}

/** Throws unless this names a person: all people without a name would share one account. */
function checkSubject(sub: unknown): void {
  if (typeof sub !== 'string' || sub.trim() === '') throw new IssuerFailure('invalid', 'it names no subject (sub)');
  if (sub.length > MOST_SUBJECT_CHARS) throw new IssuerFailure('invalid', 'the subject (sub) is too long');
}

/**
 * Returns for how long the person has been signed in at the issuer, by the issuer's own clock. Throws if the person was sent to sign in
 * again, and the issuer does not say when, or names a sign-in from before: issuers may ignore what they are asked.
 */
function signedInFor({ iat, auth_time }: IDToken, { askedAgainAt }: BegunAtIssuer, now: number): number | undefined {
  if (auth_time === undefined) {
    if (askedAgainAt === null) return undefined;
    throw new IssuerFailure('invalid', 'it does not say when the person has signed in: the claim auth_time is missing');
  }
  const ms = Math.max(0, iat - auth_time) * 1_000;
  if (askedAgainAt !== null && ms > now - askedAgainAt + CLOCK_TOLERANCE_S * 1_000)
    throw new IssuerFailure('invalid', 'it has not asked the person to sign in again: auth_time is too old');
  return ms;
}

function assertionOf(
  claims: Readonly<Record<string, unknown>> & { sub: string },
  signedInForMs: number | undefined,
): Assertion {
  const text = (name: string) => (typeof claims[name] === 'string' ? claims[name] : undefined);
  return {
    subject: claims.sub,
    email: text('email'),
    isVerified: claims['email_verified'] === undefined ? undefined : claims['email_verified'] === true,
    entra: entraClaimsOf(claims),
    name: text('name'),
    hostedDomain: text('hd'),
    signedInForMs,
  };
}

/** Returns why something has failed. Its message has no part of a token, and nothing of a person. */
function failureOf(error: unknown, isSilent: boolean): IssuerFailure {
  const causes: Error[] = [];
  for (let each: unknown = error; each instanceof Error && causes.length < 5; each = each.cause) causes.push(each);
  const own = causes.find((each) => each instanceof IssuerFailure);
  if (own) return own;
  const [first] = causes;
  const {
    code = '',
    error: said,
    error_description: more,
  } = (first ?? {}) as Record<string, unknown> & { code?: string };
  if (typeof said === 'string') {
    const description = typeof more === 'string' ? more : undefined;
    const meaning = meaningOf({ error: said, description, isSilent });
    if (meaning !== 'other') return new IssuerFailure(meaning, `the issuer says no (${meaning})`);
  }
  const words = causes.map(({ message }) => message).join(': ');
  const answered = typeof said === 'string' ? ` (the issuer says ${said.slice(0, 64)})` : '';
  const kind = /TIMEOUT|RESPONSE_IS_NOT_CONFORM|RESPONSE_IS_NOT_JSON/.test(code) ? 'unreachable' : 'invalid';
  return new IssuerFailure(kind, `${words}${answered}`, { cause: error });
}
