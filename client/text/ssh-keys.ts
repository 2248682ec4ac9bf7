/**
 * How a private key looks: PEM and OpenSSH, also encrypted and without its line ends; OpenSSH without its first line; the format of
 * ssh.com; PuTTY.
 */
const PRIVATE_KEY = /BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY|(?:^|\s)b3BlbnNzaC1rZXktdjE|PuTTY-User-Key-File-/i;

/** Tells whether a text contains a private key, which must be neither sent nor stored. */
export const isPrivateKey = (text: string): boolean => PRIVATE_KEY.test(text);

/** The fingerprint of an SSH key as `ssh-keygen -l` prints it. */
export const SSH_FINGERPRINT = /^SHA256:[A-Za-z0-9+/]{43}$/;

/** Says which SSH key an instance accepts, in the same words wherever somebody is told why ssh says `Permission denied (publickey)`. */
export const onlyKey = (fingerprint: string): string => `Only the SSH key ${fingerprint} can log in.`;

/** What a person is told, beside that the key is a private one, who gives it where a public one is wanted. */
export const PRIVATE_KEY_GIVEN =
  'It was not sent. Once a private key was pasted anywhere, consider it exposed, and create a new one with ssh-keygen.';
