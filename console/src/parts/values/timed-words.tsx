import { At } from './time.js';

const TIME = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)/;

/** A text of the control plane, with each time in it as other times are shown. */
export function TimedWords({ children }: { children: string }) {
  return <>{children.split(TIME).map((part, index) => (index % 2 === 1 ? <At key={index} at={part} /> : part))}</>;
}
