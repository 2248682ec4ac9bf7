export { MCP_CLIENTS, type Machine, type McpClient } from './clients.js';
export { clientsOn, install, InstallError, SERVER_NAME, uninstall, type Installed, type Program } from './install.js';
