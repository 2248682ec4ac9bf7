import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';

/** Where an SSH server is, and how it is known. */
export interface SshAddress {
  host: string;
  port: number;
  user: string;
  /** As in a known_hosts file: `ssh-ed25519 AAAA...`. */
  hostKey: string;
}

export interface CommandRequest {
  address: SshAddress;
  command: string;
  timeoutMs: number;
  /** Ends the command early. */
  signal: AbortSignal;
}

export interface CommandResult {
  /** Null: it was ended by a signal. 255: ssh itself has failed, and stderr says why. */
  exitCode: number | null;
  timedOut: boolean;
  stdout: string;
  stderr: string;
  /** How much of the output is left out, from its middle. */
  charsLeftOut: number;
}

/** Runs a command on an instance. */
export type RunCommand = (request: CommandRequest) => Promise<CommandResult>;

/** What is kept of each stream: so much from its beginning, and so much from its end. */
const KEPT_CHARS = 8_000;
const CONNECT_S = 15;
/** Under this name ssh looks for the host key. */
const ALIAS = 'gpurent-instance';
/** How long ssh can take to end before it is killed. */
const FAREWELL_MS = 2_000;

/** Not an option of ssh, not a word for a shell, and nothing that a line of known_hosts would read otherwise. */
const HOST = /^[A-Za-z0-9:][A-Za-z0-9.:-]{0,252}$/;
const USER = /^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/;
const HOST_KEY = /^[a-z0-9@.-]{1,100} [A-Za-z0-9+/=]{1,2000}$/;

/**
 * Returns what runs commands with `ssh`, found in PATH. Only the reported host key is accepted. The user's keys and agent are used, but
 * neither forwarded nor asked a passphrase for. `options` come before its own, for tests.
 */
export function runBySsh(ssh = 'ssh', options: readonly string[] = []): RunCommand {
  return async ({ address, command, timeoutMs, signal }) => {
    checkAddress(address);
    const folder = await mkdtemp(join(tmpdir(), 'gpurent-ssh-'));
    try {
      const knownHosts = join(folder, 'known_hosts');
      await writeFile(knownHosts, `${ALIAS} ${address.hostKey}\n`, { mode: 0o600 });
      const child = spawn(ssh, [...options, ...argumentsOf(address, knownHosts), command], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      return await resultOf(child, timeoutMs, signal);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  };
}

/** Throws if a part of an address could be read as something else: it comes from the control plane. */
function checkAddress({ host, port, user, hostKey }: SshAddress): void {
  const isPort = Number.isInteger(port) && port > 0 && port < 65_536;
  if (!HOST.test(host) || !USER.test(user) || !HOST_KEY.test(hostKey) || !isPort)
    throw new Error('the control plane has given an SSH address that is none');
}

function argumentsOf({ host, port, user }: SshAddress, knownHosts: string): string[] {
  const settings = [
    'BatchMode=yes',
    'StrictHostKeyChecking=yes',
    `HostKeyAlias=${ALIAS}`,
    `UserKnownHostsFile="${knownHosts}"`,
    'GlobalKnownHostsFile=/dev/null',
    'UpdateHostKeys=no',
    'ClearAllForwardings=yes',
    'ForwardAgent=no',
    'ForwardX11=no',
    'PermitLocalCommand=no',
    'CheckHostIP=no',
    // A connection that is open already could lead to another machine.
    'ControlPath=none',
    `ConnectTimeout=${CONNECT_S}`,
    'LogLevel=ERROR',
  ];
  return ['-T', '-p', String(port), ...settings.flatMap((setting) => ['-o', setting]), '-l', user, '--', host];
}

async function resultOf(child: ChildProcess, timeoutMs: number, signal: AbortSignal): Promise<CommandResult> {
  const [stdout, stderr] = [keep(child.stdout), keep(child.stderr)];
  let timedOut = false;
  let kill: NodeJS.Timeout | undefined;
  const end = () => {
    child.kill('SIGTERM');
    kill = setTimeout(() => child.kill('SIGKILL'), FAREWELL_MS);
  };
  const cut = setTimeout(() => {
    timedOut = true;
    end();
  }, timeoutMs);
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  try {
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.once('error', (error) => reject(new Error(`ssh cannot be run: ${error.message}`)));
      child.once('close', resolve);
    });
    return {
      exitCode,
      timedOut,
      stdout: stdout.text(),
      stderr: stderr.text(),
      charsLeftOut: stdout.leftOut() + stderr.leftOut(),
    };
  } finally {
    clearTimeout(cut);
    clearTimeout(kill);
    signal.removeEventListener('abort', end);
  }
}

/** Reads a stream to its end, and keeps its beginning and its end. */
function keep(stream: Readable | null): { text: () => string; leftOut: () => number } {
  let [head, tail, leftOut] = ['', '', 0];
  stream?.setEncoding('utf8').on('data', (chunk: string) => {
    const room = KEPT_CHARS - head.length;
    head += chunk.slice(0, room);
    tail += chunk.slice(room);
    const over = tail.length - KEPT_CHARS;
    if (over <= 0) return;
    leftOut += over;
    tail = tail.slice(over);
  });
  return {
    text: () => (leftOut === 0 ? head + tail : `${head}\n(${leftOut} characters left out)\n${tail}`),
    leftOut: () => leftOut,
  };
}
