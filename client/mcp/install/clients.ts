import { posix, win32 } from 'node:path';

/** Where the files of programs are on this machine. */
export interface Machine {
  platform: NodeJS.Platform;
  /** The home folder. */
  home: string;
  /** The environment, for APPDATA and XDG_CONFIG_HOME. */
  env: Readonly<Record<string, string | undefined>>;
}

/** A program that starts MCP servers, and how it is told of one. */
export interface McpClient {
  id: string;
  name: string;
  /** The absolute path of its configuration, a file with JSON. */
  file: (machine: Machine) => string;
  /** The field of the file that has the servers by name. */
  field: 'mcpServers' | 'servers';
  /** Whether an entry says that it is a program. */
  withType?: true;
}

/** Every client that `gpurent mcp install` knows. */
export const MCP_CLIENTS: readonly McpClient[] = [
  {
    id: 'claude-desktop',
    name: 'Claude Desktop',
    file: (machine) => under(applicationData(machine), machine, 'Claude', 'claude_desktop_config.json'),
    field: 'mcpServers',
  },
  {
    id: 'claude-code',
    name: 'Claude Code',
    file: (machine) => under(machine.home, machine, '.claude.json'),
    field: 'mcpServers',
    withType: true,
  },
  {
    id: 'cursor',
    name: 'Cursor',
    file: (machine) => under(machine.home, machine, '.cursor', 'mcp.json'),
    field: 'mcpServers',
  },
  {
    id: 'vscode',
    name: 'Visual Studio Code',
    file: (machine) => under(applicationData(machine), machine, 'Code', 'User', 'mcp.json'),
    field: 'servers',
    withType: true,
  },
  {
    id: 'windsurf',
    name: 'Windsurf',
    file: (machine) => under(machine.home, machine, '.codeium', 'windsurf', 'mcp_config.json'),
    field: 'mcpServers',
  },
  {
    id: 'gemini',
    name: 'Gemini CLI',
    file: (machine) => under(machine.home, machine, '.gemini', 'settings.json'),
    field: 'mcpServers',
  },
];

/** Returns the folder in which programs keep their settings. */
function applicationData(machine: Machine): string {
  const { platform, home, env } = machine;
  if (platform === 'darwin') return under(home, machine, 'Library', 'Application Support');
  if (platform === 'win32') return env['APPDATA'] || under(home, machine, 'AppData', 'Roaming');
  return env['XDG_CONFIG_HOME'] || under(home, machine, '.config');
}

function under(folder: string, { platform }: Machine, ...names: string[]): string {
  return (platform === 'win32' ? win32 : posix).join(folder, ...names);
}
