import { createHmac, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AccountCaller } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import { isFromOwnPage } from '../../domain/identity/same-origin.js';
import { authenticate } from '../../services/identity/sessions/authenticate.js';
import type { App } from '../../services/parts/parts.js';
import { beginRenewal } from '../../services/identity/sign-in/renew-session.js';
import { clientAddress, clientNetwork } from '../access/client.js';
import {
  companyCookie,
  formCookie,
  isByCookie,
  ownOrigin,
  provenanceOf,
  sessionCookie,
  setCompanyCookie,
  setFormCookie,
} from '../access/cookies.js';
import { FORM_TOKEN } from './forms.js';
import { ownPath, returnPathOf } from './return-to.js';

/** Who looks at a page. */
export interface Visitor {
  /** The user who is signed in with this browser. */
  caller: AccountCaller | undefined;
  /** What the tokens of the visitor's forms are made of: something that only this browser and this server know. */
  formSecret: string;
}

/** Returns the user whose session the cookie of a request has, and records its use; undefined: nobody is signed in. */
export function signedIn(platform: App, request: FastifyRequest): AccountCaller | undefined {
  const token = sessionCookie(request);
  if (token === undefined) return undefined;
  try {
    const caller = authenticate(platform, token, undefined, clientAddress(request));
    return caller.kind === 'api_key' ? undefined : caller;
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

/** Returns the secret of the forms for somebody who is signed in: each session has its own. Otherwise the browser gets one, once. */
export function formSecretOf(
  { ids }: App,
  request: FastifyRequest,
  reply: FastifyReply,
  caller: AccountCaller | undefined,
): string {
  const known = caller ? sessionCookie(request) : formCookie(request);
  if (known !== undefined) return known;
  const secret = ids.hex(16);
  setFormCookie(reply, secret);
  return secret;
}

/** Returns the token that every form of a visitor has. It does not tell the secret that it is made of. */
export function formTokenOf(secret: string): string {
  return createHmac('sha256', secret).update('form').digest('hex');
}

/** Refuses with COOKIE_REFUSED a form that no page of this control plane has sent. */
export function checkOrigin(platform: App, request: FastifyRequest): void {
  const own = ownOrigin(platform, request);
  if (isFromOwnPage(provenanceOf(request), own)) return;
  throw new Refusal(
    'COOKIE_REFUSED',
    `this form was not sent from a page of ${own}; open the page there and try again`,
  );
}

/** Refuses with COOKIE_REFUSED a form without the token of this visitor's forms. */
export function checkFormToken(request: FastifyRequest, { formSecret }: Visitor): void {
  const given = (request.body as Record<string, unknown> | undefined)?.[FORM_TOKEN];
  const [one, other] = [Buffer.from(typeof given === 'string' ? given : ''), Buffer.from(formTokenOf(formSecret))];
  if (one.length === other.length && timingSafeEqual(one, other)) return;
  throw new Refusal(
    'COOKIE_REFUSED',
    'this form is of another visit, or this browser keeps no cookie of this address: it takes cookies only at an address with https, or at localhost; send the form again',
  );
}

/**
 * Returns where a browser goes first that opens a page, if its session is to be renewed silently; undefined: nowhere. Only a page that a
 * person opens leads there: no script, frame, form, or page that a browser loads in advance.
 */
export async function renewFirst(
  platform: App,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<string | undefined> {
  const token = sessionCookie(request);
  const returnTo = ownPath(request.url);
  if (token === undefined || !isByCookie(request) || returnTo === undefined || !isOpened(request)) return undefined;
  const browser = companyCookie(request) ?? platform.ids.hex(16);
  const next = await beginRenewal(platform, token, (issuerId) => ({
    browser,
    network: clientNetwork(request),
    redirectUri: ownOrigin(platform, request) + returnPathOf(issuerId),
    returnTo,
  }));
  if (next !== undefined) setCompanyCookie(reply, browser);
  return next;
}

/** Tells whether a person opens a page in a tab. Browsers that do not say so renew nothing. */
function isOpened({ method, headers }: FastifyRequest): boolean {
  return (
    method === 'GET' &&
    headers['sec-fetch-mode'] === 'navigate' &&
    headers['sec-fetch-dest'] === 'document' &&
    headers['sec-purpose'] === undefined
  );
}
