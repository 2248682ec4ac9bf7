/**
 * How a private key looks: PEM and OpenSSH, also encrypted and without its line ends; OpenSSH without its first line; the format of
 * ssh.com; PuTTY.
 */
const PRIVATE_KEY = /BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY|(?:^|\s)b3BlbnNzaC1rZXktdjE|PuTTY-User-Key-File-/i;

/** Tells whether a text contains a private key, which must be neither sent nor stored. */
export const isPrivateKey = (text: string): boolean => PRIVATE_KEY.test(text);
