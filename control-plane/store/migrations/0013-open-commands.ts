/** The open command of an instance is found without its earlier ones. */
export const openCommands = `
CREATE INDEX commands_open ON commands (machine_id, instance_id, sequence) WHERE state = 'open';
`;
