/** Programs by what their `User-Agent` contains. The first that fits: Edge and Opera also name Chrome, and Chrome names Safari. */
const PROGRAMS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(e|A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(Firefox|FxiOS)\//, 'Firefox'],
  [/\b(Chrome|Chromium|CriOS|HeadlessChrome)\//, 'Chrome'],
  [/\bVersion\/[\d.]+ .*\bSafari\//, 'Safari'],
  [/^curl\//, 'curl'],
  [/^Wget\//, 'Wget'],
  [/\b(python|aiohttp)\b/i, 'a Python program'],
  [/^(node|undici|axios)\b/, 'a Node.js program'],
  [/^Go-http-client\//, 'a Go program'],
];
/** Systems, too: iPads and iPhones name Mac OS, Android names Linux. */
const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, 'an iPhone'],
  [/\biPad\b/, 'an iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\b(Macintosh|Mac OS X)\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
];
/** Longer headers say nothing more about the device. */
const MOST_CHARS = 512;

/**
 * Returns what a `User-Agent` says of a device in plain words, such as `Firefox on Windows`; null if it names nothing that is known. Every
 * word comes from the lists above, so a client can show nobody a text of its own.
 */
export function deviceOf(userAgent: string | undefined): string | null {
  const text = (userAgent ?? '').slice(0, MOST_CHARS);
  const program = PROGRAMS.find(([pattern]) => pattern.test(text))?.[1];
  const system = SYSTEMS.find(([pattern]) => pattern.test(text))?.[1];
  if (program === undefined) return system === undefined ? null : `A program on ${system}`;
  const named = program.replace(/^a /, 'A ');
  return system === undefined ? named : `${named} on ${system}`;
}
