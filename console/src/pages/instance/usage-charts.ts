import type { Usage } from '../../data/api/models.js';
import { bytes } from '../../../../client/text/sizes.js';
import { duration } from '../../data/values/times.js';

const HOUR_SECONDS = 3_600;
const SECONDS: Readonly<Record<Usage['window'], number>> = {
  '1h': HOUR_SECONDS,
  '24h': 24 * HOUR_SECONDS,
  '90d': 90 * 24 * HOUR_SECONDS,
};

/** Returns the first and the last second of a window that ends now. */
export function spanOf(window: Usage['window'], now: number): readonly [from: number, to: number] {
  const to = Math.floor(now / 1_000);
  return [to - SECONDS[window], to];
}

type Values = readonly (number | null)[];

interface ChartOf {
  title: string;
  lines: { name: string; values: Values }[];
  unit: (value: number) => string;
  max?: number;
  steps?: 'binary';
}

const percent = (value: number) => `${Math.round(value * 10) / 10} %`;
const cores = (value: number) => `${Math.round(value * 100) / 100} cores`;
const perSecond = (value: number) => `${bytes(value)}/s`;
const watts = (value: number) => `${Math.round(value)} W`;

/** Returns the charts of a use: those of which something was measured. */
export function chartsOf(usage: Usage): ChartOf[] {
  const { gpus } = usage;
  const perGpu = (pick: (gpu: Usage['gpus'][number]) => Values) =>
    gpus.map((gpu) => ({ name: gpus.length === 1 ? 'GPU' : `GPU ${gpu.index}`, values: pick(gpu) }));
  // The API counts the bytes of a whole span.
  const ofSecond = (value: number | null) => (value === null ? null : value / usage.resolution_seconds);
  const charts: ChartOf[] = [
    { title: 'GPU use', lines: perGpu((gpu) => gpu.use_percent), unit: percent, max: 100 },
    {
      title: 'GPU memory',
      unit: bytes,
      steps: 'binary',
      lines: [...perGpu((gpu) => gpu.memory_used_bytes), ...totalOf(gpus)],
    },
    { title: 'GPU power', lines: perGpu((gpu) => gpu.power_watts), unit: watts },
    { title: 'CPU', lines: [{ name: 'used', values: usage.cpu_cores }, limit(usage.cpu_limit_cores)], unit: cores },
    {
      title: 'Memory',
      unit: bytes,
      steps: 'binary',
      lines: [
        {
          name: 'used',
          values: usage.memory_used_bytes,
        },
        limit(usage.memory_limit_bytes),
      ],
    },
    {
      title: 'Disk',
      unit: bytes,
      steps: 'binary',
      lines: [
        {
          name: 'used',
          values: usage.disk_used_bytes,
        },
        limit(usage.disk_limit_bytes),
      ],
    },
    {
      title: `Network, mean of ${duration(usage.resolution_seconds * 1e3)}`,
      unit: perSecond,
      steps: 'binary',
      lines: [
        {
          name: 'in',
          values: usage.network_in_bytes.map(ofSecond),
        },
        {
          name: 'out',
          values: usage.network_out_bytes.map(ofSecond),
        },
      ],
    },
  ];
  return charts
    .map((chart) => ({ ...chart, lines: chart.lines.filter(({ values }) => values.some((value) => value !== null)) }))
    .filter(({ lines }) => lines.length > 0);
}

/** The memory of a GPU: one line, because the GPUs of an offer are of one model. */
function totalOf(gpus: Usage['gpus']): ChartOf['lines'] {
  return gpus.slice(0, 1).map((gpu) => ({
    name: gpus.length === 1 ? 'total' : 'total of each',
    values: gpu.memory_total_bytes,
  }));
}

const limit = (values: Values) => ({ name: 'limit', values });
