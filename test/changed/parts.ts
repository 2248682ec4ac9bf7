import type { Body, Part } from './source.js';

/** What we need of a node of the syntax tree. */
export interface Node {
  type: string;
  start: number;
  end: number;
  name?: string;
  value?: unknown;
  kind?: string;
  computed?: boolean;
  shorthand?: boolean;
  static?: boolean;
  id?: Node | null;
  key?: Node;
  local?: Node;
  imported?: Node;
  exported?: Node | null;
  callee?: Node;
  property?: Node;
  left?: Node;
  body?: Node;
  source?: Node | null;
  declaration?: Node | null;
  declarations?: Node[];
  specifiers?: Node[];
}

interface Found extends Omit<Part, 'hash' | 'uses'> {
  start: number;
  end: number;
  uses: Set<string>;
  /** The functions in it. */
  holes: { start: number; end: number }[];
}

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);

/** Finds the parts of a source, in the order of their beginnings. */
export class PartFinder {
  readonly found: Found[] = [];
  readonly bodies: Body[] = [];
  readonly dynamicImports = new Set<string>();
  private readonly taken = new Map<string, number>();

  /** Adds a statement of the top level and all functions in it. */
  addStatement(statement: Node): void {
    if (FUNCTIONS.has(statement.type)) return this.addFunction(statement, undefined, undefined);
    if (statement.type !== 'VariableDeclaration') return this.addTopLevel(statement);
    for (const declarator of statement.declarations ?? []) this.addTopLevel(declarator);
  }

  topLevelNames(): string[] {
    return this.found.flatMap(({ kind, path, declares }) => (kind === 'function' ? [path] : declares));
  }

  static namesOf(declaration: Node | null | undefined): string[] {
    if (!declaration) return [];
    const declared = declaration.declarations ?? [declaration];
    return declared.flatMap(({ id }) => (id ? boundBy(id) : []));
  }

  private addTopLevel(node: Node): void {
    const isDeclared = node.type === 'VariableDeclarator' || node.type === 'ClassDeclaration';
    const declares = isDeclared ? PartFinder.namesOf(node) : [];
    const isDefault = !isDeclared && !node.type.endsWith('Statement');
    if (isDefault) declares.push('default');
    const kind = declares.length === 0 ? 'statement' : 'value';
    const part = this.add(node, kind, declares.join(',') || 'statement', declares);
    this.addWithin(node, part);
  }

  private addFunction(node: Node, parent: Node | undefined, within: Found | undefined): void {
    within?.holes.push(node);
    const name = hintOf(node, parent);
    const part = this.add(node, 'function', within ? `${within.path}/${name}` : name, []);
    const { body } = node;
    if (!body) return;
    const { start, end } = body;
    this.bodies.push({ part: this.found.length - 1, start, end, isBlock: body.type === 'BlockStatement' });
    this.addWithin(node, part);
  }

  private add({ start, end }: Node, kind: Part['kind'], name: string, declares: string[]): Found {
    const times = (this.taken.get(name) ?? 0) + 1;
    this.taken.set(name, times);
    const path = times === 1 ? name : `${name}#${times}`;
    const part = { path, kind, declares, start, end, uses: new Set<string>(), holes: [] };
    this.found.push(part);
    return part;
  }

  private addWithin(node: Node, part: Found): void {
    for (const [place, value] of Object.entries(node)) {
      for (const child of Array.isArray(value) ? value : [value]) {
        if (!isNode(child)) continue;
        if (FUNCTIONS.has(child.type)) this.addFunction(child, node, part);
        else if (!isMereName(node, place)) this.addUse(child, part);
      }
    }
  }

  private addUse(node: Node, part: Found): void {
    if ((node.type === 'Identifier' || node.type === 'JSXIdentifier') && node.name !== undefined)
      part.uses.add(node.name);
    if (node.type === 'ImportExpression' && typeof node.source?.value === 'string') {
      this.dynamicImports.add(node.source.value);
      part.uses.add(`import(${node.source.value})`);
    }
    this.addWithin(node, part);
  }
}

/** Whether what stands there names a property, and no variable. */
function isMereName({ type, computed, shorthand }: Node, place: string): boolean {
  if (computed === true || shorthand === true) return false;
  if (place === 'property') return type === 'MemberExpression';
  return place === 'key' && ['Property', 'MethodDefinition', 'PropertyDefinition'].includes(type);
}

function hintOf(node: Node, parent: Node | undefined): string {
  if (node.id?.name !== undefined) return node.id.name;
  if (parent?.key)
    return `${parent.kind === 'get' || parent.kind === 'set' ? `${parent.kind} ` : ''}${lastName(parent.key)}`;
  if (parent?.type === 'CallExpression' || parent?.type === 'NewExpression') return `${lastName(parent.callee)}()`;
  return lastName(parent?.id ?? parent?.left) || 'function';
}

function lastName(node: Node | null | undefined): string {
  if (!node) return '';
  if (node.name !== undefined) return node.name;
  if (node.property) return lastName(node.property);
  return typeof node.value === 'string' ? node.value : '';
}

function boundBy(pattern: Node): string[] {
  if (pattern.type === 'Identifier') return [pattern.name ?? ''];
  return Object.entries(pattern).flatMap(([place, value]) => {
    if (place === 'key') return [];
    return (Array.isArray(value) ? value : [value]).filter(isNode).flatMap(boundBy);
  });
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}
