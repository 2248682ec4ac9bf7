import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import tls from 'node:tls';
import { usageError } from '../errors/cli-error.js';
import type { Terminal } from '../terminal/terminal.js';

/** Where systems keep the authorities that they trust: Debian, Fedora, Alpine and macOS. */
const SYSTEM_FILES = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt', '/etc/ssl/cert.pem'];

/** Node's own part of a context, to which an authority can be added without a loss of the others. */
interface Native {
  context: { addCACert(pem: string): void };
}
/** Since Node 22.15. */
type Newer = typeof tls & { getCACertificates?: (type: 'system') => string[] };

const original = tls.createSecureContext;
let trusted: readonly string[] = [];

/**
 * Has every later connection of this process trust the authorities of the system and of `file`, too: those of a company are in no list
 * of Node's. Throws a CliError if `file` is none.
 */
export function trustAuthorities(file: string | undefined, { env }: Pick<Terminal, 'env'>): void {
  trusted = [...ofFile(file), ...ofSystem(env)];
  // No option of fetch takes authorities, and the setting of Node is read only when a process starts.
  tls.createSecureContext = (options) => {
    const context = original(options);
    const native: Native = context;
    if (!options?.ca) for (const pem of trusted) native.context.addCACert(pem);
    return context;
  };
}

function ofFile(file: string | undefined): string[] {
  if (file === undefined) return [];
  try {
    const pem = readFileSync(file, 'utf8');
    new X509Certificate(pem);
    return [pem];
  } catch (error) {
    throw usageError(`${file} cannot be used as a certificate: ${(error as Error).message}`, 'Give a file in PEM.');
  }
}

function ofSystem(env: Terminal['env']): string[] {
  const listed = (tls as Newer).getCACertificates?.('system');
  if (listed !== undefined && listed.length > 0) return listed;
  const files = [env['NODE_EXTRA_CA_CERTS'], env['SSL_CERT_FILE'] || SYSTEM_FILES.find((each) => existsSync(each))];
  return files.flatMap((each) => (each && existsSync(each) ? [readFileSync(each, 'utf8')] : []));
}
