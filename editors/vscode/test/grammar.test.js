// The grammar in the engine that VS Code uses: the scopes of a program's words.
"use strict";

const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");
const { test } = require("node:test");
const oniguruma = require("vscode-oniguruma");
const { INITIAL, Registry, parseRawGrammar } = require("vscode-textmate");

async function grammar() {
  const wasm = path.join(path.dirname(require.resolve("vscode-oniguruma")), "onig.wasm");
  await oniguruma.loadWASM(fs.readFileSync(wasm).buffer);
  const file = path.join(__dirname, "..", "syntaxes", "rise.tmLanguage.json");
  const registry = new Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => parseRawGrammar(fs.readFileSync(file, "utf8"), file),
  });
  return registry.loadGrammar("source.rise");
}

test("words have their scopes, and comments hide them", async () => {
  const found = await grammar();
  let state = INITIAL;
  const scopes = [];
  for (const line of ["def dot{n: Nat}(xs: n.f32) = xs |> mapWarp(x => 2.5) // map", "/* let", "let */ let"]) {
    const { tokens, ruleStack } = found.tokenizeLine(line, state);
    state = ruleStack;
    for (const token of tokens) {
      const word = line.slice(token.startIndex, token.endIndex).trim();
      if (word) scopes.push([word, token.scopes.at(-1)]);
    }
  }
  const scope = (word) => scopes.find(([text]) => text === word)?.[1];
  assert.strictEqual(scope("def"), "keyword.declaration.rise");
  assert.strictEqual(scope("dot"), "entity.name.function.rise");
  assert.strictEqual(scope("Nat"), "storage.type.kind.rise");
  assert.strictEqual(scope("f32"), "storage.type.rise");
  assert.strictEqual(scope("mapWarp"), "support.function.rise");
  assert.strictEqual(scope("|>"), "keyword.operator.rise");
  assert.strictEqual(scope("x"), "variable.parameter.rise");
  assert.strictEqual(scope("2.5"), "constant.numeric.rise");
  assert.strictEqual(scope("// map"), "comment.line.double-slash.rise");
  assert.deepStrictEqual(
    scopes.filter(([word]) => word === "let").map(([, kind]) => kind),
    ["comment.block.rise", "comment.block.rise", "keyword.control.rise"],
  );
});
