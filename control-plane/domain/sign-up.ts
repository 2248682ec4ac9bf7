/** Who may make an account: anybody, or who was invited to an organization. */
export const SIGN_UP_MODES = ['open', 'invitation'] as const;
export type SignUpMode = (typeof SIGN_UP_MODES)[number];
