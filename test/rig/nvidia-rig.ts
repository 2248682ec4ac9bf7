import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface RigGpu {
  uuid: string;
  faults?: string;
  processes?: { pid: number; name: string }[];
}

/** What the tests read of a container's configuration. */
interface SeenConfiguration {
  process: { env: string[]; capabilities?: { bounding?: string[] } };
  root: { readonly?: boolean };
}

/** What the container runtime asks before a container starts: Docker takes it for NVIDIA's when it finds it at its start. */
const HOOK = (folder: string) => `#!/bin/sh
[ "$1" = prestart ] || exit 0
state=$(cat)
id=$(printf %s "$state" | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')
bundle=$(printf %s "$state" | sed 's/.*"bundle":"\\([^"]*\\)".*/\\1/')
cp "$bundle/config.json" "${folder}/hooks/$id.json"
refused=$(cat "${folder}/refused")
if [ -n "$refused" ] && grep -q -e "$refused" "$bundle/config.json"; then
  cat "${folder}/refusal" >&2
  exit 1
fi
`;
const SMI = (folder: string) => `#!/bin/sh
[ "$1 $2" = '-q -x' ] || exit 2
lost=$(cat "${folder}/lost")
if [ -n "$lost" ] && [ "\${4:-$lost}" = "$lost" ]; then
  echo 'Unable to determine the device handle for GPU: GPU is lost. Reboot the system to recover this GPU'
  exit 15
fi
cat "${folder}/\${4:-report}.xml"
`;

/** A host with NVIDIA GPUs, as far as its Docker and our driver can tell: their tools answer what the test says. */
export class NvidiaRig {
  readonly folder = mkdtempSync(join(tmpdir(), 'gpurent-nvidia-'));
  /** To be looked for programs in, by Docker and by the agent. */
  readonly bin = join(this.folder, 'bin');

  constructor(readonly gpus: RigGpu[]) {
    for (const name of ['bin', 'hooks']) mkdirSync(join(this.folder, name));
    this.program('nvidia-container-runtime-hook', HOOK(this.folder));
    this.program('nvidia-container-cli', '#!/bin/sh\n');
    this.program('nvidia-smi', SMI(this.folder));
    this.program('dmesg', `#!/bin/sh\ncat "${this.folder}/kernel.log"\n`);
    this.logKernel('');
    this.refuses('', '');
    this.loses('');
    this.report();
  }

  /** What nvidia-smi says from now on, of all and of each alone. */
  report(): void {
    const gpus = this.gpus.map(describe);
    for (const [index, { uuid }] of this.gpus.entries())
      for (const name of [uuid, slotOf(index)]) this.write(name, gpus.slice(index, index + 1));
    this.write('report', gpus);
  }

  private write(name: string, gpus: string[]): void {
    const versions = '<driver_version>550.54.15</driver_version><cuda_version>12.4</cuda_version>';
    const text = `<?xml version="1.0" ?>\n<nvidia_smi_log>${versions}${gpus.join('')}</nvidia_smi_log>\n`;
    writeFileSync(join(this.folder, `${name}.xml`), text);
  }

  /** A GPU falls off the bus, and with it the tool for all of them; empty: none. */
  loses(uuid: string): void {
    writeFileSync(join(this.folder, 'lost'), uuid);
  }

  /** The hook refuses containers in whose configuration this stands, such as `process` for all; empty: none. */
  refuses(text: string, reason: string): void {
    writeFileSync(join(this.folder, 'refusal'), `${reason}\n`);
    writeFileSync(join(this.folder, 'refused'), text);
  }

  logKernel(text: string): void {
    writeFileSync(join(this.folder, 'kernel.log'), text);
  }

  /** The environment that NVIDIA's runtime has seen of each container. */
  environments(): { id: string; env: string[] }[] {
    return this.configurations().map(({ id, process }) => ({ id, env: process.env }));
  }

  /** The configuration of each container that NVIDIA's runtime has seen. */
  configurations(): (SeenConfiguration & { id: string })[] {
    return readdirSync(join(this.folder, 'hooks')).map((name) => ({
      id: name.replace('.json', ''),
      ...(JSON.parse(readFileSync(join(this.folder, 'hooks', name), 'utf8')) as SeenConfiguration),
    }));
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private program(name: string, text: string): void {
    writeFileSync(join(this.bin, name), text, { mode: 0o755 });
  }
}

/** The name of a GPU in the list of the kernel's driver. */
function slotOf(index: number): string {
  return `0000:0${index + 1}:00.0`;
}

function describe({ uuid, faults = '', processes = [] }: RigGpu, index: number): string {
  const computing = processes.map(
    ({ pid, name }) =>
      `<process_info><pid>${pid}</pid><type>C</type><process_name>${name}</process_name></process_info>`,
  );
  return `<gpu id="00000000:0${index + 1}:00.0">
    <product_name>NVIDIA H100 80GB HBM3</product_name><uuid>${uuid}</uuid>
    <pci><pci_bus_id>00000000:0${index + 1}:00.0</pci_bus_id></pci>
    <fb_memory_usage><total>81559 MiB</total></fb_memory_usage>${faults}
    <processes>${computing.join('')}</processes></gpu>`;
}
