import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

/** The control plane knows a key for so long. */
const KEPT_MS = 24 * 60 * 60_000;
const PREFIX = 'gpurent.request.';

export interface RequestKey {
  /** The Idempotency-Key. */
  key: string;
  /** Whether the request was sent, and nobody knows whether it has made something. */
  isUnanswered: boolean;
  /** What was sent beside what names the request, such as the price that was shown. Nothing secret. */
  terms?: unknown;
}

interface Kept extends RequestKey {
  at: number;
}

/** What a tab keeps that has no storage, or no room there. */
const memory = new Map<string, string>();

/** Returns the name of a request: a hash, because its body can contain secrets. The order of fields does not count. */
export function nameOf(request: readonly unknown[]): string {
  return PREFIX + bytesToHex(sha256(utf8ToBytes(JSON.stringify(sorted(request)))));
}

export function keptKey(name: string): RequestKey | undefined {
  const kept = read(name);
  return kept && !isOld(kept) ? kept : undefined;
}

/** Keeps the key of a request in this tab for a day, also over a reload. */
export function keepKey(name: string, { key, isUnanswered, terms }: RequestKey): void {
  forgetOld();
  const text = JSON.stringify({ key, isUnanswered, terms, at: read(name)?.at ?? Date.now() } satisfies Kept);
  try {
    sessionStorage.setItem(name, text);
  } catch {
    memory.set(name, text);
  }
}

export function forgetKey(name: string): void {
  memory.delete(name);
  stored(() => sessionStorage.removeItem(name));
}

function read(name: string): Kept | undefined {
  const text = memory.get(name) ?? stored(() => sessionStorage.getItem(name));
  try {
    return text ? (JSON.parse(text) as Kept) : undefined;
  } catch {
    return undefined;
  }
}

function isOld({ at }: Kept): boolean {
  return Math.abs(Date.now() - at) >= KEPT_MS;
}

function forgetOld(): void {
  const names = [...memory.keys(), ...(stored(() => Object.keys(sessionStorage)) ?? [])];
  for (const name of names.filter((each) => each.startsWith(PREFIX))) {
    const kept = read(name);
    if (kept && isOld(kept)) forgetKey(name);
  }
}

/** Returns what the storage of the tab answers; undefined where the browser refuses it. */
function stored<T>(access: () => T): T | undefined {
  try {
    return access();
  } catch {
    return undefined;
  }
}

/** Returns a copy with the fields of each object sorted by name. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(fields.map(([name, field]) => [name, sorted(field)]));
}
