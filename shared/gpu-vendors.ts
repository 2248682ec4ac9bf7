/** Beginnings of the variables by which a vendor's container runtime chooses GPUs: the host sets these, and nobody else. */
const VENDOR_PREFIXES = ['NVIDIA_'] as const;

/** Whether a variable of the environment belongs to a GPU vendor's runtime, so that no template and no renter sets it. */
export function isVendorVariable(name: string): boolean {
  return VENDOR_PREFIXES.some((prefix) => name.startsWith(prefix));
}
