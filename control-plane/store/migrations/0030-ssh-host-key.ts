/** SSH host keys of instances. */
export const sshHostKey = `
-- The public host key of its SSH server, as its host has last seen it; null: it has not.
ALTER TABLE instances ADD COLUMN ssh_host_key TEXT;
`;
