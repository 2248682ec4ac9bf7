#!/usr/bin/env node
import '../shared/require-node.js';
import { Command } from 'commander';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../shared/clock.js';
import { CodedError, SetupError } from '../shared/coded-error.js';
import { fileTroubleOf, isFileTrouble } from '../shared/file-access.js';
import { createLogger, type Logger } from '../shared/logger.js';
import { RELEASE_KEY, verifyRelease } from '../shared/release/verify.js';
import { tellReady } from '../shared/systemd.js';
import { VERSION } from '../shared/version.js';
import { reloadCertificate } from './certificates.js';
import { createControlPlane, forgetSecrets, rotateKey, type ControlPlane } from './app.js';
import { checkConfig, databaseOf, parseConfig } from './config.js';
import { aboutSettings } from './domain/copied-settings.js';
import { readEnvironment, readNotifySocket } from './env.js';
import { sendTestMail } from './mail/test-mail.js';
import { askReadiness } from './readiness-client.js';
import { INSPECTED, inspect } from './services/system/inspect.js';
import { inspectionJson, inspectionText } from './services/system/inspection-text.js';
import { acceptSettings, backUp, readAuthority, restore } from './store/backup.js';

/** The console, if the build has made it, lies beside the compiled control plane. */
const CONSOLE_FOLDER = fileURLToPath(new URL('../console/', import.meta.url));

const program = new Command('gpurent-control-plane')
  .version(VERSION)
  .description('Serves the gpurent API and sends commands to GPU hosts.');

program
  .command('serve')
  .description('run the daemon; prints the bound addresses as one line of JSON')
  .action(async () => {
    const config = { ...parseConfig(readEnvironment()), consoleFolder: CONSOLE_FOLDER };
    const logger = createLogger('control-plane', config.logLevel, config.logFormat);
    const controlPlane = createControlPlane(config, logger);
    try {
      const addresses = await controlPlane.start();
      logger.info({ version: VERSION, node: process.version }, 'the control plane has started');
      process.stdout.write(`${JSON.stringify(addresses)}\n`);
      heedSignals(controlPlane, logger);
      await tellReady(readNotifySocket());
    } catch (error) {
      await controlPlane.stop();
      throw error;
    }
  });

program
  .command('create-operator')
  .description('create a user that is an operator; the password is read from standard input')
  .requiredOption('--email <address>', 'the e-mail address to sign in with')
  .option('--link', 'print a link with which the operator sets the password, within an hour, instead of reading one')
  .action(async ({ email, link }: { email: string; link?: true }) => {
    const password = link ? null : (await text(process.stdin)).replace(/\r?\n$/, '');
    if (password !== null && password.length < 12)
      throw new SetupError('the password needs at least 12 characters; give it on standard input, or --link');
    if (!/^[^@\s]+@[^@\s]+$/.test(email)) throw new SetupError(`"${email}" is not an e-mail address`);
    const config = parseConfig(readEnvironment());
    const { publicUrl } = config;
    if (link && publicUrl === undefined) throw new SetupError('--link needs GPURENT_PUBLIC_URL');
    const controlPlane = createControlPlane(config, createLogger('control-plane', config.logLevel, config.logFormat));
    try {
      const made = await controlPlane.createOperator(email, password);
      process.stdout.write(made ? `${publicUrl}/reset-password?token=${made.token}\n` : `${email} is an operator\n`);
    } finally {
      await controlPlane.stop();
    }
  });

program
  .command('migrate')
  .description('upgrade the schema of the database to this release')
  .action(async () => {
    const config = parseConfig(readEnvironment());
    const { database } = config;
    await createControlPlane(config, createLogger('control-plane', config.logLevel, config.logFormat)).stop();
    process.stdout.write(`${database} is up to date\n`);
  });

program
  .command('check-settings')
  .description('read the settings and say what is wrong with them; changes nothing')
  .action(() => {
    checkConfig(readEnvironment());
    process.stdout.write('the settings can be used\n');
  });

program
  .command('ready')
  .description('ask the daemon on this machine whether it is ready')
  .action(async () => {
    const { httpAddress, tls } = parseConfig(readEnvironment());
    process.stdout.write(`${await askReadiness(httpAddress, tls.http)}\n`);
  });

program
  .command('reload')
  .description('have the daemon read its certificate again; fails, with the reason, if that cannot be used')
  .requiredOption('--pid <pid>', 'the process of the daemon; systemd gives it', Number)
  .action(async ({ pid }: { pid: number }) => {
    const { tls } = parseConfig(readEnvironment());
    process.stdout.write(`${await reloadCertificate(tls, pid, systemClock.now())}\n`);
  });

program
  .command('mail-test <address>')
  .description('send one mail by the settings, and print what the mail server said; works while the daemon runs')
  .action(async (address: string) => {
    const { mail, publicUrl } = parseConfig(readEnvironment());
    process.stdout.write(`${await sendTestMail(mail, publicUrl, address)}\n`);
  });

program
  .command('inspect <kind> <id>')
  .description(`print the rows of one ${INSPECTED.join(', ')}; works while the daemon runs`)
  .option('--json', 'print one JSON document')
  .action((kind: string, id: string, { json }: { json?: true }) => {
    const found = inspect(databaseOf(readEnvironment()), kind, id);
    process.stdout.write(json ? inspectionJson(found) : inspectionText(found));
  });

program
  .command('authority')
  .description('print the certificate of the control plane’s own certificate authority')
  .action(async () => {
    const { database } = parseConfig(readEnvironment());
    process.stdout.write(`${readAuthority(database)}\n`);
  });

program
  .command('rotate-key')
  .description('encrypt every secret with a new key; the daemon must be stopped')
  .action(() => {
    const { count, kept } = rotateKey(parseConfig(readEnvironment()));
    process.stdout.write(
      `${count} secrets are encrypted with a new key; keep ${kept} as long as you keep older backups\n`,
    );
  });

program
  .command('forget-secrets')
  .description('delete all secrets and use a new key, when the old key is lost; the daemon must be stopped')
  .action(() => {
    const { templates, instances, kept } = forgetSecrets(parseConfig(readEnvironment()));
    process.stdout.write(
      `the secrets of ${templates} templates and ${instances} instances are deleted; the database as it was is ${kept}; every host that uses TLS must enroll again\n`,
    );
  });

program
  .command('backup <file>')
  .description('copy the database into a new file; works while the daemon runs; keep the secret key file too')
  .action((file: string) => {
    const { database } = parseConfig(readEnvironment());
    backUp(database, file);
    process.stdout.write(`${database} is copied to ${file}\n`);
  });

program
  .command('restore <file>')
  .description('replace the database by a backup; the daemon must be stopped')
  .option('--accept-settings', 'start also where settings protect less than those of the backup')
  .option('--drill', 'to try it out: the control plane then reaches nothing outside')
  .action((file: string, { acceptSettings = false, drill = false }: { acceptSettings?: boolean; drill?: boolean }) => {
    const { database, settings = [] } = parseConfig(readEnvironment());
    const restored = restore(file, database, systemClock.now(), { acceptsSettings: acceptSettings, isDrill: drill });
    const kept = restored.replaced ? `; what was there before is ${restored.replaced}` : '';
    process.stdout.write(`${database} is restored from ${file}, at epoch ${restored.epoch}${kept}\n`);
    process.stdout.write(aboutSettings(restored.settings, settings, acceptSettings));
  });

program
  .command('accept-settings')
  .description('after a restore, let the daemon start with settings that protect less than those of the backup')
  .action(() => {
    const database = databaseOf(readEnvironment());
    acceptSettings(database);
    process.stdout.write('the next start takes the settings as they are\n');
  });

program
  .command('verify <file>')
  .description('check that a file of a release is as it was signed; SHA256SUMS and its signature must lie beside it')
  .option('--key <file>', 'the public key of the releases', RELEASE_KEY)
  .action(async (file: string, { key }: { key: string }) => {
    process.stdout.write(`${await verifyRelease(file, key)}\n`);
  });

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof CodedError) && !isFileTrouble(error)) throw error;
  process.stderr.write(`gpurent-control-plane: ${fileTroubleOf(error)}\n`);
  process.exitCode = 1;
}

/** Stops in order on SIGTERM and SIGINT; reads the certificate again on SIGHUP. */
function heedSignals(controlPlane: ControlPlane, logger: Logger): void {
  const stop = (signal: NodeJS.Signals) => {
    logger.info({ signal }, 'stopping');
    void controlPlane
      .stop()
      .then(() => logger.info('stopped'))
      .catch((error: unknown) => {
        logger.error({ err: error }, 'stopping failed');
        process.exitCode = 1;
      })
      // A connection on which nothing was ever sent would keep the process alive.
      // oxlint-disable-next-line no-restricted-properties
      .finally(() => process.exit());
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  process.on('SIGHUP', () => void controlPlane.reload());
}
