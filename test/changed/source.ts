/** What a source file is made of: parts that change and run as one, and the names by which they use each other. */
export interface Source {
  parts: Part[];
  /** What each name stands for that the file imports. */
  imports: Record<string, Imported>;
  /** What each name stands for that the file exports: one of its own names, or one of another file. */
  exports: Record<string, string | Imported>;
  /** The files whose names it exports all. */
  passesOn: string[];
  /** What it imports for its effect alone. */
  effects: string[];
}

export interface Imported {
  /** Within the repository the path without its extension, else the package. */
  from: string;
  /** The name there; `*` for all of them. */
  name: string;
}

export interface Part {
  /** Where it is, by the names around it: `Store.transact`, `openStore/forEach()#2`. */
  path: string;
  /** A function runs; a value is made when the file is loaded; a statement has an effect then. */
  kind: 'function' | 'value' | 'statement';
  /** Of its text without types, comments and the functions in it, which are parts of their own. */
  hash: string;
  /** Names of the file's top level that are in its text. */
  uses: string[];
  /** Of a value: the names that it declares. */
  declares: string[];
}

/** Where the body of a function is in the code without types. */
export interface Body {
  part: number;
  start: number;
  end: number;
  isBlock: boolean;
}
