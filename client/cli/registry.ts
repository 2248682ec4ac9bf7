import type { Define } from './invocation/define.js';

interface Entry {
  summary: string;
  /** Loads the module of the command, when the command is used. */
  load: () => Promise<{ define: Define }>;
}

type Commands = Readonly<Record<string, Entry>>;

const RENT: Commands = {
  offers: { summary: 'what can be rented now', load: () => import('./commands/offers.js') },
  templates: { summary: 'what can run on it', load: () => import('./commands/templates.js') },
  deploy: { summary: 'rent an offer and run a template on it', load: () => import('./commands/deploy.js') },
  ls: { summary: 'your instances', load: () => import('./commands/ls.js') },
  show: { summary: 'one instance with all that is known of it', load: () => import('./commands/show.js') },
  ssh: { summary: 'a shell or a command on an instance', load: () => import('./commands/ssh.js') },
  'ssh-config': { summary: 'entries for ssh, VS Code and rsync', load: () => import('./commands/ssh-config.js') },
  cp: { summary: 'copy files to or from an instance', load: () => import('./commands/cp.js') },
  logs: { summary: 'what an instance has written', load: () => import('./commands/logs.js') },
  events: { summary: 'what has happened', load: () => import('./commands/events.js') },
  usage: { summary: 'what an instance uses of its GPUs, memory and so on', load: () => import('./commands/usage.js') },
  open: { summary: 'open the page of an instance in a browser', load: () => import('./commands/open.js') },
  stop: { summary: 'end the workload, and keep the disk', load: () => import('./commands/stop.js') },
  start: { summary: 'run a stopped instance again', load: () => import('./commands/start.js') },
  destroy: { summary: 'remove an instance with its disk', load: () => import('./commands/destroy.js') },
  limits: { summary: 'what an instance may cost, and until when it runs', load: () => import('./commands/limits.js') },
  access: { summary: 'replace the access token and the SSH key', load: () => import('./commands/access.js') },
  schedule: { summary: 'start and stop an instance by the clock', load: () => import('./commands/schedule.js') },
};

const ACCOUNT: Commands = {
  login: { summary: 'sign in to a control plane', load: () => import('./commands/login.js') },
  logout: { summary: 'end the session, and forget it', load: () => import('./commands/logout.js') },
  context: { summary: 'control planes and organizations', load: () => import('./commands/context.js') },
  'ssh-keys': { summary: 'your SSH keys', load: () => import('./commands/ssh-keys.js') },
  cost: { summary: 'balance, and what was charged', load: () => import('./commands/cost.js') },
  caps: { summary: 'what the organization may spend', load: () => import('./commands/caps.js') },
  keys: { summary: 'API keys', load: () => import('./commands/keys.js') },
  team: { summary: 'members and invitations', load: () => import('./commands/team.js') },
  webhooks: { summary: 'events sent to your servers', load: () => import('./commands/webhooks.js') },
};

const OPERATE: Commands = {
  machines: { summary: 'GPU hosts; `machines add` enrolls one', load: () => import('./commands/machines.js') },
  orgs: { summary: 'organizations', load: () => import('./commands/orgs.js') },
  credit: { summary: 'grant credit to an organization', load: () => import('./commands/credit.js') },
  suspend: { summary: 'suspend an organization', load: () => import('./commands/suspend.js') },
  restore: { summary: 'end a suspension', load: () => import('./commands/restore.js') },
  quarantine: { summary: 'workloads that the database does not know', load: () => import('./commands/quarantine.js') },
  audit: { summary: 'what operators have done', load: () => import('./commands/audit.js') },
};

const TOOLS: Commands = {
  mcp: {
    summary: 'serve AI agents over stdio; `mcp install` tells them of it',
    load: () => import('./commands/mcp.js'),
  },
  api: { summary: 'send any request of the API', load: () => import('./commands/api.js') },
  completion: {
    summary: 'a script that completes commands in your shell',
    load: () => import('./commands/completion.js'),
  },
};

/** Every command, under the heading of the help. A new one needs an entry here, a module in `commands`, and its part of docs/cli.md. */
export const COMMANDS: Readonly<Record<string, Commands>> = {
  'Rent:': RENT,
  'Account:': ACCOUNT,
  'For operators:': OPERATE,
  'Tools:': TOOLS,
};
