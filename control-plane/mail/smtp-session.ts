import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { Clock } from '../../shared/clock.js';
import type { Delivery } from '../domain/mail/mail.js';
import type { SmtpSettings } from './settings.js';

const CONNECT_MS = 10_000;
/** After so long without an answer of one address of the server, the next is tried. */
const ADDRESS_MS = 2_000;
const GREETING_MS = 15_000;
/** Without a byte from the server. */
const SILENT_MS = 30_000;

export interface Envelope {
  from: string;
  to: string;
}

/** What nodemailer says of a failure. */
interface SmtpError extends Error {
  command?: string;
  responseCode?: number;
  response?: string;
  code?: string;
}

/** One connection to the mail server, over TLS unless the settings say otherwise, and logged in. */
export class SmtpSession {
  /** What has ended the connection; undefined: it is open. */
  private fault: Error | undefined;
  private readonly ended: Promise<never>;
  sent = 0;

  private constructor(private readonly connection: SMTPConnection) {
    this.ended = new Promise<never>((_resolve, reject) => {
      const end = (error: Error) => {
        this.fault ??= error;
        reject(error);
      };
      connection.on('error', end);
      connection.on('end', () => end(new Error('the connection was closed')));
    });
    // Nobody may be waiting for it.
    this.ended.catch(() => {});
  }

  /** Connects and logs in. Rejects when that fails, which `signal` also makes it do. */
  static async open(settings: SmtpSettings, clock: Clock, signal: AbortSignal): Promise<SmtpSession> {
    const { default: Connection } = await import('nodemailer/lib/smtp-connection');
    const { host, port, tls, login, authority } = settings;
    const connection = await connectTo(host, port, clock, signal);
    const session = new SmtpSession(
      new Connection({
        host,
        port,
        connection,
        secure: tls === 'implicit',
        ...(tls === 'off' ? { ignoreTLS: true } : { requireTLS: true }),
        tls: {
          minVersion: 'TLSv1.2',
          ...(authority === null ? {} : { ca: authority }),
        },
        greetingTimeout: GREETING_MS,
        connectionTimeout: GREETING_MS,
        socketTimeout: SILENT_MS,
        logger: false,
      }),
    );
    try {
      await session.until(signal, () => session.begin(login));
      return session;
    } catch (error) {
      session.close();
      throw error;
    }
  }

  /** Tells whether the connection is still open, as far as this side knows. */
  get isOpen(): boolean {
    return this.fault === undefined;
  }

  /** Prepares the connection for another mail. Rejects if the server has ended it, or when `signal` says so. */
  async reset(signal: AbortSignal): Promise<void> {
    await this.until(signal, () => this.unlessEnded((done) => this.connection.reset(done)));
  }

  /** Gives the server one mail. Never rejects. Afterwards the session is open if the server has answered before `signal` says to end. */
  async send(envelope: Envelope, message: Buffer, signal: AbortSignal): Promise<Delivery> {
    let isGiven = false;
    function* content() {
      // Read only when the server has asked for it.
      isGiven = true;
      yield message;
    }
    this.sent += 1;
    try {
      const give = (done: (error?: Error | null, result?: { response: string }) => void) =>
        this.connection.send({ ...envelope, size: message.length }, Readable.from(content()), done);
      const { response } = await this.until(signal, () => this.unlessEnded(give));
      return { outcome: 'sent', answer: plain(response) };
    } catch (error) {
      const delivery = deliveryOf(error as SmtpError, isGiven);
      if (delivery.outcome === 'unknown' || delivery.outcome === 'unreachable') this.close();
      return delivery;
    }
  }

  close(): void {
    this.fault ??= new Error('the connection was closed here');
    this.connection.close();
  }

  private async begin(login: SmtpSettings['login']): Promise<void> {
    await this.unlessEnded((done) => this.connection.connect(done));
    if (!login) return;
    const { user, password: pass } = login;
    await this.unlessEnded((done) => this.connection.login({ user, pass }, done));
  }

  /** Runs `work`, and closes the connection when `signal` says so, which ends `work`. */
  private async until<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    const end = () => this.close();
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
    try {
      return await work();
    } finally {
      signal.removeEventListener('abort', end);
    }
  }

  /** Runs one step of nodemailer's, which ends with `done`, or not at all when the connection ends. */
  private unlessEnded<Result>(step: (done: (error?: Error | null, result?: Result) => void) => void): Promise<Result> {
    const result = new Promise<Result>((resolve, reject) => {
      step((error, value) => (error ? reject(error) : resolve(value as Result)));
    });
    return Promise.race([result, this.ended]);
  }
}

/** What could not be done before there was a mail to be given. */
export function unreachable(error: unknown): Delivery {
  return { outcome: 'unreachable', answer: wordsOf(error as SmtpError) };
}

/**
 * Judges a failure. Only an answer to the recipient or to the text is about this mail; an answer to anything else, such as the login or the
 * sender, is about all mails.
 */
function deliveryOf(error: SmtpError, isGiven: boolean): Delivery {
  const { responseCode, command, code } = error;
  const answer = wordsOf(error);
  if (responseCode === undefined && (code === 'EENVELOPE' || code === 'EMESSAGE'))
    return { outcome: 'rejected', answer };
  if (responseCode === undefined) return { outcome: isGiven ? 'unknown' : 'unreachable', answer };
  const isAboutMail = (command === 'RCPT TO' || command === 'DATA') && responseCode !== 421;
  if (!isAboutMail) return { outcome: 'unreachable', answer };
  return { outcome: responseCode >= 500 ? 'rejected' : 'postponed', answer };
}

function wordsOf({ message, response, command, code }: SmtpError): string {
  const where = command === undefined || command === 'CONN' ? '' : ` (in answer to ${command})`;
  return plain(response === undefined ? `${message}${code === undefined ? '' : ` (${code})`}` : `${response}${where}`);
}

/** Makes one line of at most 300 characters of what a server has said. */
function plain(text: string): string {
  return text
    .replace(/\s+/g, ' ')
    .replace(/[^\P{C} ]/gu, '?')
    .slice(0, 300);
}

/** Connects by the names that this machine knows: nodemailer would ask name servers itself, also for localhost. */
function connectTo(host: string, port: number, clock: Clock, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, autoSelectFamily: true, autoSelectFamilyAttemptTimeout: ADDRESS_MS });
    const fail = (error: Error) => {
      end();
      socket.destroy();
      reject(error);
    };
    const abort = () => fail(new Error('the attempt took too long'));
    const late = clock.schedule(CONNECT_MS, () => fail(new Error('the server does not answer')));
    const end = () => {
      late.cancel();
      signal.removeEventListener('abort', abort);
      socket.removeListener('error', fail);
    };
    signal.addEventListener('abort', abort, { once: true });
    socket.once('error', fail);
    socket.once('connect', () => {
      end();
      resolve(socket);
    });
  });
}
