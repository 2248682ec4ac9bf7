export interface BaseDisk {
  format: 'raw' | 'qcow2';
  /** In bytes. */
  size: number;
  firmware: 'bios' | 'uefi';
}

interface QemuInfo {
  format?: string;
  'virtual-size'?: number;
  'backing-filename'?: string;
  encrypted?: boolean;
  'format-specific'?: { data?: { 'data-file'?: string } };
}

const MOST_WORDS_CHARS = 400;
const SECTOR = 512;
const SIGNATURE_AT = 510;
const TABLE_AT = 446;
const ENTRY_BYTES = 16;
const ESP_OF_MBR = 0xef;
/** The type GUID of an EFI system partition in a GPT, in the byte order on the disk. */
const ESP_OF_GPT = Buffer.from('28732ac11ff8d211ba4b00a0c93ec93b', 'hex');

/**
 * Judges a disk by the output of the runner's `inspect`: `info` (JSON of qemu-img), `check` (exit code of qemu-img check, for qcow2),
 * `head` (the first sectors in base64). Returns in words, for the renter, why a disk cannot be booted.
 */
export function judgeDisk(lines: readonly string[]): BaseDisk | string {
  const said = (name: string) =>
    lines.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1));
  const info = parseInfo(said('info')[0]);
  if (!info) {
    const words = lines.filter((line) => !/^(info|check|head) /.test(line)).join(' ');
    return `its disk cannot be read: ${words.slice(0, MOST_WORDS_CHARS)}`;
  }
  const { format } = info;
  if (format !== 'raw' && format !== 'qcow2') return `its disk is of the format ${format}; give qcow2 or raw`;
  const names = [info['backing-filename'], info['format-specific']?.data?.['data-file']];
  if (names.some((name) => name !== undefined))
    return 'its disk is only a part: it names another file; give a complete disk';
  if (info.encrypted)
    return 'its disk is encrypted, and nobody can enter the password at boot; give an unencrypted disk';
  if (format === 'qcow2' && !isSound(said('check')[0])) return 'its disk is corrupt: qemu-img check finds errors in it';
  const head = Buffer.from(said('head').join(''), 'base64');
  if (head.length < SECTOR || head.readUInt16LE(SIGNATURE_AT) !== 0xaa55)
    return 'its disk cannot be booted: it has neither a boot sector nor a partition table';
  return { format, size: info['virtual-size'] ?? 0, firmware: hasEfiPartition(head) ? 'uefi' : 'bios' };
}

function parseInfo(text: string | undefined): QemuInfo | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as QemuInfo);
  } catch {
    return undefined;
  }
}

/** Tells whether qemu-img check found no corruption. Exit code 3 means only leaked space. */
function isSound(exitCode: string | undefined): boolean {
  return exitCode === '0' || exitCode === '3';
}

function hasEfiPartition(head: Buffer): boolean {
  const types = [0, 1, 2, 3].map((index) => head[TABLE_AT + index * ENTRY_BYTES + 4]);
  return types.includes(ESP_OF_MBR) || head.includes(ESP_OF_GPT);
}
