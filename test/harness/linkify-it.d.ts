declare module 'linkify-it' {
  /** Finds links in text, as mail programs do. */
  export default class LinkifyIt {
    constructor(options?: { fuzzyLink?: boolean; fuzzyEmail?: boolean; fuzzyIP?: boolean });
    match(text: string): { url: string; raw: string }[] | null;
  }
}
