import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider, { type Grant } from 'oidc-provider';
import { exportJWK, generateKeyPair } from 'jose';
import { CookieJar } from 'tough-cookie';
import { CLIENT } from './companies.js';

/** Somebody with an account at the company. */
export interface Person {
  sub: string;
  email?: string;
  email_verified?: boolean;
  name?: string;
}

interface Context {
  oidc: { provider: Provider; client: { clientId: string }; session: { accountId: string } };
}

/** A company's sign-in on loopback: the server that companies run, not a double. Everybody is signed in who is named. */
export class TestIssuer {
  /** Who sits at the browser. */
  person: Person = { sub: 'nobody' };
  /** The paths of the requests that the control plane has sent. */
  readonly asked: string[] = [];
  private readonly people = new Map<string, Person>();

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  /** `redirectUris`: where it sends browsers back. `isTerse`: it tells an address only to who asks for it with the access token. */
  static async start(redirectUris: string[], { isTerse = false } = {}): Promise<TestIssuer> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const issuer = new TestIssuer(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    await issuer.serve(redirectUris, isTerse);
    return issuer;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** Signs the person in with a browser of its own, and returns the address to which the browser is sent back. */
  async signIn(address: string, person = this.person): Promise<string> {
    this.person = person;
    const jar = new CookieJar();
    let at = address;
    for (let hops = 0; hops < 10; hops++) {
      const headers = { cookie: await jar.getCookieString(at) };
      const answer = await fetch(at, { redirect: 'manual', headers });
      for (const cookie of answer.headers.getSetCookie()) await jar.setCookie(cookie, at);
      const next = answer.headers.get('location');
      if (next === null) throw new Error(`the issuer answers ${answer.status}: ${await answer.text()}`);
      at = new URL(next, at).href;
      if (!at.startsWith(this.url)) return at;
    }
    throw new Error('the issuer leads nowhere');
  }

  private async serve(redirect_uris: string[], isTerse: boolean): Promise<void> {
    const { privateKey } = await generateKeyPair('RS256', { extractable: true });
    const provider = new Provider(this.url, {
      clients: [{ ...CLIENT, redirect_uris }],
      jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'key' }] },
      cookies: { keys: ['a key for cookies'] },
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
      conformIdTokenClaims: isTerse,
      features: { devInteractions: { enabled: false } },
      interactions: { url: () => '/signed-in' },
      findAccount: (_context: unknown, accountId: string) => ({
        accountId,
        claims: () => this.people.get(accountId),
      }),
      loadExistingGrant: ({ oidc: { provider: own, client, session } }: Context) =>
        granted(new own.Grant({ clientId: client.clientId, accountId: session.accountId })),
      pkce: { required: () => true },
      // It warns of what production must not do.
      ttl: { Session: 600, Grant: 600, Interaction: 600, AccessToken: 600, IdToken: 600, AuthorizationCode: 60 },
    });
    const answer = provider.callback();
    this.server.on('request', (request, response) => {
      if (request.headers['user-agent']?.startsWith('openid-client') === true) this.asked.push(request.url ?? '');
      if (request.url !== '/signed-in') return void answer(request, response);
      this.people.set(this.person.sub, this.person);
      void provider.interactionFinished(request, response, { login: { accountId: this.person.sub } });
    });
  }
}

async function granted(grant: Grant): Promise<Grant> {
  grant.addOIDCScope('openid email profile');
  await grant.save();
  return grant;
}
