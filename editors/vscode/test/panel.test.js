// The panel with an editor and a server of paper: what it asks, when, and which answers it shows.
"use strict";

const assert = require("node:assert");
const Module = require("node:module");
const { test, beforeEach, afterEach, mock } = require("node:test");

let posted, asked, answers, listeners, shown, view, editor, panel, settings;

const listen = (kind) => (run) => {
  listeners.set(kind, run);
  return { dispose: () => listeners.delete(kind) };
};

class Address {
  constructor(path) {
    this.path = path;
  }
  toString() {
    return `vscode-resource:${this.path}`;
  }
  static joinPath(base, name) {
    return new Address(`${base.path}/${name}`);
  }
  static parse(text) {
    return text;
  }
}

const vscode = {
  Uri: Address,
  ViewColumn: { One: 1, Beside: -2 },
  Range: class {
    constructor(...at) {
      this.at = at;
    }
  },
  window: {
    get activeTextEditor() {
      return editor;
    },
    onDidChangeTextEditorSelection: listen("selection"),
    onDidChangeActiveTextEditor: listen("editor"),
    createWebviewPanel(kind, title, where, options) {
      view = {
        kind, where, options,
        webview: {
          cspSource: "https://csp.example",
          asWebviewUri: (address) => address,
          onDidReceiveMessage: (run) => listeners.set("message", run),
          postMessage: (message) => posted.push(message),
        },
        onDidDispose: (run) => listeners.set("closed", run),
        reveal() {},
      };
      return view;
    },
    showTextDocument: async (uri, options) => shown.push([uri, options.viewColumn, options.selection.at]),
  },
  workspace: {
    onDidChangeTextDocument: listen("text"),
    getConfiguration: () => ({ get: (name) => settings[name] }),
  },
};

const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));
const { Panel, DELAY } = require("../src/panel.js");
const { page, policy } = require("../src/page.js");
const render = require("../media/render.js");

const definition = (name) => ({ result: { definition: { name, names: ["n"], sizes: { n: 8 } }, mistakes: [] } });
const at = (line, uri = "file:///f.rise") => ({
  document: { languageId: "rise", uri: { toString: () => uri } },
  selection: { active: { line, character: 2 } },
  viewColumn: 1,
});
const send = (message) => listeners.get("message")(message);
const sections = () => asked.map(({ section }) => section);
const settle = async () => {
  for (let n = 0; n < 20; n += 1) await Promise.resolve();
};
/** What happens when the cursor rests. */
async function rest() {
  mock.timers.tick(DELAY);
  await settle();
}

beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout"] });
  [posted, asked, shown] = [[], [], []];
  listeners = new Map();
  settings = { target: "" };
  editor = at(3);
  answers = { type: () => definition("f"), rules: () => ({ result: "rules" }) };
  const ask = async (params) => {
    asked.push(params);
    return (answers[params.section] ?? (() => ({ result: params.section })))(params);
  };
  panel = new Panel(new Address("/extension"), ask, () => shown.push("closed"));
});

afterEach(() => {
  panel.dispose();
  mock.timers.reset();
});

test("its document runs two scripts of ours and loads nothing else", () => {
  const { html } = view.webview;
  const nonce = /nonce-([^']+)'/.exec(html)[1];
  assert.match(html, new RegExp(`content="default-src 'none'; style-src https://csp.example; script-src 'nonce-`));
  const scripts = [...html.matchAll(/<script([^>]*)>([^<]*)<\/script>/g)];
  assert.deepStrictEqual(scripts.map(([, given, text]) => [given.includes(`nonce="${nonce}"`), text]), [[true, ""], [true, ""]]);
  assert.match(html, /src="vscode-resource:\/extension\/media\/render.js"/);
  assert.deepStrictEqual([...html.matchAll(/ on\w+=|style=/g)], []);
  assert.deepStrictEqual(view.options.localResourceRoots.map((each) => each.path), ["/extension/media"]);
  const other = new Panel(new Address("/extension"), async () => ({}), () => {});
  assert.notStrictEqual(/nonce-([^']+)'/.exec(view.webview.html)[1], nonce); // a new one each time
  other.dispose();
});

test("what is put into the document cannot leave its place", () => {
  const html = page({ source: 'x"><script>', nonce: '"><b>', style: '"><i>', scripts: ['"><u>'] });
  assert.doesNotMatch(html, /<b>|<i>|<u>|"><script>/);
  assert.strictEqual(policy("s", "n"), "default-src 'none'; style-src s; script-src 'nonce-n'");
});

test("it shows the type at once, and other sections when they are opened", async () => {
  await send({ kind: "ready" });
  assert.deepStrictEqual(sections(), ["type"]);
  assert.deepStrictEqual(asked[0].position, { line: 3, character: 2 });
  await send({ kind: "section", section: "rules", open: true });
  assert.deepStrictEqual(sections(), ["type", "rules"]);
  assert.deepStrictEqual(posted.at(-1), { kind: "answer", section: "rules", answer: { result: "rules" } });
  await send({ kind: "section", section: "../secret", open: true });
  assert.strictEqual(asked.length, 2);
});

test("it follows the cursor when that rests, and asks again only for what depends on it", async () => {
  await send({ kind: "ready" });
  for (const section of ["rules", "kernel"]) await send({ kind: "section", section, open: true });
  asked.length = 0;
  for (const line of [4, 5, 6]) {
    editor = at(line);
    listeners.get("selection")();
  }
  assert.strictEqual(asked.length, 0);
  await rest();
  assert.deepStrictEqual(sections(), ["type", "rules"]);
  assert.strictEqual(asked[1].position.line, 6);
  asked.length = 0;
  listeners.get("text")({ document: { languageId: "markdown" } });
  await rest();
  assert.deepStrictEqual(sections(), []);
  listeners.get("text")({ document: { languageId: "rise" } });
  await rest();
  assert.deepStrictEqual(sections(), ["type", "rules", "kernel"]);
  asked.length = 0;
  await send({ kind: "section", section: "kernel", open: false });
  listeners.get("text")({ document: { languageId: "rise" } });
  await rest();
  assert.deepStrictEqual(sections(), ["type", "rules"]);
});

test("an answer that came too late is not shown", async () => {
  await send({ kind: "ready" });
  let first;
  answers.rules = () => new Promise((done) => (first = done));
  const opening = send({ kind: "section", section: "rules", open: true });
  answers.rules = () => ({ result: "new" });
  editor = at(9);
  listeners.get("selection")();
  await rest();
  first({ result: "old" });
  await opening;
  const rules = posted.filter(({ kind, section }) => kind === "answer" && section === "rules");
  assert.deepStrictEqual(rules.map(({ answer }) => answer.result), ["new"]);
});

test("a request that a newer one took the place of is not shown, and is asked again", async () => {
  await send({ kind: "ready" });
  answers.kernel = () => ({ error: { code: "superseded" } });
  await send({ kind: "section", section: "kernel", open: true });
  assert.strictEqual(posted.some(({ kind, section }) => kind === "answer" && section === "kernel"), false);
  answers.kernel = () => ({ result: "cuda" });
  listeners.get("selection")();
  await rest();
  assert.strictEqual(posted.at(-1).answer.result, "cuda");
});

test("a server that fails is an answer", async () => {
  answers.type = () => {
    throw Object.assign(new Error("gone"), { code: -32602 });
  };
  await send({ kind: "ready" });
  assert.deepStrictEqual(posted.at(-1).answer, { error: { code: "-32602", message: "gone", mistakes: [] } });
});

test("sizes are kept for each definition", async () => {
  await send({ kind: "ready" });
  await send({ kind: "sizes", sizes: "n=5" });
  assert.strictEqual(asked.at(-1).sizes, "n=5");
  answers.type = () => definition("g");
  listeners.get("selection")();
  await rest();
  assert.strictEqual(panel.params("rules").sizes, "");
  answers.type = () => definition("f");
  asked.length = 0;
  listeners.get("selection")();
  await rest();
  assert.deepStrictEqual(asked.map(({ sizes }) => sizes), ["", "n=5"]);
});

test("a rule, a step and a wider term are asked for when they are pressed", async () => {
  await send({ kind: "ready" });
  await send({ kind: "section", section: "rules", open: true });
  await send({ kind: "rule", rule: "splitJoin", path: [0] });
  assert.deepStrictEqual([asked.at(-1).rule, asked.at(-1).path], ["splitJoin", [0]]);
  assert.deepStrictEqual(posted.at(-1), { kind: "rule", rule: "splitJoin", answer: { result: "rule" } });
  await send({ kind: "step", number: 4 });
  assert.strictEqual(asked.at(-1).number, 4);
  await send({ kind: "term", path: [0, 1] });
  assert.deepStrictEqual([asked.at(-1).section, asked.at(-1).path], ["rules", [0, 1]]);
});

test("a place is shown where programs are, though the panel is active", async () => {
  await send({ kind: "ready" });
  editor = undefined;
  const range = { start: { line: 1, character: 2 }, end: { line: 3, character: 4 } };
  await send({ kind: "reveal", place: { uri: "file:///f.rise", range } });
  assert.deepStrictEqual(shown, [["file:///f.rise", 1, [1, 2, 3, 4]]]);
  await rest();
  assert.strictEqual(panel.cursor.uri, "file:///f.rise"); // the program that was active last
});

test("without a program nothing is asked; when it is closed it stops listening", async () => {
  panel.dispose();
  editor = undefined;
  panel = new Panel(new Address("/extension"), async (params) => asked.push(params), () => shown.push("closed"));
  await send({ kind: "ready" });
  await send({ kind: "sizes", sizes: "n=5" });
  assert.strictEqual(asked.length, 0);
  listeners.get("closed")();
  assert.deepStrictEqual([shown, listeners.has("selection"), listeners.has("text")], [["closed"], false, false]);
});

test("the GPU of the settings is sent", async () => {
  settings.target = "sm_80";
  await send({ kind: "ready" });
  assert.strictEqual(asked[0].target, "sm_80");
});

// --- rendering --------------------------------------------------------------------------------------

const EVIL = `<img src=x onerror=alert(1)>"'&`;
const place = (line, last = line) => ({
  file: "/p/f.rise", line: line + 1, column: 1, end_line: last + 1, end_column: 9, uri: "file:///p/f.rise",
  range: { start: { line, character: 0 }, end: { line: last, character: 8 } },
});

/** Every text of an answer replaced by one that would break out of a page without care. */
function evil(value, key) {
  if (typeof value === "string") return ["uri", "code"].includes(key) ? value : EVIL;
  if (Array.isArray(value)) return value.map((each) => evil(each));
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, evil(each, name)]));
  return value;
}

const TERM = { path: [0], text: "xs |> map(f)", type: "n.f32", place: place(1) };
const RULE = { name: "splitJoin", equation: "a → b", meaning: "blocks", known: "proved for all sizes", exact: false, conditions: [{ name: "c", reason: "r" }], given: { n: 32 }, asks: ["32 | n"] };
const ANSWERS = {
  type: { result: { definition: { name: "f", place: place(0), type: "n.f32", constraints: ["2 | n"], comment: "what", sizes: { n: 8 }, inputs: [{ name: "xs", type: "n.f32", at: "8.f32" }], result: { type: "f32", at: "f32" } }, here: { text: "x", type: "f32" }, mistakes: [] } },
  rules: { result: { term: TERM, around: [TERM], own: [RULE], general: [{ ...RULE, known: "tested on instances", given: {} }] } },
  derivation: { result: { target: "sm_80", plan: ["tensor_core: fast"], steps: [{ rule: "a", by: ["s", "t"], place: place(0) }, { rule: "b", by: ["s", "u"], place: place(0) }] } },
  kernel: { result: { text: ["int a;", "int b;", ""], lines: [0, 1, -1], parts: [[[], 3, "map(f)", ""], [[], 0, "xs", ""]], places: [place(0, 4), place(1)], kernels: [{ name: "k", facts: [["grid", "1"]] }] } },
};
const STEP = { result: { number: 1, rule: { ...RULE }, parameters: { n: 4 }, known: "proved", asks: [], by: ["s"], place: place(0), before: { text: "a\n𝒳bc", extent: [1, 1, 1, 2] }, after: { text: "d", extent: [] } } };
const ERROR = { error: { code: "R0301", message: "types", mistakes: [{ code: "R0301", message: "types", hint: "cast", notes: ["n"], ...place(4) }] } };

test("no text of an answer becomes a tag", () => {
  const drawn = [
    ...Object.keys(ANSWERS).map((name) => render[name](evil(ANSWERS[name]))),
    render.rules(evil(ANSWERS.rules), { [EVIL]: evil({ result: { ...RULE, before: "a", after: "b" } }) }),
    render.derivation(evil(ANSWERS.derivation), evil(STEP)),
    render.type(evil(ERROR)),
  ];
  for (const html of drawn) {
    assert.doesNotMatch(html, /<img/);
    assert.match(html, /&lt;img/);
    for (const [, quote] of html.matchAll(/ (?:title|data-\w+)="([^"]*)"/g)) assert.doesNotMatch(quote, /[<>]/);
  }
});

test("the type is shown for all sizes and at those chosen", () => {
  const html = render.type(ANSWERS.type);
  assert.match(html, /<h1>f <button[^>]*>f.rise:1:1<\/button>/);
  assert.match(html, /at n = 8/);
  assert.match(html, /<td>xs<\/td><td><code>n.f32<\/code><\/td><td><code>8.f32<\/code>/);
  assert.match(render.type({ result: { definition: null, mistakes: [] } }), /in no definition/);
});

test("rules are in two groups, each with its mark and the values it needs", () => {
  const html = render.rules(ANSWERS.rules);
  assert.match(html, /Rules of this construct <small>1</);
  assert.match(html, /General laws <small>1</);
  assert.match(html, /∎<\/span> <b>splitJoin<\/b> <small>with n = 32<\/small>/);
  assert.match(html, /·<\/span> <b>splitJoin<\/b> <span/);
  const reordered = { ...RULE, known: "proved for all sizes, up to the rounding of sums" };
  assert.match(render.rules({ result: { ...ANSWERS.rules.result, own: [reordered] } }), /≈<\/span> <b>splitJoin/);
  const opened = render.rules(ANSWERS.rules, { splitJoin: { result: { ...RULE, before: "a", after: "b" } } });
  assert.match(opened, /<pre>a<\/pre>[^]*becomes[^]*<pre>b<\/pre>/);
  assert.match(opened, /changes the order of sums/);
});

test("a step marks the term it rewrites, in units of UTF-16", () => {
  assert.match(render.derivation(ANSWERS.derivation, STEP), /<pre>a\n𝒳<del>b<\/del>c<\/pre>/);
  const list = render.derivation(ANSWERS.derivation);
  assert.match(list, /<li class="by">s › t<\/li>.*<li class="by">s › u<\/li>/);
  assert.strictEqual([...list.matchAll(/tabindex="0"/g)].length, 1);
});

test("lines of CUDA lead to their places, and the cursor's lines are marked", () => {
  const cursor = { uri: "file:///p/f.rise", position: { line: 1, character: 3 } };
  const html = render.kernel(ANSWERS.kernel, cursor);
  assert.match(html, /<button[^>]*class="l" title="f.rise:1:1: map\(f\), made by step 3"/);
  assert.match(html, /<button[^>]*class="l marked" title="f.rise:2:1: xs"/);
  assert.match(html, /<div class="l">/); // a line that comes from nowhere
  assert.deepStrictEqual([...render.partsAt(ANSWERS.kernel.result, cursor)], [1]);
  assert.deepStrictEqual([...render.partsAt(ANSWERS.kernel.result, { ...cursor, uri: "file:///g" })], []);
});

test("a mistake is told with its place and hint", () => {
  const html = render.kernel(ERROR);
  assert.match(html, /role="alert"><p><b>R0301<\/b> types <button[^>]*>f.rise:5:1<\/button><\/p><p>cast/);
  assert.match(render.rules({ result: null }), /in no definition/);
  const unsaved = { ...ERROR.error.mistakes[0], uri: "untitled:a%20b", file: "/x/untitled%3Aa%2520b" };
  assert.match(render.type({ error: { mistakes: [unsaved] } }), />untitled:a b:5:1</);
  assert.match(render.type({ error: { mistakes: [{ ...unsaved, uri: "untitled:100%" }] } }), />untitled:100%:5:1</);
});
