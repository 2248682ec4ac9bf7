import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Type, type TObject } from 'typebox';
import type { AccountCaller } from '../../domain/caller.js';
import { Refusal, type RefusalCode } from '../../domain/refusal.js';
import { checkFreshProof, checkProofWithFactor } from '../../services/identity/sessions/fresh-proof.js';
import type { App } from '../../services/parts/parts.js';
import { clearSessionCookie, companyCookie, isByCookie, refuseAmongInstances } from '../access/cookies.js';
import { ERRORS, type ErrorCode } from '../errors/error-codes.js';
import { describeError, setErrorHeaders } from '../errors/errors.js';
import { PUBLIC } from '../access/policy.js';
import { readForm } from '../schema/read-bodies.js';
import { text } from '../schema/schemas.js';
import type { Detail } from '../schema/validation.js';
import { FORM_TOKEN, type Field, type Filled } from './forms.js';
import { html, type Part } from './html.js';
import { documentOf, PAGE_HEADERS, SCRIPT_PAGE_HEADERS, type Page } from './layout.js';
import { ownPath } from './return-to.js';
import {
  checkFormToken,
  checkOrigin,
  formSecretOf,
  formTokenOf,
  renewFirst,
  signedIn,
  type Visitor,
} from './visitor.js';

/** What a page is made of. */
export interface View extends Filled {
  platform: App;
  /** Who is signed in; undefined: nobody, or the page asks nobody. */
  caller: AccountCaller | undefined;
  /** The secret by which this browser is known while it signs in at a company. */
  browser: string | undefined;
  request: FastifyRequest;
}

/** A page. It can have forms. */
export interface PageSpec {
  path: string;
  operation: string;
  summary: string;
  /**
   * Who sees it: `session`: others are sent to the sign-in and come back; `proof`: also a fresh proof of who that is, `proof with factor`:
   * for users with a second factor; `nobody`: it does not matter who is signed in.
   */
  needs: 'session' | 'proof' | 'proof with factor' | 'nobody' | 'anybody';
  /** Whether it has the script: for passkeys, and for a fragment of its address. */
  usesScript?: true;
  /** The parameters of its address that it reads; they are texts of strangers. */
  reads?: readonly string[];
  render: (view: View) => Page;
}

/** A form of a page. */
export interface FormSpec<Body extends TObject> {
  path: string;
  operation: string;
  summary: string;
  /** The page that shows the form; it is shown again if the form is refused. */
  page: PageSpec;
  fields: readonly Field[];
  body: Body;
  guessable?: true | 'per address';
  servedOnFullDisk?: true;
  /** Other words for a refusal than those for programs. */
  words?: Partial<Record<RefusalCode, string>>;
  /** Does what the form asks for, and returns the path of the next page, or a page that is shown only now. */
  submit: (given: Type.Static<Body>, visit: Visit) => Promise<string | Page> | string | Page;
}

export interface Visit {
  platform: App;
  request: FastifyRequest;
  reply: FastifyReply;
  caller: AccountCaller | undefined;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    page?: PageSpec;
    /** Where an error leads back to, if not to the address itself. */
    back?: string;
    form?: { fields: readonly Field[]; words: Partial<Record<RefusalCode, string>> };
  }
  interface FastifyRequest {
    visitor: Visitor | undefined;
  }
}

/** The largest form that is read. */
const FORM_BYTES = 16 * 1024;
export const SIGN_IN = '/sign-in';
export const PROVE = '/account/prove';

/** Returns the path of a page with parameters. Undefined ones are left out. */
export function pathTo(path: string, parameters: Record<string, string | undefined>): string {
  const given = Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const search = new URLSearchParams(given).toString();
  return search === '' ? path : `${path}?${search}`;
}

/** Prepares the routes of an app for pages: who looks at them, forms, and errors that people can read. */
export function servePages(app: FastifyInstance, platform: App): void {
  app.decorateRequest('visitor', undefined);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'buffer', bodyLimit: FORM_BYTES },
    async (_request: unknown, body: Buffer) => readForm(body),
  );
  app.addHook('onRequest', (request, reply, done) => {
    void reply.headers(headersOf(request)).type('text/html; charset=utf-8');
    try {
      const goTo = admit(platform, request, reply);
      if (goTo === undefined) return done();
      void reply.redirect(goTo, 303);
    } catch (error) {
      done(error as Error);
    }
  });
  app.addHook('onRequest', async (request, reply) => {
    if (!request.visitor?.caller) return undefined;
    const next = await renewFirst(platform, request, reply);
    return next === undefined ? undefined : reply.redirect(next, 303);
  });
  app.addHook('preValidation', (request, _reply, done) => {
    try {
      if (request.method === 'POST' && request.visitor) {
        checkFormToken(request, request.visitor);
        if (request.visitor.caller) admitAgain(platform, request);
      }
      done();
    } catch (error) {
      done(error as Error);
    }
  });
  app.setErrorHandler<FastifyError>((error, request, reply) => answerError(platform, error, request, reply));
}

/** Finds out who looks at a page. Returns where to go instead if somebody must sign in first. Refuses with COOKIE_REFUSED. */
function admit(platform: App, request: FastifyRequest, reply: FastifyReply): string | undefined {
  const { page } = request.routeOptions.config;
  if (!page) return undefined;
  refuseAmongInstances(platform, request);
  if (request.method === 'POST') checkOrigin(platform, request);
  const caller = page.needs === 'nobody' ? undefined : signedIn(platform, request);
  const isForUsers = page.needs !== 'nobody' && (page.needs !== 'anybody' || request.method === 'POST');
  if (isForUsers && !caller) return signInFirst(request, reply, page);
  if (caller && needsProof(platform, page, caller)) return pathTo(PROVE, { return_to: fromOf(request, page) });
  request.caller = caller;
  request.visitor = { caller, formSecret: formSecretOf(platform, request, reply, caller) };
  return undefined;
}

/** Looks again who is signed in once a form has arrived, which can take half a minute. Refuses with TOKEN_INVALID: nobody any more. */
function admitAgain(platform: App, request: FastifyRequest): void {
  const caller = signedIn(platform, request);
  if (!caller) throw new Refusal('TOKEN_INVALID', 'your session has ended meanwhile; sign in again');
  request.caller = caller;
  request.visitor = { caller, formSecret: request.visitor?.formSecret ?? '' };
}

function signInFirst(request: FastifyRequest, reply: FastifyReply, page: PageSpec): string {
  if (isByCookie(request)) clearSessionCookie(reply);
  return pathTo(SIGN_IN, { return_to: fromOf(request, page) });
}

/** Returns where somebody goes on who is sent elsewhere first. */
function fromOf(request: FastifyRequest, page: PageSpec): string | undefined {
  return request.method === 'POST' ? page.path : ownPath(request.url);
}

/** Tells whether somebody has to prove first who it is. */
function needsProof({ store }: App, { needs }: PageSpec, caller: AccountCaller): boolean {
  if (needs !== 'proof' && needs !== 'proof with factor') return false;
  const check = needs === 'proof' ? checkFreshProof : checkProofWithFactor;
  try {
    store.transact((tx) => check(tx, caller));
    return false;
  } catch (error) {
    if (error instanceof Refusal) return true;
    throw error;
  }
}

function headersOf({ routeOptions }: FastifyRequest): Readonly<Record<string, string>> {
  return routeOptions.config.page?.usesScript ? SCRIPT_PAGE_HEADERS : PAGE_HEADERS;
}

const schemaOf = (operation: string, summary: string) => ({
  hide: true,
  operationId: operation,
  summary,
  response: { 200: text('The page') },
});

export function addPage(app: FastifyInstance, platform: App, page: PageSpec): void {
  const { path, operation, summary } = page;
  app.get(path, { config: { policy: PUBLIC, page }, schema: schemaOf(operation, summary) }, (request) =>
    documentOf(page.render(viewOf(platform, request, parametersOf(request, page))), page.usesScript),
  );
}

export function addForm<Body extends TObject>(app: FastifyInstance, platform: App, form: FormSpec<Body>): void {
  const { path, operation, summary, page, fields, body, guessable, servedOnFullDisk, words = {}, submit } = form;
  const fits = Type.Object({ ...body.properties, [FORM_TOKEN]: Type.String() }, { additionalProperties: false });
  app.post(
    path,
    {
      config: {
        policy: PUBLIC,
        page,
        form: { fields, words },
        ...(guessable === undefined ? {} : { guessable }),
        ...(servedOnFullDisk ? { servedOnFullDisk } : {}),
      },
      schema: { ...schemaOf(operation, summary), body: fits },
    },
    async (request, reply) => {
      const visit = { platform, request, reply, caller: request.visitor?.caller };
      const next = await submit(request.body as Type.Static<Body>, visit);
      if (typeof next !== 'string') return documentOf(next);
      return reply.redirect(ownPath(next) ?? '/', 303);
    },
  );
}

/** Returns the parameters of an address that a page reads; one that comes twice counts as absent. */
function parametersOf({ query }: FastifyRequest, { reads = [] }: PageSpec): Record<string, string> {
  const given = query as Record<string, unknown>;
  return Object.fromEntries(
    reads.flatMap((name) => {
      const value = Object.hasOwn(given, name) ? given[name] : undefined;
      return typeof value === 'string' ? [[name, value] as const] : [];
    }),
  );
}

function viewOf(
  platform: App,
  request: FastifyRequest,
  values: Record<string, string>,
  errors: ReadonlyMap<string, string> = new Map(),
): View {
  const { visitor } = request;
  return {
    platform,
    request,
    caller: visitor?.caller,
    browser: companyCookie(request),
    values,
    errors,
    formToken: formTokenOf(visitor?.formSecret ?? ''),
  };
}

/** Answers an error with a page: the page of the form, with what was typed and what is wrong, or one with the error alone. */
function answerError(platform: App, error: FastifyError, request: FastifyRequest, reply: FastifyReply) {
  const described = describeError(error, request);
  const { code } = described;
  const { page, form } = request.routeOptions.config;
  if (code === 'PROOF_REQUIRED' && page) return reply.redirect(pathTo(PROVE, { return_to: page.path }), 303);
  const words = form?.words[code as RefusalCode] ?? WORDS[code] ?? described.message;
  setErrorHeaders(reply, described);
  void reply.code(ERRORS[code].status).headers(headersOf(request)).type('text/html; charset=utf-8');
  const again = page && form && request.visitor && request.body !== undefined;
  const shown = again ? shownAgain(platform, request, page, form.fields, { ...described, message: words }) : undefined;
  const back = request.routeOptions.config.back ?? request.url;
  return reply.send(documentOf(shown ?? problemPage(words, request.id, back), page?.usesScript));
}

/** Words for errors whose message is for programs. */
const WORDS: Partial<Record<ErrorCode, string>> = {
  INTERNAL: 'Something went wrong here',
  PAYLOAD_TOO_LARGE: 'This form is too large',
  UNAVAILABLE: 'This cannot be done at the moment; try again shortly',
  UNSUPPORTED_MEDIA_TYPE: 'This is not a form of this page; open the page and try again',
};

/** Returns the page of a form with the values that were sent; undefined if the page cannot be shown any more. */
function shownAgain(
  platform: App,
  request: FastifyRequest,
  page: PageSpec,
  fields: readonly Field[],
  { code, message, ...extra }: { code: ErrorCode; message: string },
): Page | undefined {
  const wrong = code === 'VALIDATION_FAILED' ? errorsOf(fields, (extra as { details?: Detail[] }).details ?? []) : [];
  const errors = new Map(wrong);
  const values = Object.fromEntries(
    Object.entries(request.body as Record<string, unknown>).filter((entry): entry is [string, string] =>
      fields.some(({ name, type }) => name === entry[0] && type !== 'password' && typeof entry[1] === 'string'),
    ),
  );
  try {
    const { title, content } = page.render(viewOf(platform, request, values, errors));
    const summary = errors.size > 0 ? [...errors.values()] : [sentence(message)];
    return { title, content: [problemBox(summary), content] };
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

function errorsOf(fields: readonly Field[], details: readonly Detail[]): [string, string][] {
  return fields.flatMap(({ name, wrong }) => (details.some(({ path }) => path === name) ? [[name, wrong]] : []));
}

function problemBox(sentences: readonly string[]): Part {
  return html`<div class="problem" role="alert">${sentences.map((each) => html`<p class="wrong">${each}</p>`)}</div>`;
}

function problemPage(message: string, requestId: string, url: string): Page {
  const here = ownPath(url.split('?')[0]);
  return {
    title: 'This did not work',
    content: [
      problemBox([sentence(message)]),
      here !== undefined && html`<p><a href="${here}">Open the page again</a></p>`,
      html`<p>If you ask for help, give the number ${requestId}.</p>`,
    ],
  };
}

function sentence(words: string): string {
  const text = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
