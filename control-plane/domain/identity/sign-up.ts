/** Who can create an account: anybody, or only people who were invited to an organization. */
export const SIGN_UP_MODES = ['open', 'invitation'] as const;
export type SignUpMode = (typeof SIGN_UP_MODES)[number];
