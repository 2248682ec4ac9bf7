import { hash } from 'node:crypto';
import { SerializerSelector } from '@fastify/fast-json-stringify-compiler';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import type { ListOrPage } from '../../services/system/pages.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Set if the answer has an `ETag`, and `If-None-Match` is answered with 304. */
    hasETag?: true;
  }
}

/** JSON, and a hash that differs where the JSON does. */
export interface Text {
  json: string;
  hash: string;
}

interface Body {
  bytes: Buffer;
  etag: string;
}

const JSON_TYPE = 'application/json; charset=utf-8';
/** The bodies of an object that a service remembers, by form. They are kept for as long as the object. */
const bodies = new WeakMap<object, Map<string, Body>>();

/** Returns a function that returns the text of a service's object, and keeps it for as long as the object. */
export function textOf<Item extends object>(schema: TSchema, view: (item: Item) => unknown): (item: Item) => Text {
  let serialize: ((value: unknown) => string) | undefined;
  const texts = new WeakMap<Item, Text>();
  return (item) => {
    const known = texts.get(item);
    if (known !== undefined) return known;
    serialize ??= SerializerSelector()({}, {})({ schema, method: 'GET', url: '', httpStatus: '200' });
    const json = serialize(view(item));
    const text = { json, hash: hashOf(json) };
    texts.set(item, text);
    return text;
  };
}

/** Returns the text of a list, without `next_cursor` if it is whole. Its hash is made of those of the items, which are known. */
export function pageText<Item>({ items, next_cursor }: ListOrPage<Item>, textOfItem: (item: Item) => Text): Text {
  const texts = items.map(textOfItem);
  const cursor = next_cursor === undefined ? '' : `,"next_cursor":${JSON.stringify(next_cursor)}`;
  const json = `{"items":[${texts.map((text) => text.json).join(',')}]${cursor}}`;
  return { json, hash: hashOf(texts.map((text) => text.hash).join() + cursor) };
}

/** Returns the text of an object that is sent as it is, such as the document of the API. */
export function plainText(object: object): Text {
  const json = JSON.stringify(object);
  return { json, hash: hashOf(json) };
}

function hashOf(text: string): string {
  return hash('sha1', text, 'base64url');
}

/**
 * Sends the body of an object that a service remembers, or 304 if the client has it: `make` makes its text once for each `form`. The
 * `ETag` is a hash of the body, so an object that is made again, and is the same, has the same.
 */
export function sendBody(
  headers: FastifyRequest['headers'],
  reply: FastifyReply,
  source: object,
  make: () => Text,
  form = '',
): never {
  const { bytes, etag } = bodyOf(source, form, make);
  void reply.header('ETag', etag);
  const known = headers['if-none-match'];
  if (known !== undefined && namesETag(known, etag)) return reply.code(304).send() as never;
  return reply.type(JSON_TYPE).send(bytes) as never;
}

function bodyOf(source: object, form: string, make: () => Text): Body {
  const forms = bodies.get(source) ?? new Map<string, Body>();
  const known = forms.get(form);
  if (known) return known;
  const text = make();
  const body = { bytes: Buffer.from(text.json), etag: `"${text.hash}"` };
  bodies.set(source, forms.set(form, body));
  return body;
}

/** Tells whether the header `If-None-Match` names an ETag. */
export function namesETag(header: string, etag: string): boolean {
  return (
    header === etag || header.split(',').some((one) => one.trim().replace(/^W\//, '') === etag || one.trim() === '*')
  );
}
