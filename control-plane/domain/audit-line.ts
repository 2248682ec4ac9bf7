/** Where audit lines can go. */
export const AUDIT_OUTPUTS = ['stdout', 'webhook'] as const;
export type AuditOutputName = (typeof AUDIT_OUTPUTS)[number];

/** `audit`: the operators' audit log. `event`: what operators are told. `organization`: what was done in an organization. */
export const AUDIT_SOURCES = ['audit', 'event', 'organization'] as const;
export type AuditSource = (typeof AUDIT_SOURCES)[number];

/**
 * Most bytes of a line, with its end. A pipe and a local socket take so many bytes whole or not at all (PIPE_BUF on Linux), so no other
 * program's line comes into the middle of one.
 */
export const MOST_LINE_BYTES = 4_096;

/** What a line says, in this order. Contains no secret, no address of a renter and no network address. */
export interface AuditFacts {
  source: AuditSource;
  /** Unique, and of the same content for ever: {@link auditId}. */
  id: string;
  /** ISO 8601 with milliseconds. */
  at: string;
  actor: { kind: string; id?: string | null; email?: string };
  action: string;
  organization_id?: string;
  /** The id or the path of what it was done to. */
  subject: string;
  details: unknown;
}

/** A line of a source, at its place. */
export interface PlacedLine {
  source: AuditSource;
  number: number;
  /** Milliseconds since 1970 UTC. */
  at: number;
  /** Without the end of the line. */
  text: string;
}

/** The action of a line that stands for others, which were deleted before they were delivered. */
export const LINES_LOST = 'audit_lines.lost';

/** The longest texts, and the longest lists, that a line keeps which would be too long otherwise: the next ones if it still is. */
const CUTS = [
  { chars: 512, items: 16 },
  { chars: 128, items: 8 },
  { chars: 32, items: 2 },
];
/** Of the texts that stay when all details are gone: an action is a word of a closed list, and an id is shorter. */
const MOST_CHARS = 100;

// oxlint-disable-next-line no-control-regex -- what JSON leaves as it is, and what moves or hides text on a screen
const UNSEEN = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/**
 * Returns the id of a line. The number alone is given again after a restore, with another content; the epoch is that of the moment in which
 * the line was recorded, so a line has the same id on both sides of a restore.
 */
export function auditId(source: AuditSource, epoch: number, number: number): string {
  return `${source}:${epoch}.${number}`;
}

/**
 * Writes a line: JSON without line breaks, control characters and invisible ones, at most {@link MOST_LINE_BYTES} with its end. What is too
 * long loses the ends of its texts and lists, and then all details; it has `"cut":true`.
 */
export function auditLine(facts: AuditFacts): string {
  const whole = written(facts);
  if (fits(whole)) return whole;
  for (const limits of CUTS) {
    const text = written({ ...facts, details: shortened(facts.details, limits), cut: true });
    if (fits(text)) return text;
  }
  const { source, id, at, actor, action, subject } = facts;
  const [kind, what, object] = [actor.kind, action, subject].map((text) => beginning(text, MOST_CHARS));
  return written({ source, id, at, actor: { kind }, action: what, subject: object, details: {}, cut: true });
}

/** Returns the line that stands for those of a source from number `first` to `last`, which were deleted before they were delivered. */
export function lostLine(
  source: AuditSource,
  { epoch, first, last, at }: { epoch: number; first: number; last: number; at: number },
): PlacedLine {
  const text = auditLine({
    source,
    id: `${source}:lost:${epoch}.${first}-${last}`,
    at: new Date(at).toISOString(),
    actor: { kind: 'system' },
    action: LINES_LOST,
    subject: source,
    details: { lines: last - first + 1 },
  });
  return { source, number: last, at, text };
}

/** Returns the oldest lines of all sources, at most `most`. Those of one source stay in their order. */
export function oldestLines(sources: readonly (readonly PlacedLine[])[], most: number): PlacedLine[] {
  const rests = sources.map((lines) => [...lines]);
  const taken: PlacedLine[] = [];
  while (taken.length < most) {
    const first = rests.filter((rest) => rest.length > 0).sort(([a], [b]) => (a?.at ?? 0) - (b?.at ?? 0))[0];
    const line = first?.shift();
    if (!line) break;
    taken.push(line);
  }
  return taken;
}

function written(facts: object): string {
  return JSON.stringify(facts).replace(
    UNSEEN,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function fits(text: string): boolean {
  return Buffer.byteLength(text) < MOST_LINE_BYTES;
}

/** Cuts a text, but not between the two halves of a character. */
function beginning(text: string, chars: number): string {
  return text.length > chars ? `${text.slice(0, chars).replace(/[\ud800-\udbff]$/, '')}…` : text;
}

function shortened(value: unknown, limits: (typeof CUTS)[number]): unknown {
  if (typeof value === 'string') return beginning(value, limits.chars);
  if (Array.isArray(value)) return value.slice(0, limits.items).map((each) => shortened(each, limits));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shortened(each, limits)]));
}
