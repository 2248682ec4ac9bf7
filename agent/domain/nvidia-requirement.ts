import { areTellable } from '../../shared/image-requirement.js';

/** What NVIDIA's container toolkit says when the driver does not meet what an image asks for: `unsatisfied condition: cuda>=12.8, ...`. */
const UNMET = /unsatisfied condition: {0,8}([A-Za-z0-9._<>=!~() -]{1,100})/;

const REQUIRES = /^NVIDIA_REQUIRE_(?!JETPACK)/;
/** What NVIDIA's toolkit reads as true. */
const TRUE = /^(1|t|T|true|True|TRUE)$/;

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

/**
 * Returns what an image requires of NVIDIA's driver: the values of its NVIDIA_REQUIRE_* variables, none if NVIDIA_DISABLE_REQUIRE is true.
 * As NVIDIA's toolkit does, it leaves out those for Jetson. Undefined: it is too much to be told.
 */
export function requirementsOf(env: readonly string[]): string[] | undefined {
  const variables = env.map(
    (entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)] as const,
  );
  const isDisabled = variables.some(([name, value]) => name === 'NVIDIA_DISABLE_REQUIRE' && TRUE.test(value));
  if (isDisabled) return [];
  const required = variables.filter(([name]) => REQUIRES.test(name)).map(([, value]) => value);
  return areTellable(required) ? required : undefined;
}
