/** Prefixes of the variables by which a vendor's container runtime chooses GPUs. Only the host sets them. */
const VENDOR_PREFIXES = ['NVIDIA_'] as const;

/** Returns whether an environment variable belongs to a GPU vendor's runtime; templates and renters cannot set it. */
export function isVendorVariable(name: string): boolean {
  return VENDOR_PREFIXES.some((prefix) => name.startsWith(prefix));
}
