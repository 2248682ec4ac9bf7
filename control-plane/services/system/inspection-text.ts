import type { Inspection } from './inspect.js';

/** Control characters and characters that change the direction of text: hosts and renters choose some of the values shown. */
const UNPRINTABLE = /(?!\n)[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Formats an inspection as one indented JSON document. */
export function inspectionJson(inspection: Inspection): string {
  return `${printable(JSON.stringify(inspection, null, 2))}\n`;
}

/**
 * Formats an inspection for people. Each section has a heading, then a line for each field of a row, or a line for each row of a
 * list. Null values are left out.
 */
export function inspectionText(inspection: Inspection): string {
  return Object.entries(inspection)
    .map(([name, section]) => {
      if (section === null) return `${name}: none\n`;
      if (Array.isArray(section)) return [`${name}: ${section.length || 'none'}\n`, ...section.map(lineOf)].join('');
      return [`${name}\n`, ...fieldsOf(section).map(([key, value]) => `  ${key.padEnd(32)} ${value}\n`)].join('');
    })
    .join('\n');
}

function lineOf(fields: Record<string, string | number | null>): string {
  return `  ${fieldsOf(fields)
    .map(([key, value]) => `${key}=${/\s/.test(value) ? `"${value}"` : value}`)
    .join(' ')}\n`;
}

function fieldsOf(fields: Record<string, string | number | null>): [string, string][] {
  return Object.entries(fields).flatMap(([key, value]) =>
    value === null ? [] : [[key, printable(String(value)).replaceAll('\n', '\\n')] as [string, string]],
  );
}

function printable(text: string): string {
  return text.replace(UNPRINTABLE, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
