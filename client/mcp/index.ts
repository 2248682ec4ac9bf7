export { createMcpServer, type McpOptions, type RunCommand } from './server.js';
