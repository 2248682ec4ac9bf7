import type { GpuMeasurement, Measurement } from './gen/gpurent/agent/v1/agent.js';

/** How the values of a field become one of a longer span; see {@link SUMMARIES}. */
type Summary = 'mean' | 'highest' | 'highest of all' | 'sum' | 'sum of all' | 'latest';

/** The fields of a measurement, in the order in which they are stored, and how each is summarized. */
const FIELDS = {
  cpuMillis: 'mean',
  cpuMaxMillis: 'highest of all',
  cpuLimitMillis: 'latest',
  memoryUsedBytes: 'highest',
  memoryLimitBytes: 'latest',
  diskUsedBytes: 'highest',
  diskLimitBytes: 'latest',
  networkInBytes: 'sum',
  networkOutBytes: 'sum',
  sshSessions: 'highest of all',
  portConnections: 'highest of all',
  connectionsOpened: 'sum of all',
} as const satisfies Partial<Record<keyof Measurement, Summary>>;

const GPU_FIELDS = {
  usePercent: 'mean',
  useMaxPercent: 'highest of all',
  memoryUsedBytes: 'highest',
  memoryTotalBytes: 'latest',
  powerWatts: 'mean',
  temperatureCelsius: 'highest',
} as const satisfies Partial<Record<keyof GpuMeasurement, Summary>>;

export type Field = keyof typeof FIELDS;
export type GpuField = keyof typeof GPU_FIELDS;
export const MEASURED_FIELDS = Object.keys(FIELDS) as Field[];
export const MEASURED_GPU_FIELDS = Object.keys(GPU_FIELDS) as GpuField[];

/** What one GPU was used for in a span of time; null: not measured. */
export type GpuUse = Record<GpuField, number | null>;
/** What an instance has used in a span of time, in whole numbers; null: not measured. */
export type Use = Record<Field, number | null> & { gpus: GpuUse[] };

type Values = readonly (number | null)[];

/** Each takes the values of the parts in order, with at least one that was measured. */
const SUMMARIES: Record<Summary, (values: number[], isWhole: boolean) => number | null> = {
  mean: (values) => Math.round(sum(values) / values.length),
  highest: (values) => Math.max(...values),
  // Whoever waits for an instance to be idle must not miss a part that was not measured.
  'highest of all': (values, isWhole) => (isWhole ? Math.max(...values) : null),
  sum: (values) => sum(values),
  'sum of all': (values, isWhole) => (isWhole ? sum(values) : null),
  latest: (values) => values.at(-1) ?? null,
};

/** Returns what was used in a span, from what was used in its parts, in order. */
export function summarize(parts: readonly Use[]): Use {
  const gpus = Math.max(0, ...parts.map((part) => part.gpus.length));
  return {
    ...summarizeFields(FIELDS, parts),
    gpus: Array.from({ length: gpus }, (_, index) =>
      summarizeFields(
        GPU_FIELDS,
        parts.map((part) => part.gpus[index] ?? UNMEASURED_GPU),
      ),
    ),
  };
}

function summarizeFields<Name extends string>(
  fields: Readonly<Record<Name, Summary>>,
  parts: readonly Readonly<Record<NoInfer<Name>, number | null>>[],
): Record<Name, number | null> {
  const names = Object.keys(fields) as Name[];
  const of = (name: Name) =>
    summarizeValues(
      fields[name],
      parts.map((part) => part[name]),
    );
  return Object.fromEntries(names.map((name) => [name, of(name)])) as Record<Name, number | null>;
}

function summarizeValues(summary: Summary, values: Values): number | null {
  const measured = values.filter((value) => value !== null);
  return measured.length === 0 ? null : SUMMARIES[summary](measured, measured.length === values.length);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

const UNMEASURED_GPU = nothing(MEASURED_GPU_FIELDS);

/** Returns a use of which nothing was measured. */
export function unmeasured(gpus: number): Use {
  return { ...nothing(MEASURED_FIELDS), gpus: Array.from({ length: gpus }, () => ({ ...UNMEASURED_GPU })) };
}

function nothing<Name extends string>(names: readonly Name[]): Record<Name, number | null> {
  return Object.fromEntries(names.map((name) => [name, null])) as Record<Name, number | null>;
}

/** Returns the message for a use; `endedMsAgo`: how long ago its span ended. */
export function toMeasurement({ gpus, ...use }: Use, endedMsAgo: number): Measurement {
  return { endedMsAgo, gpus: gpus.map(measuredOf), ...measuredOf(use) };
}

/** Leaves out what was not measured. */
function measuredOf<Name extends string>(values: Record<Name, number | null>): Partial<Record<Name, number>> {
  const measured = Object.entries(values).filter(([, value]) => value !== null);
  return Object.fromEntries(measured) as Partial<Record<Name, number>>;
}

export function fromMeasurement(measurement: Measurement): Use {
  const gpus = measurement.gpus.map((gpu) => valuesOf(MEASURED_GPU_FIELDS, gpu));
  return { ...valuesOf(MEASURED_FIELDS, measurement), gpus };
}

function valuesOf<Name extends string>(
  names: readonly Name[],
  message: Partial<Record<Name, number | undefined>>,
): Record<Name, number | null> {
  return Object.fromEntries(names.map((name) => [name, message[name] ?? null])) as Record<Name, number | null>;
}
