/** Why the gateway refuses a host or a message of one. The metric has a series for each. */
export const HOST_REFUSALS = [
  // An enrollment or a renewal was refused: the log has its code.
  'call',
  // The certificate or secret belongs to no machine, or was replaced or revoked.
  'identity',
  // The host has said more than any honest one would; it may come back in a minute.
  'flooded',
  // The message cannot be decoded.
  'malformed',
  // Too many hosts were connecting at once; it is told when to dial again.
  'crowded',
  // The first message was no hello, or another came before its welcome.
  'order',
  // Control plane and agent have no version of the protocol in common.
  'protocol',
  // This control plane runs on a copy of the database that another one has overtaken.
  'superseded',
  // A message has what no honest agent would send; the log has its kind and the field.
  'content',
  // An error of the control plane: the log has it.
  'failed',
] as const;

export type HostRefusal = (typeof HOST_REFUSALS)[number];
