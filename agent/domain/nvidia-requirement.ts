/** What NVIDIA's container toolkit says when the driver does not meet what an image asks for: `unsatisfied condition: cuda>=12.8, ...`. */
const UNMET = /unsatisfied condition: {0,8}([A-Za-z0-9._<>=!~() -]{1,100})/;

/**
 * Returns, for renters, what an image needs and the driver of this host lacks, if that is why Docker did not start a container. The
 * image has written the condition, so only a few plain characters of it are taken.
 */
export function unmetRequirement(reason: string): string | undefined {
  if (!reason.toLowerCase().includes('nvidia')) return undefined;
  const condition = UNMET.exec(reason)?.[1]?.trim();
  if (condition === undefined || condition === '') return undefined;
  return `the image requires ${condition} (NVIDIA_REQUIRE_CUDA), and the NVIDIA driver of this machine does not meet that; choose a machine with a newer CUDA version, or an image for an older one`;
}
