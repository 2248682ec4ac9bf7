import { Option } from 'commander';
import type { components } from '../../api/index.js';
import { findInstance } from '../instances/find.js';
import type { Define } from '../invocation/define.js';
import type { Column } from '../output/table.js';
import { INSTANCE } from './options.js';

type Usage = components['schemas']['InstanceUsage'];
type Points = readonly (number | null)[];

interface Row {
  what: string;
  points: Points;
  unit: (value: number) => string;
}

const GIB = 1024 ** 3;
const gib = (bytes: number): string => `${(bytes / GIB).toFixed(1)} GiB`;
const percent = (value: number): string => `${Math.round(value)} %`;
const plainNumber = (value: number): string => value.toFixed(1);

export const define: Define = (command, invocation) => {
  command
    .argument(...INSTANCE)
    .addOption(new Option('--window <window>', 'how far back').choices(['1h', '24h', '90d']).default('1h'))
    .action(async (name: string, query: { window: '1h' | '24h' | '90d' }) => {
      const gpurent = invocation.gpurent();
      const { id } = await findInstance(gpurent, name);
      const usage = await gpurent.get('/v1/instances/{id}/usage', { params: { path: { id }, query } });
      if (invocation.wantsJson) return invocation.json(usage);
      invocation.list(rowsOf(usage), COLUMNS, 'Nothing was measured yet.');
    });
};

function rowsOf({ at, gpus, ...usage }: Usage): Row[] {
  if (at.length === 0) return [];
  return [
    ...gpus.flatMap(({ index, ...gpu }): Row[] => [
      { what: `GPU ${index}`, points: gpu.use_percent, unit: percent },
      { what: `GPU ${index} memory`, points: gpu.memory_used_bytes, unit: gib },
      { what: `GPU ${index} power`, points: gpu.power_watts, unit: (watts) => `${Math.round(watts)} W` },
      {
        what: `GPU ${index} temperature`,
        points: gpu.temperature_celsius,
        unit: (celsius) => `${Math.round(celsius)} °C`,
      },
    ]),
    { what: 'CPU cores', points: usage.cpu_cores, unit: plainNumber },
    { what: 'memory', points: usage.memory_used_bytes, unit: gib },
    { what: 'disk', points: usage.disk_used_bytes, unit: gib },
    { what: 'network in', points: usage.network_in_bytes, unit: gib },
    { what: 'network out', points: usage.network_out_bytes, unit: gib },
    { what: 'SSH sessions', points: usage.ssh_sessions, unit: String },
  ];
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'WHAT', of: ({ what }) => what },
  { title: 'NOW', of: ({ points, unit }) => said(points.at(-1), unit), align: 'right' },
  { title: 'MEAN', of: ({ points, unit }) => said(meanOf(points), unit), align: 'right' },
  {
    title: 'MOST',
    of: ({ points, unit }) => said(known(points).length ? Math.max(...known(points)) : null, unit),
    align: 'right',
  },
];

const known = (points: Points): number[] => points.filter((point) => point !== null);
const said = (value: number | null | undefined, unit: Row['unit']): string | null =>
  value === null || value === undefined ? null : unit(value);

function meanOf(points: Points): number | null {
  const values = known(points);
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}
