/** What the address of the webhooks says: whether the form of a new endpoint is open. */
export interface WebhooksSearch {
  add?: true;
}

/** Reads the address; what it does not know is left out. */
export function webhooksSearch({ add }: Record<string, unknown>): WebhooksSearch {
  return add === true ? { add } : {};
}
