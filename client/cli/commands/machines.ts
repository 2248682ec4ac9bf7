import type { components } from '../../api/index.js';
import { CliError } from '../errors/cli-error.js';
import { EXIT } from '../errors/exit-codes.js';
import type { Define } from '../invocation/define.js';
import type { Invocation } from '../invocation/invocation.js';
import { findMachine } from '../operator/find.js';
import type { Column } from '../output/table.js';
import { ago, minuteOf } from '../output/times.js';
import { confirm } from '../prompts/confirm.js';
import { defineUpgrades } from './machine-upgrades.js';
import { duration, whole, withYes } from './options.js';

type Machine = components['schemas']['OperatedMachine'];

const HOUR_MS = 3_600_000;
/** What the control plane sends becomes a part of a line that root pastes into a shell: nothing in it may mean something there. */
const PLAIN = /^[\w.:[\]/-]*$/;
/** An address that means another machine on each machine. */
const LOOPBACK = /^(localhost|127\.[\d.]+|\[::1\]):/;

const columns = (now: number): Column<Machine>[] => [
  { title: 'ID', of: ({ id }) => id.slice(0, 8) },
  { title: 'NAME', of: ({ name }) => name },
  { title: 'STATE', of: stateOf },
  { title: 'GPUS', of: ({ gpus }) => `${gpus.filter(({ healthy }) => healthy).length}/${gpus.length}`, align: 'right' },
  { title: 'FREE', of: freeOf, align: 'right', yields: 1 },
  { title: 'MODEL', of: ({ gpus }) => gpus[0]?.model ?? null, yields: 3 },
  { title: 'REGION', of: ({ region }) => region, yields: 4 },
  { title: 'SEEN', of: ({ last_seen_at }) => ago(last_seen_at, now), yields: 2 },
  { title: 'AGENT', of: ({ agent_version }) => agent_version, yields: 5 },
];

const stateOf = ({ lost, cordoned, connected, obstacle }: Machine): string => {
  if (lost) return 'lost';
  if (!connected) return 'away';
  return obstacle ?? (cordoned ? 'cordoned' : 'connected');
};

const freeOf = ({ gpus }: Machine): number =>
  gpus.filter(({ healthy, instance_id, quarantine_id }) => healthy && instance_id === null && quarantine_id === null)
    .length;

export const define: Define = (command, invocation) => {
  const { terminal } = invocation;
  const list = async () => {
    const { items } = await invocation.gpurent().get('/v1/operator/machines');
    invocation.list(items, columns(terminal.now()), 'There are no machines. Enroll one: gpurent machines add');
  };
  command.action(list);
  command.command('list').description('the machines').action(list);
  command
    .command('show <machine>')
    .description('one machine with its GPUs, by its name or id')
    .action(async (wanted: string) => show(invocation, await findMachine(invocation.gpurent(), wanted)));
  command
    .command('add')
    .description('make an enrollment token, and print the line to paste on the host')
    .option('--uses <count>', 'how many hosts can enroll with it', whole(1, 10_000), 1)
    .option('--expires <duration>', 'it ends after so long', duration, 24 * HOUR_MS)
    .option('--grpc <address>', 'where agents reach the control plane; otherwise as it says, or its host, port 8090')
    .action(async ({ uses, expires, grpc }: { uses: number; expires: number; grpc?: string }) => {
      const body = { max_uses: uses, expires_in_hours: Math.max(1, Math.ceil(expires / HOUR_MS)) };
      const made = await invocation.gpurent().post('/v1/operator/enrollment-tokens', { body });
      if (invocation.wantsJson) return invocation.json(made);
      const { install } = made;
      const parts = [made.token, made.grpc_address ?? '', ...(install ? [install.url, install.sha256] : [])];
      if (!parts.every((part) => PLAIN.test(part)))
        throw new CliError(EXIT.failed, 'the control plane has sent a malformed token or address');
      if (install && grpc === undefined) {
        invocation.note(
          `Paste this as root on the host. It works until ${minuteOf(made.expires_at)}, and asks for the token:`,
        );
        invocation.line(`curl -fsSL ${install.url} | sh -s -- --sha256 ${install.sha256}`);
        invocation.note('The token:');
        return invocation.line(made.token);
      }
      const address = grpc ?? made.grpc_address ?? `${new URL(invocation.chosen().context.url).hostname}:8090`;
      invocation.note(
        `Paste this as root on the host, in the folder of the release. It works until ${minuteOf(made.expires_at)}:`,
      );
      invocation.line(`scripts/install-agent --control-plane ${address} --token ${made.token}`);
      if (LOOPBACK.test(address))
        invocation.note(
          `No other machine reaches ${address}: put the address of this control plane into the line, or give --grpc HOST:PORT.`,
        );
    });
  defineActs(command, invocation);
  defineUpgrades(command, invocation);
};

const defineActs: Define = (command, invocation) => {
  for (const [act, description] of [
    ['cordon', 'let nothing new be deployed there'],
    ['uncordon', 'let instances be deployed there again'],
  ] as const) {
    command
      .command(`${act} <machine>`)
      .description(description)
      .action(async (wanted: string) => {
        const gpurent = invocation.gpurent();
        const { id } = await findMachine(gpurent, wanted);
        show(invocation, await gpurent.post(`/v1/operator/machines/{id}/${act}`, { params: { path: { id } } }));
      });
  }
  command
    .command('maintenance <machine>')
    .description('plan a time in which nothing is started there')
    .requiredOption('--from <time>', 'when it begins, as 2026-11-30T08:00:00Z')
    .requiredOption('--for <duration>', 'how long it takes', duration)
    .action(async (wanted: string, { from, for: time }: { from: string; for: number }) => {
      const gpurent = invocation.gpurent();
      const { id } = await findMachine(gpurent, wanted);
      const body = { starts_at: from, ends_at: new Date(Date.parse(from) + time || 0).toISOString() };
      show(invocation, await gpurent.put('/v1/operator/machines/{id}/maintenance', { params: { path: { id } }, body }));
    });
  command
    .command('assign-gpus <machine> [gpus...]')
    .description('give it GPUs that another machine reported first, after a card was moved; without GPUs, all such')
    .action(async (wanted: string, gpu_uuids: string[]) => {
      const gpurent = invocation.gpurent();
      const { id } = await findMachine(gpurent, wanted);
      const body = gpu_uuids.length === 0 ? {} : { gpu_uuids };
      show(
        invocation,
        await gpurent.post('/v1/operator/machines/{id}/assign-gpus', { params: { path: { id } }, body }),
      );
    });
  withYes(command.command('remove <machine>').description('forget a machine; its instances are destroyed')).action(
    async (wanted: string, { yes }: { yes?: true }) => {
      const gpurent = invocation.gpurent();
      const { id, name } = await findMachine(gpurent, wanted);
      await confirm(invocation, yes, `Remove the machine ${name} (${id})`);
      await gpurent.delete('/v1/operator/machines/{id}', { params: { path: { id } } });
      invocation.object({ id, name }, () => [`${name} is removed.`]);
    },
  );
};

function show(invocation: Invocation, machine: Machine): void {
  const { maintenance, gpus } = machine;
  invocation.facts(machine, [
    ['id', machine.id],
    ['name', machine.name],
    ['state', stateOf(machine)],
    ['address', machine.public_address],
    ['maintenance', maintenance ? `${minuteOf(maintenance.starts_at)} to ${minuteOf(maintenance.ends_at)}` : null],
    ['disk', `${machine.disk_available_gb} of ${machine.disk_gb} GB free`],
    ['clock', clockOf(machine.clock_ahead_ms)],
    ['clock of Docker', clockOf(machine.docker_clock_ahead_ms)],
    ...gpus.map(
      ({ uuid, model, healthy, reason, instance_id, quarantine_id }) =>
        [
          uuid,
          [model, healthy ? null : (reason ?? 'unhealthy'), instance_id ?? quarantine_id ?? 'free']
            .filter(Boolean)
            .join(', '),
        ] as const,
    ),
  ]);
}

/** Returns how a clock differs from the control plane's, for people; null: not measured. */
function clockOf(aheadMs: number | null | undefined): string | null {
  if (aheadMs === null || aheadMs === undefined) return null;
  return `${Math.abs(aheadMs / 1000).toFixed(1)} s ${aheadMs < 0 ? 'behind' : 'ahead of'} the control plane`;
}
