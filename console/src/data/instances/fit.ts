import type { Offer, Template } from '../api/models.js';

type Machine = Pick<Offer['machine'], 'vm_capable' | 'cuda_version'>;
type Needs = Pick<Template, 'kind' | 'cuda_max' | 'cuda_min' | 'arch' | 'coming_soon'>;

/** Why a template cannot run on the machine of an offer, as far as both tell; undefined: it can. The estimate of a deploy has the last word. */
export function misfitOf(needs: Needs, { vm_capable, cuda_version }: Machine): string | undefined {
  if (needs.coming_soon) return 'the template is not published yet';
  if (needs.arch !== 'x86_64') return `the template needs ${needs.arch}, and this machine is x86_64`;
  if (needs.kind === 'vm' && !vm_capable) return 'the template is a virtual machine, and this machine runs none';
  if (needs.cuda_max !== null && cuda_version !== null && isNewer(cuda_version, needs.cuda_max))
    return `the template supports CUDA up to ${needs.cuda_max}, and this machine has ${cuda_version}`;
  if (needs.cuda_min !== null && cuda_version !== null && isNewer(needs.cuda_min, cuda_version))
    return `the template needs CUDA ${needs.cuda_min} or newer, and this machine has ${cuda_version}`;
  return undefined;
}

/** Compares versions by their numbers: 12.10 is newer than 12.9. */
function isNewer(version: string, other: string): boolean {
  const [numbers, others] = [version, other].map((each) => each.split('.').map(Number));
  for (const [index, number] of (numbers ?? []).entries()) {
    const difference = number - (others?.[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}
