import { connect, type Gpurent } from '../../api/index.js';
import { trustAuthorities } from '../context/authorities.js';
import { chooseContext, type Chosen } from '../context/connection.js';
import { ContextsFile } from '../context/contexts-file.js';
import { curlOf } from '../context/curl.js';
import { table, type Column } from '../output/table.js';
import { jsonText, plain } from '../terminal/plain-text.js';
import type { Terminal } from '../terminal/terminal.js';
import { VERSION } from './version.js';

/** Options that every command has. */
export interface GlobalOptions {
  json?: true;
  explain?: true;
  context?: string;
  org?: string;
  cacert?: string;
}

/** One run of the program: what every command needs. */
export class Invocation {
  readonly contexts: ContextsFile;

  constructor(
    readonly terminal: Terminal,
    private readonly read: () => GlobalOptions,
    /** Loads the module of every command, for what looks at all of them. */
    readonly loadAll: () => Promise<void>,
  ) {
    this.contexts = new ContextsFile(terminal);
  }

  get options(): GlobalOptions {
    return this.read();
  }

  get wantsJson(): boolean {
    return this.options.json === true;
  }

  /** Returns whether output may have colours. */
  get hasColour(): boolean {
    const { env, columns } = this.terminal;
    return columns !== undefined && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
  }

  chosen(): Chosen {
    return chooseContext(this.terminal, this.contexts, this.options);
  }

  /** Returns a client of the chosen control plane. Throws a CliError if none is chosen. */
  gpurent(): Gpurent {
    const { url, token, organization_id } = this.chosen().context;
    return this.connect(url, { token, ...(organization_id === null ? {} : { organizationId: organization_id }) });
  }

  /** Returns a client of any control plane, without a credential if none is given. */
  connect(url: string, credential: { token?: string; organizationId?: string } = {}): Gpurent {
    const file = this.options.cacert ?? (this.terminal.env['GPURENT_CACERT'] || undefined);
    if (url.startsWith('https:')) trustAuthorities(file, this.terminal);
    return connect({
      url,
      ...credential,
      userAgent: `gpurent/${VERSION}`,
      wait: this.terminal.wait,
      fetch: async (request) => {
        if (this.options.explain) this.note(await curlOf(request));
        return fetch(request, { signal: AbortSignal.any([request.signal, this.terminal.interrupted]) });
      },
    });
  }

  /** Writes a line of the result. It can hold text of strangers. */
  line(text = ''): void {
    this.terminal.stdout.write(`${plain(text)}\n`);
  }

  /** Tells the person something beside the result, on stderr. */
  note(text: string): void {
    this.terminal.stderr.write(`${plain(text)}\n`);
  }

  json(value: unknown): void {
    this.terminal.stdout.write(`${jsonText(value)}\n`);
  }

  /** Writes an object of the API: with --json as it is, otherwise as `lines` say it. */
  object(value: unknown, lines: () => readonly string[]): void {
    if (this.wantsJson) return this.json(value);
    for (const line of lines()) this.line(line);
  }

  /** Writes a list: with --json as `{items}`, otherwise as a table that fits the terminal, or `empty` on stderr. */
  list<Row>(rows: readonly Row[], columns: readonly Column<Row>[], empty: string): void {
    if (this.wantsJson) return this.json({ items: rows });
    if (rows.length === 0) return this.note(empty);
    for (const line of table(rows, columns, this.terminal.columns)) this.terminal.stdout.write(`${line}\n`);
  }

  /** Writes an object as names and values. */
  facts(value: unknown, facts: readonly (readonly [name: string, value: string | number | null])[]): void {
    const wide = Math.max(...facts.map(([name]) => name.length));
    this.object(value, () => facts.map(([name, fact]) => `${name.padEnd(wide)}  ${fact ?? '-'}`));
  }
}
