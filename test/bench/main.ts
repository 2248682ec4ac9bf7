import { Command } from 'commander';
import type { Benchmark } from './benchmark.js';
import { accountTiming } from './account-timing.js';
import { agent } from './agent.js';
import { agentLogs } from './agent-logs.js';
import { agentMeasurements } from './agent-measurements.js';
import { agentMemory } from './agent-memory.js';
import { commandLine } from './command-line.js';
import { consolePage } from './console.js';
import { events } from './events.js';
import { growth } from './growth.js';
import { hosts } from './hosts.js';
import { ledger } from './ledger.js';
import { measurements } from './measurements.js';
import { operatorConsole } from './operator-console.js';
import { reads } from './reads.js';
import { settlement } from './settlement.js';
import { writes } from './writes.js';

const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  'account-timing': accountTiming,
  agent,
  'agent-logs': agentLogs,
  'agent-measurements': agentMeasurements,
  'agent-memory': agentMemory,
  'command-line': commandLine,
  console: consolePage,
  events,
  growth,
  hosts,
  ledger,
  measurements,
  'operator-console': operatorConsole,
  reads,
  settlement,
  writes,
};

const program = new Command('bench')
  .description(`Measures on this machine: ${Object.keys(BENCHMARKS).join(', ')}.`)
  .argument('[names...]', 'what to measure; everything without')
  .option('--json', 'one JSON object')
  .action(async (names: string[], { json }: { json?: true }) => {
    const results: Record<string, Record<string, number>> = {};
    for (const name of names.length > 0 ? names : Object.keys(BENCHMARKS)) {
      const benchmark = BENCHMARKS[name];
      if (!benchmark)
        return program.error(`there is no benchmark "${name}"; there are ${Object.keys(BENCHMARKS).join(', ')}`);
      results[name] = await benchmark();
    }
    if (json) return void process.stdout.write(`${JSON.stringify(results)}\n`);
    for (const [name, numbers] of Object.entries(results)) {
      process.stdout.write(`${name}\n`);
      for (const [what, value] of Object.entries(numbers)) process.stdout.write(`  ${what.padEnd(64)}${value}\n`);
    }
  });

await program.parseAsync();
