import { withTimeout } from '../../../shared/clock.js';
import type { MeasurementAnswer } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { recent } from '../../../shared/recent.js';
import type { TimedUse } from '../../domain/instances/measurement.js';
import { validateMeasurements } from '../machines/message-validation.js';
import type { Platform } from '../system/platform.js';
import { timedUse } from './record.js';

const TIMEOUT_MS = 5_000;
/** An answer serves everybody who asks within this time: a new point appears every ten seconds. */
const FRESH_MS = 5_000;
/** Answers that are kept; each takes up to 300 kB. */
const MOST_ANSWERS = 100;
/** Queries that wait for their hosts. A request beyond them gets stored minutes. */
const MOST_WAITING = 1_000;

export interface MeasuredInstance {
  id: string;
  machine_id: string;
  num_gpus: number;
}

type Points = readonly TimedUse[];

interface Query extends MeasuredInstance {
  answer: (points: Points | null) => void;
}

/** Asks hosts for the points of the last hour. A host is asked once for all who want the same at the same time. */
export class MeasurementQueries {
  /** The connected hosts whose agents answer. */
  private readonly able = new Set<string>();
  private readonly byId = new Map<string, Query>();
  private readonly waiting = new Map<string, Promise<Points | null>>();
  private readonly answers = recent<{ at: number; points: Points }>(MOST_ANSWERS);

  constructor(private readonly platform: Pick<Platform, 'clock' | 'ids' | 'connections'>) {}

  /** Notes whether the agent of a host that has connected answers queries. */
  hostConnected(machineId: string, answers: boolean): void {
    if (answers) this.able.add(machineId);
    else this.able.delete(machineId);
  }

  hostLost(machineId: string): void {
    this.able.delete(machineId);
    for (const { machine_id, answer } of this.byId.values()) if (machine_id === machineId) answer(null);
  }

  /** Returns the points, the oldest first; null if the host cannot be asked, or does not answer within five seconds. */
  async points(instance: MeasuredInstance): Promise<Points | null> {
    const known = this.answers.get(instance.id);
    if (known && this.platform.clock.monotonic() - known.at <= FRESH_MS) return known.points;
    const waiting = this.waiting.get(instance.id);
    if (waiting) return waiting;
    if (!this.able.has(instance.machine_id) || this.byId.size >= MOST_WAITING) return null;
    const asked = this.ask(instance).finally(() => this.waiting.delete(instance.id));
    this.waiting.set(instance.id, asked);
    return asked;
  }

  private async ask(instance: MeasuredInstance): Promise<Points | null> {
    const { clock, ids, connections } = this.platform;
    const queryId = ids.uuid();
    const answered = new Promise<Points | null>((answer) => this.byId.set(queryId, { ...instance, answer }));
    try {
      const query = { queryId, instanceId: instance.id };
      if (!connections.send(instance.machine_id, { message: { $case: 'measurementQuery', value: query } })) return null;
      return await withTimeout(clock, TIMEOUT_MS, answered, () => null);
    } finally {
      this.byId.delete(queryId);
    }
  }

  /** Takes an answer of a host. Ignores one to a query that is not of this host, or is over. Refuses with VALIDATION_FAILED. */
  receive(machineId: string, { queryId, points }: MeasurementAnswer): void {
    const query = this.byId.get(queryId);
    if (query?.machine_id !== machineId) return;
    validateMeasurements(points);
    const now = this.platform.clock.now();
    const uses = points.map((point) => timedUse(point, now, query.num_gpus)).sort((one, other) => one.at - other.at);
    this.answers.set(query.id, { at: this.platform.clock.monotonic(), points: uses });
    query.answer(uses);
  }
}

export interface HasMeasurementQueries {
  measurementQueries: MeasurementQueries;
}
