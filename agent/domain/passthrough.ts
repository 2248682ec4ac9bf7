/** A function of a PCI device, from sysfs. */
export interface PciFunction {
  /** For example `0000:3b:00.0`. */
  address: string;
  /** Class, subclass and programming interface. */
  class: number;
  vendor: number;
  /** The IOMMU group, the smallest unit that the IOMMU can isolate; null: none. */
  group: number | null;
  driver: string | null;
}

/** The devices that a virtual machine gets. */
export interface PassthroughPlan {
  groups: number[];
  /** The addresses of all functions of its GPUs. */
  addresses: string[];
}

/** One write below `/sys/bus/pci`. */
export interface SysfsWrite {
  file: string;
  text: string;
}

export const VFIO = 'vfio-pci';
const NVIDIA = 0x10de;
const BRIDGE = 0x06;
/** The class "other bridge", which NVSwitch uses; all other bridges only forward data. */
const OTHER_BRIDGE = 0x0680;

/**
 * Plans the passthrough of whole GPUs, by the addresses of their slots (`0000:3b:00`), to a virtual machine: with all their functions,
 * and only if nothing else is in their IOMMU groups. Returns the reason, in words for the host owner, if that is impossible.
 */
export function planPassthrough(all: readonly PciFunction[], slots: readonly string[]): PassthroughPlan | string {
  const fabric = all.find((each) => each.vendor === NVIDIA && each.class >> 8 === OTHER_BRIDGE);
  if (fabric) return `its GPUs are joined by NVSwitch (${fabric.address}), which cannot be divided among machines`;
  const own = all.filter((each) => slots.includes(slotOf(each.address)));
  const missing = slots.find((slot) => !own.some(({ address }) => slotOf(address) === slot));
  if (missing !== undefined) return `the GPU at ${missing} is not there`;
  const groups = new Set<number>();
  for (const { address, group } of own) {
    if (group === null)
      return `${address} is in no IOMMU group: switch VT-d or AMD-Vi on in the firmware, and on Intel boot with intel_iommu=on`;
    groups.add(group);
  }
  const stranger = all.find(
    (each) => each.group !== null && groups.has(each.group) && !own.includes(each) && !isPlainBridge(each),
  );
  if (stranger) {
    const { address, group } = stranger;
    return `${address} (${nameOf(stranger)}) is in IOMMU group ${group} together with ${slots.join(', ')}, and would be within the guest's reach: use another slot`;
  }
  return { groups: [...groups].sort((one, other) => one - other), addresses: own.map(({ address }) => address) };
}

/** Returns the writes that move functions from their drivers to vfio-pci, except those that it already has. */
export function takeSteps(functions: readonly PciFunction[]): SysfsWrite[] {
  return functions.filter(({ driver }) => driver !== VFIO).flatMap((each) => moveTo(each, VFIO));
}

/** Returns the writes that move functions from vfio-pci, or from no driver, to the host's own driver. */
export function returnSteps(functions: readonly PciFunction[]): SysfsWrite[] {
  return functions.filter(({ driver }) => driver === VFIO || driver === null).flatMap((each) => moveTo(each, '\n'));
}

function moveTo({ address, driver }: PciFunction, override: string): SysfsWrite[] {
  return [
    { file: `devices/${address}/driver_override`, text: override },
    ...(driver === null ? [] : [{ file: `devices/${address}/driver/unbind`, text: address }]),
    { file: 'drivers_probe', text: address },
  ];
}

/** Returns the address of a function without its function number. */
export function slotOf(address: string): string {
  return address.replace(/\.[0-7]$/, '');
}

/** Tells whether a function is a bridge that only forwards data. Such a bridge stays with the host although it is in a GPU's group. */
function isPlainBridge({ class: code }: PciFunction): boolean {
  return code >> 16 === BRIDGE && code >> 8 !== OTHER_BRIDGE;
}

const NAMES: Readonly<Record<number, string>> = {
  0x01: 'a disk controller',
  0x02: 'a network card',
  0x03: 'another GPU',
  0x04: 'a sound card',
  0x0c: 'a USB or serial controller',
};

function nameOf({ class: code }: PciFunction): string {
  return NAMES[code >> 16] ?? 'another device';
}
