import { simpleParser, type ParsedMail } from 'mailparser';
import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerSession } from 'smtp-server';
import type { SmtpSettings } from '../../control-plane/mail/settings.js';
import { eventually } from '../../scripts/eventually.js';
import { certificateFor } from './certificate.js';

const LOGIN = { user: 'gpurent', password: 'the password of the mail server' };

export interface Received {
  to: string;
  raw: string;
  mail: ParsedMail;
  /** Whether it came over TLS, and who had logged in. */
  isEncrypted: boolean;
  user: string | undefined;
}

/** What the server says to a mail: it accepts it, refuses it with a code, or never answers. */
export type Answer = 'accept' | 'hang' | { code: number; text: string };

interface Options {
  /** Otherwise in plain text and without a login. */
  tls?: 'starttls' | 'implicit';
  /** The name in its certificate. */
  name?: string;
}

/** A real mail server on loopback, which keeps what it gets. */
export class TestSmtp {
  readonly received: Received[] = [];
  /** How many connections there have been, and most at once. */
  connections = 0;
  mostAtOnce = 0;
  atOnce = 0;
  /** Who has tried to log in. */
  readonly logins: (string | undefined)[] = [];
  private asks = 0;
  /** What it says to the sender, to the recipient, and to the mail. */
  toSender: () => Answer = () => 'accept';
  toRecipient: (address: string) => Answer = () => 'accept';
  toMail: (to: string) => Answer = () => 'accept';
  private server: SMTPServer | undefined;
  private port = 0;

  private constructor(
    private readonly options: Options,
    private readonly identity: { certificate: string; key: string },
  ) {}

  static async start(options: Options = {}): Promise<TestSmtp> {
    const smtp = new TestSmtp(options, await certificateFor(options.name ?? 'localhost'));
    await smtp.back();
    return smtp;
  }

  get settings(): SmtpSettings {
    const from = { name: 'GPU market', address: 'noreply@gpus.example' };
    const at = { host: 'localhost', port: this.port, from };
    const { tls } = this.options;
    if (!tls) return { ...at, tls: 'off', login: null, authority: null };
    return { ...at, tls, login: LOGIN, authority: this.identity.certificate };
  }

  /** Listens, again at the same port. */
  async back(): Promise<void> {
    const { tls } = this.options;
    const { certificate: cert, key } = this.identity;
    const server = new SMTPServer({
      ...(tls ? { cert, key, secure: tls === 'implicit' } : { hideSTARTTLS: true, authOptional: true }),
      disableReverseLookup: true,
      logger: false,
      onAuth: ({ username, password }, _session, done) => {
        this.logins.push(username);
        const isRight = username === LOGIN.user && password === LOGIN.password;
        if (isRight) done(null, { user: username });
        else done(errorOf({ code: 535, text: 'wrong password' }));
      },
      onConnect: (_session, done) => {
        this.connections += 1;
        this.atOnce += 1;
        this.mostAtOnce = Math.max(this.mostAtOnce, this.atOnce);
        done();
      },
      onClose: () => (this.atOnce -= 1),
      onMailFrom: (_address, _session, done) => say(this.toSender(), done),
      onRcptTo: ({ address }, _session, done) => {
        this.asks += 1;
        say(this.toRecipient(address), done);
      },
      onData: (stream, session, done) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on(
          'end',
          () => void this.take(Buffer.concat(chunks).toString(), session).then((to) => say(this.toMail(to), done)),
        );
      },
    });
    // A client that goes away in the middle.
    server.on('error', () => {});
    this.server = server;
    await new Promise<void>((resolve) => server.listen(this.port, '127.0.0.1', resolve));
    this.port = (server.server.address() as AddressInfo).port;
  }

  /** Ends all connections, and listens no more. */
  async stop(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    if (!server) return;
    for (const connection of server.connections as Set<{ _socket: { destroy(): void } }>) connection._socket.destroy();
    await new Promise<void>((resolve) => server.close(resolve));
  }

  /** Waits until there are as many mails. */
  async gets(count: number): Promise<Received[]> {
    return eventually(`${count} mails`, () => this.received.length >= count && this.received);
  }

  /** Waits until a client has named a recipient. */
  async asked(): Promise<void> {
    await eventually('a recipient', () => this.asks > 0);
  }

  /** Waits until there are so many connections. */
  async has(count: number): Promise<void> {
    await eventually(`${count} connections`, () => this.atOnce === count);
  }

  private async take(raw: string, session: SMTPServerSession): Promise<string> {
    const [to = ''] = session.envelope.rcptTo.map(({ address }) => address);
    const mail = await simpleParser(raw);
    this.received.push({ to, raw, mail, isEncrypted: session.secure, user: session.user as string | undefined });
    return to;
  }
}

function say(answer: Answer, done: (error?: Error | null) => void): void {
  if (answer === 'hang') return;
  done(answer === 'accept' ? null : errorOf(answer));
}

function errorOf({ code, text }: { code: number; text: string }): Error {
  return Object.assign(new Error(text), { responseCode: code });
}
