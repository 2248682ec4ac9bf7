/** Every address that a mail links to. */
export interface MailLinks {
  /** The description of all calls. */
  docs: string;
  /** The address of the API, without a slash at its end. */
  api: string;
  /** Returns the address that ends a category of mails; its token says for whom. */
  unsubscribe: (token: string) => string;
  /** Returns the page that sets a new password. */
  resetPassword: (token: string) => string;
  /** Returns the page that confirms the address of a new account. */
  confirmAddress: (token: string) => string;
  /** The page to ask for a new password, and to sign in. */
  forgotPassword: string;
  /** The page of the user's second factors. */
  secondFactors: string;
  signIn: string;
  /** Returns the page that accepts an invitation. */
  acceptInvite: (token: string) => string;
  /** The balance of the reader's organization, to pay and to set caps. */
  billing: string;
  /** The payments and charges of the reader's organization. */
  transactions: string;
  /** The instances of the reader's organization, to start and to stop. */
  instances: string;
  /** The API keys and SSH keys. */
  keys: string;
  /** The reader's account: the password, and which mails to get. */
  profile: string;
}

/** Returns the links of a control plane that people reach at `publicUrl`. */
export function mailLinks(publicUrl: string): MailLinks {
  return {
    docs: `${publicUrl}/docs`,
    api: publicUrl,
    resetPassword: (token) => `${publicUrl}/reset-password?token=${token}`,
    confirmAddress: (token) => `${publicUrl}/confirm-address?token=${token}`,
    forgotPassword: `${publicUrl}/forgot-password`,
    secondFactors: `${publicUrl}/account/second-factors`,
    signIn: `${publicUrl}/sign-in`,
    acceptInvite: (token) => `${publicUrl}/accept-invite?token=${token}`,
    billing: `${publicUrl}/billing`,
    transactions: `${publicUrl}/billing?tab=transactions`,
    instances: `${publicUrl}/instances`,
    keys: `${publicUrl}/keys`,
    profile: `${publicUrl}/profile`,
    unsubscribe: (token) => `${publicUrl}/v1/mail/unsubscribe/${token}`,
  };
}

/** Returns the links with the pages of this organization, and not of the one that the reader has chosen last. */
export function linksOf(organizationId: string, links: MailLinks): MailLinks {
  const open = (url: string) => `${url}${url.includes('?') ? '&' : '?'}active_organization=${organizationId}`;
  const { billing, transactions, instances, keys } = links;
  return {
    ...links,
    billing: open(billing),
    transactions: open(transactions),
    instances: open(instances),
    keys: open(keys),
  };
}
