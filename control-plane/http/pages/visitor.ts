import { createHmac, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AccountCaller } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import { isFromOwnPage } from '../../domain/identity/same-origin.js';
import { authenticate } from '../../services/identity/sessions/authenticate.js';
import type { App } from '../../services/parts/parts.js';
import { clientAddress } from '../access/client.js';
import { formCookie, ownOrigin, provenanceOf, sessionCookie, setFormCookie } from '../access/cookies.js';
import { FORM_TOKEN } from './forms.js';

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
