/** A sequence by which a program colours its text or moves the cursor of a terminal (CSI and OSC), and what is left of a cut one. */
// eslint-disable-next-line no-control-regex
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]?|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|.)?/g;
/** What is not shown, or would turn the direction of the text after it. */
// eslint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Returns a line of a workload's output as plain text: only what is after its last carriage return, as a terminal shows it. */
export function plainLine(line: string): string {
  const shown = line.replace(/\r+$/, '').split('\r').at(-1) ?? '';
  return shown.replace(ESCAPES, '').replace(HIDDEN, '');
}
