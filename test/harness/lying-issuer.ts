import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SignJWT, exportJWK, generateKeyPair, type CryptoKey } from 'jose';
import { CLIENT } from './companies.js';

type Claims = Record<string, unknown>;

/** An issuer that says what a test wants: it checks nothing, and signs everything. */
export class LyingIssuer {
  /** Claims beside or instead of those that it should send. */
  lies: Claims = {};
  /** Metadata beside or instead of what it should send. */
  metadata: Claims = {};
  /** Signs instead of its own key. */
  forger: CryptoKey | undefined;
  /** Answers a request instead. */
  intercept: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  /** What was sent to exchange codes. */
  readonly exchanges: URLSearchParams[] = [];
  /** Paths that were asked for. */
  readonly asked: string[] = [];
  private readonly nonces = new Map<string, string>();
  private codes = 0;

  private constructor(
    private readonly server: Server,
    readonly url: string,
    private readonly key: { privateKey: CryptoKey; publicKey: CryptoKey },
  ) {}

  static async start(): Promise<LyingIssuer> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const issuer = new LyingIssuer(server, url, await generateKeyPair('RS256', { extractable: true }));
    server.on('request', (request, response) => void issuer.answer(request, response));
    return issuer;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** Behaves again. */
  repent(): void {
    [this.lies, this.metadata, this.forger, this.intercept] = [{}, {}, undefined, undefined];
  }

  /** Returns the address to which it sends a browser back that was sent to `address`, with changes of its parameters. */
  signIn(address: string, changes: Record<string, string> = {}): string {
    const asked = new URL(address).searchParams;
    const code = `code-${++this.codes}`;
    this.nonces.set(code, asked.get('nonce') ?? '');
    const back = new URL(asked.get('redirect_uri') ?? '');
    const parameters = { code, state: asked.get('state') ?? '', iss: this.url, ...changes };
    for (const [name, value] of Object.entries(parameters)) back.searchParams.set(name, value);
    return back.href;
  }

  /** Returns the address to which it sends a browser back that was sent to `address`, with an error instead of a code. */
  refuse(address: string, error: string, changes: Record<string, string> = {}): string {
    const back = new URL(this.signIn(address, { error, ...changes }));
    back.searchParams.delete('code');
    return back.href;
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '';
    this.asked.push(path);
    let body = '';
    for await (const part of request.setEncoding('utf8')) body += part as string;
    if (this.intercept?.(request, response)) return;
    const content = await this.contentOf(path, new URLSearchParams(body));
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(content));
  }

  private async contentOf(path: string, sent: URLSearchParams): Promise<object> {
    if (path === '/jwks') return { keys: [{ ...(await exportJWK(this.key.publicKey)), alg: 'RS256', kid: 'key' }] };
    if (path === '/token') return this.tokensFor(sent);
    return {
      issuer: this.url,
      authorization_endpoint: `${this.url}/authorize`,
      token_endpoint: `${this.url}/token`,
      jwks_uri: `${this.url}/jwks`,
      authorization_response_iss_parameter_supported: true,
      id_token_signing_alg_values_supported: ['RS256'],
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      ...this.metadata,
    };
  }

  private async tokensFor(sent: URLSearchParams): Promise<object> {
    this.exchanges.push(sent);
    const now = Math.floor(Date.now() / 1_000);
    const claims = {
      iss: this.url,
      aud: CLIENT.client_id,
      sub: 'somebody',
      iat: now,
      exp: now + 300,
      nonce: this.nonces.get(sent.get('code') ?? ''),
      email: 'somebody@acme.example',
      email_verified: true,
      ...this.lies,
    };
    const token = new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'key' });
    const id_token = await token.sign(this.forger ?? this.key.privateKey);
    return { access_token: 'an access token', token_type: 'Bearer', id_token };
  }
}
