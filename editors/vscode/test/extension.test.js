// The extension with an editor of paper: what it starts, asks, forwards and shows. VS Code itself is not run.
"use strict";

const assert = require("node:assert");
const Module = require("node:module");
const { test, beforeEach } = require("node:test");

let commands, shown, settings, started, answers, active, panels;

class Client {
  constructor(id, name, server, options) {
    Object.assign(this, { id, name, server, options, running: false });
    started.push(this);
  }
  async start() {
    if (settings.pythonPath === "missing") throw new Error("spawn missing ENOENT");
    this.running = true;
  }
  async stop() {
    this.running = false;
  }
  isRunning() {
    return this.running;
  }
  async sendRequest(method, params) {
    return { result: [method, params.section] };
  }
}

const channel = {
  clear: () => (shown.length = 0),
  append: (text) => shown.push(text),
  appendLine: (text) => shown.push(`${text}\n`),
  show() {},
};

const vscode = {
  ProgressLocation: { Notification: 15 },
  extensions: { getExtension: () => undefined },
  workspace: {
    getConfiguration: () => ({ get: (name) => settings[name] }),
    createFileSystemWatcher: (pattern) => ({ pattern }),
  },
  window: {
    get activeTextEditor() {
      return active;
    },
    createOutputChannel: () => channel,
    showInputBox: async (question) => answers.sizes(question),
    showInformationMessage: (text) => shown.push(text),
    showErrorMessage: (text) => shown.push(text),
    withProgress: (_, work) => work(),
  },
  commands: {
    registerCommand: (name, run) => commands.set(name, run),
    executeCommand: async (name, ...given) => {
      if (name === "vscode.executeDocumentSymbolProvider") return answers.symbols;
      answers.executed.push([name, ...given]);
    },
  },
};

class Panel {
  constructor(address, ask, closed) {
    Object.assign(this, { ask, closed, revealed: 0 });
    panels.push(this);
  }
  reveal() {
    this.revealed += 1;
  }
}

const load = Module._load;
Module._load = function (name, ...rest) {
  if (name === "vscode") return vscode;
  if (name === "./panel.js") return { Panel };
  if (name === "vscode-languageclient/node") return { LanguageClient: Client };
  return load.call(this, name, ...rest);
};
const extension = require("../src/extension.js");

beforeEach(async () => {
  commands = new Map();
  shown = [];
  started = [];
  panels = [];
  settings = { pythonPath: "/env/bin/python", askForSizes: true };
  answers = { sizes: () => "n=8  m=3", symbols: [], executed: [] };
  active = undefined;
  await extension.deactivate();
});

test("it starts the server of the chosen Python", async () => {
  await extension.activate({ subscriptions: [] });
  const [client] = started;
  assert.deepStrictEqual(client.server, {
    command: "/env/bin/python",
    args: ["-P", "-m", "rise.cli", "lsp"],
  });
  assert.deepStrictEqual(client.options.initializationOptions, { showsResults: true });
  await commands.get("rise.restart")();
  assert.deepStrictEqual(
    started.map((each) => each.running),
    [false, true],
  );
});

test("where the server does not start, it says what to install", async () => {
  settings.pythonPath = "missing";
  await extension.activate({ subscriptions: [] });
  assert.match(shown.join(), /missing -m pip install 'rise-lang\[lsp\]'/);
});

test("every command of the manifest is registered", async () => {
  await extension.activate({ subscriptions: [] });
  const manifest = require("../package.json").contributes.commands.map((each) => each.command);
  assert.deepStrictEqual([...commands.keys()].sort(), manifest.sort());
});

test("a command is for the definition at the cursor", async () => {
  await extension.activate({ subscriptions: [] });
  const at = (first, last) => ({ contains: (line) => first <= line && line <= last });
  const uri = { toString: () => "file:///f.rise" };
  active = { document: { languageId: "rise", uri }, selection: { active: 5 } };
  answers.symbols = [
    { name: "f", range: at(0, 3) },
    { name: "g", range: at(4, 7) },
  ];
  await commands.get("rise.compileHere")();
  assert.deepStrictEqual(answers.executed, [["rise.compile", "file:///f.rise", "g"]]);
  active.selection.active = 9;
  await commands.get("rise.runHere")();
  assert.strictEqual(answers.executed.length, 1);
});

test("there is one panel, which asks the server that runs", async () => {
  await extension.activate({ subscriptions: [] });
  commands.get("rise.showPanel")();
  commands.get("rise.showPanel")();
  const [panel] = panels;
  assert.deepStrictEqual([panels.length, panel.revealed], [1, 1]);
  assert.deepStrictEqual(await panel.ask({ section: "type" }), { result: ["rise/panel", "type"] });
  await extension.deactivate();
  await assert.rejects(panel.ask({ section: "type" }), /does not run/);
  panel.closed();
  commands.get("rise.showPanel")();
  assert.strictEqual(panels.length, 2);
  panels[1].closed();
});

test("sizes are asked for, kept for the next time, and what is printed is shown", async () => {
  await extension.activate({ subscriptions: [] });
  const asked = [];
  answers.sizes = (question) => asked.push(question.value) && "n=8  m=3";
  const sent = [];
  const next = async (...given) => {
    sent.push(given);
    return { command: "rise run f", output: "result\n", errors: "" };
  };
  await extension.executeCommand("rise.run", ["file:///f.rise", "f"], next);
  await extension.executeCommand("rise.run", ["file:///f.rise", "f"], next);
  assert.deepStrictEqual(sent[0], ["rise.run", ["file:///f.rise", "f", "n=8", "m=3"]]);
  assert.deepStrictEqual(asked, ["", "n=8  m=3"]);
  assert.strictEqual(shown.join(""), "$ rise run f\nresult\n");
  answers.sizes = () => undefined; // cancelled
  assert.strictEqual(await extension.executeCommand("rise.run", ["file:///f.rise", "f"], next), undefined);
  assert.strictEqual(sent.length, 2);
  await extension.executeCommand("rise.evaluate", ["file:///f.rise", 3], next); // needs no sizes
  assert.deepStrictEqual(sent[2], ["rise.evaluate", ["file:///f.rise", 3]]);
});
