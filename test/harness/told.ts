import { OPERATORS, type EventType } from '../../control-plane/domain/event.js';
import { envelopeOf, type Envelope } from '../../control-plane/services/events/envelope.js';
import { eventsAfter, newestNumber } from '../../control-plane/services/events/read.js';
import type { TestControlPlane } from './control-plane.js';

/** Reads what a stream has been told since this was made or last read. */
export function listening(test: TestControlPlane, stream = OPERATORS): (type?: EventType) => Envelope[] {
  const { platform } = test.core;
  let number = platform.store.transact((tx) => newestNumber(tx, stream));
  return (type) => {
    const rows = test.core.platform.store.transact((tx) => eventsAfter(tx, stream, number));
    number = rows.at(-1)?.number ?? number;
    return rows.map((row) => envelopeOf(platform, row)).filter((event) => type === undefined || event.type === type);
  };
}
