/** What a person asks for on the command line of a deploy. */
export interface Wishes {
  offer?: string;
  gpu?: string;
  gpus?: number;
  maxPrice?: number;
  region?: string;
  template?: string;
  disk?: number;
  /** False: --no-ssh-key. */
  sshKey?: string | boolean;
  label?: string;
  env?: string[];
  secretEnv?: string[];
  /** Milliseconds. */
  for?: number;
  /** Micro-dollars. */
  maxCost?: number;
  /** Minutes. */
  idleStop?: number;
  onLimit?: 'stop' | 'destroy';
  yes?: true;
  wait?: boolean;
  resume?: true;
}
