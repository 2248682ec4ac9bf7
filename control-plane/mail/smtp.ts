import type { Clock, Timer } from '../../shared/clock.js';
import type { Delivery, Mail, MailTransport } from '../domain/mail/mail.js';
import type { SmtpSettings } from './settings.js';
import { SmtpSession, unreachable } from './smtp-session.js';

/** The longest that one mail may take, with its connection. */
const LONGEST_MS = 60_000;
/** For so long a connection is kept for the next mail, and for so many mails. */
const IDLE_MS = 20_000;
const MAILS_A_SESSION = 100;

/** Sends mails by a mail server. Keeps connections for the next mails for a while. */
export class SmtpTransport implements MailTransport {
  private readonly idle: { session: SmtpSession; end: Timer }[] = [];
  private readonly busy = new Set<AbortController>();
  private isClosed = false;

  constructor(
    private readonly settings: SmtpSettings,
    private readonly clock: Clock,
  ) {}

  async send(mail: Mail): Promise<Delivery> {
    const control = new AbortController();
    const late = this.clock.schedule(LONGEST_MS, () => control.abort());
    this.busy.add(control);
    try {
      const message = await compose(mail, this.settings);
      const session = await this.open(control.signal);
      const delivery = await session.send({ from: this.settings.from.address, to: mail.to }, message, control.signal);
      this.keep(session);
      return delivery;
    } catch (error) {
      return unreachable(error);
    } finally {
      late.cancel();
      this.busy.delete(control);
    }
  }

  close(): void {
    this.isClosed = true;
    for (const control of this.busy) control.abort();
    for (const { session, end } of this.idle.splice(0)) {
      end.cancel();
      session.close();
    }
  }

  /** Returns a session that was kept, if the server has not ended it meanwhile, or a new one. */
  private async open(signal: AbortSignal): Promise<SmtpSession> {
    for (let kept = this.idle.pop(); kept; kept = this.idle.pop()) {
      const { session, end } = kept;
      end.cancel();
      const isAlive = await session.reset(signal).then(
        () => true,
        () => false,
      );
      if (isAlive) return session;
      session.close();
    }
    return SmtpSession.open(this.settings, this.clock, signal);
  }

  private keep(session: SmtpSession): void {
    if (this.isClosed || !session.isOpen || session.sent >= MAILS_A_SESSION) return session.close();
    const kept = {
      session,
      end: this.clock.schedule(IDLE_MS, () => {
        this.idle.splice(this.idle.indexOf(kept), 1);
        session.close();
      }),
    };
    this.idle.push(kept);
  }
}

/** Writes a mail as the server gets it. It is the same at each attempt, but for the boundary between its parts. */
async function compose(mail: Mail, { from }: SmtpSettings): Promise<Buffer> {
  const { default: MailComposer } = await import('nodemailer/lib/mail-composer');
  const { id, to, subject, text, html, createdAt, unsubscribeUrl } = mail;
  const oneClick = {
    'List-Unsubscribe': `<${unsubscribeUrl ?? ''}>`,
    'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
  };
  return new MailComposer({
    from,
    to: {
      name: '',
      address: to,
    },
    subject,
    text,
    html,
    messageId: `<${id}@${from.address.split('@')[1] ?? 'localhost'}>`,
    date: new Date(createdAt),
    headers: {
      'Auto-Submitted': 'auto-generated',
      ...(unsubscribeUrl === null ? {} : oneClick),
    },
    disableFileAccess: true,
    disableUrlAccess: true,
  })
    .compile()
    .build();
}
