#!/usr/bin/env node
import '../shared/require-node.js';
import { Argument, Command } from 'commander';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../shared/clock.js';
import { CodedError } from '../shared/coded-error.js';
import { createLogger } from '../shared/logger.js';
import { requireNewer } from '../shared/release/newer.js';
import { RELEASE_KEY, verifyRelease } from '../shared/release/verify.js';
import { tellReady } from '../shared/systemd.js';
import { VERSION } from '../shared/version.js';
import { cleanHost, createAgent, createRuntime, describeLeaving, doctorsChecks, inspectHost } from './app.js';
import { agentSocket, parseConfig } from './config.js';
import { OPERATIONS, carryOut, isolatedBy, type Operation } from './isolated.js';
import { examine, isHealthy, report } from './doctor/doctor.js';
import { readEnvironment, readNotifySocket } from './env.js';
import { describeSnapshot, type Snapshot } from './status/snapshot.js';
import { askAgent } from './status/status-server.js';
import { checkBeforeEnroll, enroll, type Enrollment } from './link/enrollment.js';
import { loadIdentity } from './link/identity.js';
import { tokenOf, type TokenOptions } from './link/token-file.js';

type EnrollOptions = Omit<Enrollment, 'token'> & TokenOptions & { gpus?: string; ca?: string };

const program = new Command('gpurent-agent')
  .version(VERSION)
  .description("Rents out this host's GPUs under a gpurent control plane.");
/** Defaults for fields that a running agent of the previous release does not have. */
const OF_OLDER_AGENTS = {
  unanswered: [],
  disconnected: null,
  refusal: null,
  hostKeyFault: '',
  certificates: [],
  needs: [],
  upgradeFaults: [],
};
const gpuOption = ['--gpus <source>', 'nvidia, or simulated:N for tests'] as const;

program
  .command('enroll')
  .description('enroll this host with a control plane, once')
  .requiredOption('--control-plane <host:port>', 'the address of the control plane for agents')
  .option('--token <token>', 'an enrollment token from the operator; the list of processes shows it')
  .option(
    '--token-file <file>',
    'a file with the token, or - for standard input; the list of processes does not show it',
  )
  .option(...gpuOption)
  .option(
    '--ca <file>',
    'the CA certificate of the control plane, if neither the token nor a public authority covers it',
  )
  .option('--again', 'enroll as the same machine again, with a token of that machine')
  .option('--new', 'enroll as a new machine, if the operator has removed the old one')
  .option('--plain-text', 'use no TLS, even over a network')
  .action(async ({ ca, token, tokenFile, ...options }: EnrollOptions) => {
    const config = parseConfig(readEnvironment(), options);
    const enrollment = {
      ...options,
      token: tokenOf({ token, tokenFile }),
      ...(ca === undefined ? {} : { authorityFile: ca }),
    };
    checkBeforeEnroll(config.stateDir, enrollment);
    if (enrollment.new) for (const line of await describeLeaving(config)) process.stderr.write(`${line}\n`);
    const { hostId } = await enroll(config.stateDir, enrollment, await inspectHost(config));
    process.stdout.write(`${JSON.stringify({ host_id: hostId })}\n`);
  });

program
  .command('run')
  .description('run the daemon')
  .option(...gpuOption)
  .action(async (options: { gpus?: string }) => {
    const config = parseConfig(readEnvironment(), options);
    const identity = loadIdentity(config.stateDir);
    const logger = createLogger('agent', config.logLevel, config.logFormat);
    const self = [process.execPath, fileURLToPath(import.meta.url), 'carry-out'];
    const agent = await createAgent(config, identity, logger, isolatedBy(self));
    try {
      await agent.start();
      // An agent that cannot start says one line, and why.
      logger.info({ version: VERSION, node: process.version }, 'the agent has started');
      const stop = (signal: NodeJS.Signals) => {
        logger.info({ signal }, 'the agent is stopping; workloads keep running');
        void agent.stop();
      };
      process.once('SIGTERM', stop);
      process.once('SIGINT', stop);
      await tellReady(readNotifySocket());
    } catch (error) {
      await agent.stop();
      throw error;
    }
  });

program
  .command('carry-out', { hidden: true })
  .description('stop or remove one workload, for an agent that has crashed while handling it')
  .addArgument(new Argument('<operation>').choices(OPERATIONS))
  .argument('<instance>')
  .action(async (operation: Operation, instanceId: string) => {
    const config = parseConfig(readEnvironment());
    const logger = createLogger('agent', config.logLevel, config.logFormat);
    const runtime = createRuntime(config, loadIdentity(config.stateDir), logger);
    process.stdout.write(await carryOut(runtime, operation, instanceId));
  });

program
  .command('clean-host', { hidden: true })
  .description(
    'remove what the agent has set up on this host, before an uninstall; refused while workloads of renters are on the host',
  )
  .option('--images', 'also remove the images that the agent has pulled or built')
  .option('--look', 'only check whether the removal is possible')
  .action(async ({ images = false, look = false }: { images?: boolean; look?: boolean }) => {
    await cleanHost(parseConfig(readEnvironment()), { images, look });
  });

program
  .command('check-settings')
  .description('read the settings and say what is wrong with them; changes nothing')
  .option(...gpuOption)
  .action((options: { gpus?: string }) => {
    parseConfig(readEnvironment(), options);
    process.stdout.write('the settings can be used\n');
  });

program
  .command('status')
  .description('show the state of this host')
  .option('--json', 'as JSON, for scripts')
  .option('--metrics', 'as Prometheus metrics')
  .action(async ({ json, metrics }: { json?: boolean; metrics?: boolean }) => {
    const socket = agentSocket(parseConfig(readEnvironment()));
    const text = await askAgent(socket, metrics ? '/metrics' : '/status');
    process.stdout.write(
      `${json || metrics ? text.trimEnd() : describeSnapshot({ ...OF_OLDER_AGENTS, ...(JSON.parse(text) as Snapshot) })}\n`,
    );
  });

program
  .command('doctor')
  .description('find faults of this host and say how to repair them')
  .option(...gpuOption)
  .action(async (options: { gpus?: string }) => {
    const results = await examine(doctorsChecks(parseConfig(readEnvironment(), options)), systemClock);
    process.stdout.write(`${report(results)}\n`);
    if (!isHealthy(results)) process.exitCode = 1;
  });

program
  .command('verify <file>')
  .description('check that a file of a release is as it was signed; SHA256SUMS and its signature must lie beside it')
  .option('--key <file>', 'the public key of the releases', RELEASE_KEY)
  .option('--newer-than <version>', 'also refuse all but the tarball of a higher version')
  .action(async (file: string, { key, newerThan }: { key: string; newerThan?: string }) => {
    const said = await verifyRelease(file, key);
    if (newerThan !== undefined) requireNewer(file, newerThan);
    process.stdout.write(`${said}\n`);
  });

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof CodedError)) throw error;
  process.stderr.write(`gpurent-agent: ${error.message}\n`);
  process.exitCode = 1;
}
