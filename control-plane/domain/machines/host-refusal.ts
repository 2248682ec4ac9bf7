/** Why the gateway refuses a host or a message of one, with what that means. The metric has a series for each. */
export const HOST_REFUSALS = {
  call: 'an enrollment or a renewal was refused: the log has its code',
  identity: 'the certificate or secret belongs to no machine, or was replaced or revoked',
  flooded: 'the host has said more than any honest one would; it may come back in a minute',
  malformed: 'the message cannot be decoded',
  crowded: 'too many hosts were connecting at once; it is told when to dial again',
  order: 'the first message was no hello, or another came before its welcome',
  protocol: 'control plane and agent have no version of the protocol in common',
  superseded: 'this control plane runs on a copy of the database that another one has overtaken',
  content: 'a message has what no honest agent would send; the log has its kind and the field',
  failed: 'an error of the control plane: the log has it',
} as const;

export type HostRefusal = keyof typeof HOST_REFUSALS;
