import ts from 'typescript';

/** What looks again and again while real time passes. */
const WAITS = new Set(['eventually', 'poll', 'waitFor']);
/** What moves a manual clock. */
const MOVES = ['advance', 'pass', 'passTo', 'inTime', 'answeredInTime', 'advanceUntil'];

/** Returns the lines of a test on which a wait begins whose looks move a manual clock, also by a function of the same file. */
export function movedClocks(text: string): number[] {
  // Most files are done with here: to parse all of them takes seconds.
  if (![WAITS, MOVES].every((names) => [...names].some((name) => text.includes(`${name}(`)))) return [];
  const file = ts.createSourceFile('test.ts', text, ts.ScriptTarget.Latest);
  const moves = movesIn(file);
  const lineOf = (node: ts.Node) => file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1;
  const isMoved = ({ arguments: given }: ts.CallExpression) =>
    given.some((each) => calls(each).some(({ name }) => moves.has(name)) || moves.has(nameOf(each)));
  return calls(file).flatMap(({ name, call }) => (WAITS.has(name) && isMoved(call) ? [lineOf(call)] : []));
}

/** Returns the names of all that moves a clock: what always does, and each function of this file that calls one. */
function movesIn(file: ts.SourceFile): Set<string> {
  const moves = new Set(MOVES);
  const functions = functionsIn(file).map(({ name, body }) => ({ name, called: calls(body) }));
  for (let before = 0; before < moves.size;) {
    before = moves.size;
    for (const { name, called } of functions) if (called.some((each) => moves.has(each.name))) moves.add(name);
  }
  return moves;
}

function functionsIn(file: ts.SourceFile): { name: string; body: ts.Node }[] {
  const isNamed = (node: ts.Node) =>
    ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node) || ts.isVariableDeclaration(node);
  return nodesIn(file).flatMap((node) => {
    if (!isNamed(node)) return [];
    const { name } = node;
    const body = ts.isVariableDeclaration(node) ? functionOf(node.initializer) : node.body;
    return name && ts.isIdentifier(name) && body ? [{ name: name.text, body }] : [];
  });
}

function functionOf(node: ts.Expression | undefined): ts.Node | undefined {
  return node && (ts.isArrowFunction(node) || ts.isFunctionExpression(node)) ? node : undefined;
}

function calls(node: ts.Node): { name: string; call: ts.CallExpression }[] {
  return nodesIn(node).flatMap((each) =>
    ts.isCallExpression(each) ? [{ name: nameOf(each.expression), call: each }] : [],
  );
}

function nameOf(node: ts.Expression): string {
  if (ts.isPropertyAccessExpression(node)) return node.name.text;
  return ts.isIdentifier(node) ? node.text : '';
}

function nodesIn(node: ts.Node): ts.Node[] {
  const found = [node];
  // Grows meanwhile.
  for (const each of found) ts.forEachChild(each, (child) => void found.push(child));
  return found;
}
