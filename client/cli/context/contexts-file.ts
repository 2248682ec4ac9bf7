import { join } from 'node:path';
import { usageError } from '../errors/cli-error.js';
import type { Terminal } from '../terminal/terminal.js';
import { configFolder } from './paths.js';
import { readPrivate, writePrivate } from './private-file.js';

/** A control plane, and as whom one uses it. */
export interface Context {
  url: string;
  token: string;
  /** Of a session: the organization for which it acts; null: the first one that the user has joined. */
  organization_id: string | null;
  /** Who has signed in; null: an API key. */
  email: string | null;
  /** Set by `login --allow-http`: the token may cross the network in plain text. */
  allow_http: boolean;
}

interface Contexts {
  version: 1;
  current: string | null;
  contexts: Record<string, Context>;
}

/** The contexts of a person: one file, which only they can read. */
export class ContextsFile {
  readonly path: string;

  constructor(private readonly terminal: Terminal) {
    this.path = join(configFolder(terminal.env), 'contexts.json');
  }

  /** Throws a usage error if the file is not one of ours. */
  read(): Contexts {
    const text = readPrivate(this.path, (mode) =>
      this.terminal.stderr.write(
        `gpurent: ${this.path} had the mode ${mode}, so others could read your token; it is 600 now\n`,
      ),
    );
    return text === undefined ? { version: 1, current: null, contexts: {} } : this.parse(text);
  }

  /** Returns the context of this name, or the current one; undefined if there is none. */
  find(name?: string): { name: string; context: Context } | undefined {
    const { current, contexts } = this.read();
    const wanted = name ?? current ?? '';
    const context = Object.hasOwn(contexts, wanted) ? contexts[wanted] : undefined;
    return context && { name: wanted, context };
  }

  /** Keeps a context under this name, and makes it the current one. */
  put(name: string, context: Context): void {
    const { contexts } = this.read();
    this.write({ version: 1, current: name, contexts: { ...contexts, [name]: context } });
  }

  use(name: string): void {
    this.write({ ...this.read(), current: name });
  }

  /** Forgets a context. If it was the current one, there is none afterwards. */
  remove(name: string): void {
    const { current, contexts } = this.read();
    const rest = Object.fromEntries(Object.entries(contexts).filter(([each]) => each !== name));
    this.write({ version: 1, current: current === name ? null : current, contexts: rest });
  }

  private write(contexts: Contexts): void {
    writePrivate(this.path, `${JSON.stringify(contexts, undefined, 2)}\n`);
  }

  private parse(text: string): Contexts {
    try {
      const read = JSON.parse(text) as Partial<Contexts> | null;
      if (read?.version === 1 && Object.values(read.contexts ?? {}).every(isContext)) return read as Contexts;
    } catch {
      // Said below.
    }
    throw usageError(
      `${this.path} is not a file of contexts of this release`,
      'Mend it, or remove it and sign in again: gpurent login',
    );
  }
}

const isContext = ({ url, token }: Partial<Context>): boolean => typeof url === 'string' && typeof token === 'string';
