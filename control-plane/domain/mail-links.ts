/** Every address that a mail links to. There is no page for people yet: the description of the API says how each call is made. */
export interface MailLinks {
  /** The description of all calls. */
  docs: string;
  /** The address of the API, without a slash at its end. */
  api: string;
  /** Returns the address that ends a category of mails; its token says for whom. */
  unsubscribe: (token: string) => string;
}

/** Returns the links of a control plane that people reach at `publicUrl`. */
export function mailLinks(publicUrl: string): MailLinks {
  return {
    docs: `${publicUrl}/docs`,
    api: publicUrl,
    unsubscribe: (token) => `${publicUrl}/v1/mail/unsubscribe/${token}`,
  };
}
