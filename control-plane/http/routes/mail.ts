import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { changeMailChoices, getMailChoices, unsubscribe, type MailChoices } from '../../services/mail/preferences.js';
import { readUnsubscribeToken } from '../../services/mail/unsubscribe.js';
import type { App } from '../../services/parts/parts.js';
import { ACCOUNT, PUBLIC, accountOf } from '../access/policy.js';
import { body, flag, optional, text } from '../schema/schemas.js';
import type { Routes } from './routes.js';

const choices = {
  low_balance: flag('Whether you are warned when the balance of an organization lasts less than 24 hours'),
  disks: flag('Whether you are warned before disks are destroyed because nobody has paid'),
  money: flag(
    'Whether you are told of payments, if you are an admin, and of instances that were stopped for lack of balance',
  ),
  caps: flag('Whether you are told when 50, 80 and 100 percent of a cap of an organization or an API key are used up'),
  notices: flag('Whether you are told what the operator says about machines on which you have instances'),
};
const invites = flag(
  'Whether invitations are mailed to your address. Without the mails you find them in `GET /v1/me/invites`. Whoever gets such a mail can end them, too',
);
const MailSettings = Type.Object(
  {
    sends_mail: flag('Whether this control plane sends mails; if not, the other fields have no effect'),
    ...choices,
    security: flag('Always true: you are told of sign-ins from new addresses'),
    invites,
  },
  { title: 'MailSettings' },
);

/** Routes for the signed-in user: which mails it gets. */
export const mailSettingsRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/me/mail',
    {
      config: { policy: ACCOUNT },
      schema: { operationId: 'getMailSettings', summary: 'Get which mails you get', response: { 200: MailSettings } },
    },
    (request) => settingsView(platform, getMailChoices(platform, accountOf(request))),
  );

  app.patch(
    '/v1/me/mail',
    {
      config: { policy: ACCOUNT },
      schema: {
        operationId: 'changeMailSettings',
        summary: 'Choose which mails you get',
        description: 'Mails about security cannot be switched off.',
        body: body(optional({ ...choices, invites })),
        response: { 200: MailSettings },
      },
    },
    (request) => settingsView(platform, changeMailChoices(platform, accountOf(request), request.body)),
  );
};

function settingsView({ mail }: App, chosen: MailChoices) {
  return { sends_mail: mail !== null, ...chosen, security: true };
}

const TokenParams = Type.Object({ token: text('The token in the mail') });
/** What a mail program or a browser sends with it, which says nothing more. */
const BODY_BYTES = 4_096;

/** Routes for links in mails, by RFC 8058. Only the POST ends mails: scanners and previews follow links. */
export const unsubscribeRoutes: Routes = (app, platform) => {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string', bodyLimit: BODY_BYTES }, (_request, _body, done) =>
    done(null, undefined),
  );

  app.get(
    '/v1/mail/unsubscribe/:token',
    {
      config: { policy: PUBLIC, refusals: ['NOT_FOUND'] },
      schema: {
        operationId: 'getUnsubscribePage',
        summary: 'Get a page with a button that ends mails of one kind',
        description: 'Changes nothing.',
        produces: ['text/html'],
        params: TokenParams,
        response: { 200: text('The page') },
      },
    },
    (request, reply) => {
      const ended = readUnsubscribeToken(platform.encryption, request.params.token);
      const question =
        'invitesTo' in ended
          ? 'Do you want no more invitations by mail? You find them when you sign in, and can have the mails again on the page of your account.'
          : 'Do you want no more of these warnings by mail?';
      return page(reply, `<p>${question}</p><form method="post"><button>No more mails</button></form>`);
    },
  );

  app.post(
    '/v1/mail/unsubscribe/:token',
    {
      config: { policy: PUBLIC, rawBody: true, refusals: ['NOT_FOUND'] },
      schema: {
        operationId: 'cancelMails',
        summary: 'End mails of one kind',
        description: 'For mail programs, by RFC 8058. The token in the address is all that it needs.',
        produces: ['text/html'],
        params: TokenParams,
        response: { 200: text('A page that says so') },
      },
    },
    (request, reply) => {
      const ended = unsubscribe(platform, request.params.token);
      const what = 'invitesTo' in ended ? 'invitations by mail' : 'of these warnings';
      return page(reply, `<p>You get no more ${what}. You can switch them on again on the page of your account.</p>`);
    },
  );
};

/** Answers a page without scripts, which no other page can show, and which tells nobody its address. */
function page(reply: FastifyReply, content: string): never {
  void reply
    .type('text/html; charset=utf-8')
    .header(
      'Content-Security-Policy',
      "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    )
    .header('Referrer-Policy', 'no-referrer');
  return `<!doctype html><html lang="en"><title>Mails</title><body>${content}</body></html>` as never;
}
