import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

const TOOLS = ['iptables', 'ip6tables'].flatMap((tool) => [tool, `${tool}-save`, `${tool}-restore`]);

/** A network namespace with a copy of the packet rules, on which iptables works while it is there: those of other tests stay. */
export class OwnFirewall {
  private readonly name = `gpurent-f${process.pid}`;
  private readonly bin = mkdtempSync(join(tmpdir(), 'gpurent-firewall-'));
  private readonly path = process.env['PATH'] ?? '';

  constructor() {
    const rules = execFileSync('iptables-save', ['-t', 'filter']);
    execFileSync('ip', ['netns', 'add', this.name]);
    for (const tool of TOOLS) {
      const program = execFileSync('which', [tool], { encoding: 'utf8' }).trim();
      const inside = `#!/bin/sh\nexec nsenter --net=/run/netns/${this.name} ${program} "$@"\n`;
      writeFileSync(join(this.bin, tool), inside, { mode: 0o755 });
    }
    process.env['PATH'] = `${this.bin}${delimiter}${this.path}`;
    execFileSync('iptables-restore', { input: rules });
  }

  remove(): void {
    process.env['PATH'] = this.path;
    execFileSync('ip', ['netns', 'delete', this.name]);
    rmSync(this.bin, { recursive: true });
  }
}
