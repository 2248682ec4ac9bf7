import { OPERATORS, eventId, type EventType } from '../../domain/event.js';
import { BEFORE_OUTPUT } from '../../domain/instances/instance-codes.js';
import type { TEST_TYPE } from '../../domain/webhook.js';
import type { Row } from '../../store/schema.js';
import type { Platform } from '../system/platform.js';

/** An event as clients see it, in a page, a stream and a webhook: JSON with the attributes that CloudEvents names. */
export interface Envelope {
  specversion: '1.0';
  id: string;
  source: string;
  type: EventType | typeof TEST_TYPE;
  subject: string;
  time: string;
  data: Record<string, unknown>;
}

/** Describes an event to whoever may read its stream. */
export function envelopeOf(platform: Pick<Platform, 'publicUrl'>, event: Row<'events'>): Envelope {
  const { stream, type, subject, at, kind, message } = event;
  const told = kind === null ? {} : { kind, message: withoutOutput(message ?? '') };
  const data = { ...(JSON.parse(event.data) as Record<string, unknown>), ...told };
  const source = sourceOf(platform, stream);
  return { specversion: '1.0', id: eventId(event), source, type, subject, time: new Date(at).toISOString(), data };
}

/** Returns the URL that names whose events a stream has. Without a public URL, it is a path. */
export function sourceOf({ publicUrl }: Pick<Platform, 'publicUrl'>, stream: string): string {
  return `${publicUrl ?? ''}${stream === OPERATORS ? '/v1/operator' : `/v1/orgs/${stream}`}`;
}

/** Returns a message without what the workload has printed, which may contain secrets. */
function withoutOutput(message: string): string {
  const [words = ''] = message.split(`${BEFORE_OUTPUT}\n`, 1);
  return words;
}
