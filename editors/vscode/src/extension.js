// Starts `rise lsp` and shows what its commands print. All knowledge of the language is in the server.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { Panel } = require("./panel.js");

const COMMANDS = ["run", "check", "derive", "compile"];
let client;
let results; // the channel that shows what commands print
let panel;
const lastSizes = new Map(); // by file and definition

/** The Python of the settings, else the one that the Python extension has chosen, else `python3`. */
async function python(resource) {
  const chosen = vscode.workspace.getConfiguration("rise", resource).get("pythonPath");
  if (chosen) return chosen;
  const extension = vscode.extensions.getExtension("ms-python.python");
  if (extension) {
    const api = extension.isActive ? extension.exports : await extension.activate();
    const path = api?.environments?.getActiveEnvironmentPath?.(resource)?.path;
    if (path) return path;
  }
  return process.platform === "win32" ? "python" : "python3";
}

/** Asks for sizes, with those of the last time; undefined where the question is cancelled. */
async function sizes(uri, name) {
  if (!vscode.workspace.getConfiguration("rise").get("askForSizes")) return [];
  const key = `${uri}#${name}`;
  const text = await vscode.window.showInputBox({
    title: `Sizes of ${name}`,
    prompt: "NAME=N, separated by blanks; empty: small ones that fit",
    value: lastSizes.get(key) ?? "",
  });
  if (text === undefined) return undefined;
  lastSizes.set(key, text);
  return text.split(/\s+/).filter(Boolean);
}

/** The name of the definition that a cursor is in. */
async function definitionHere() {
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.document.languageId !== "rise") return undefined;
  const uri = editor.document.uri;
  const found = await vscode.commands.executeCommand("vscode.executeDocumentSymbolProvider", uri);
  const symbol = (found ?? []).find((each) => each.range.contains(editor.selection.active));
  if (!symbol) {
    vscode.window.showInformationMessage("The cursor is in no definition.");
    return undefined;
  }
  return [uri.toString(), symbol.name];
}

function show(outcome) {
  results.clear();
  results.appendLine(`$ ${outcome.command}`);
  results.append(outcome.output);
  results.append(outcome.errors);
  results.show(true);
}

/** Between the editor and the server: sizes are asked for, and what was printed is shown. */
async function executeCommand(command, given, next) {
  if (!COMMANDS.includes(command.replace(/^rise\./, ""))) return next(command, given);
  const [uri, name, ...chosen] = given;
  const wanted = chosen.length ? chosen : await sizes(uri, name);
  if (wanted === undefined) return undefined;
  const title = `${command.replace(/^rise\./, "")} ${name}`;
  const location = vscode.ProgressLocation.Notification;
  const outcome = await vscode.window.withProgress({ location, title }, () =>
    next(command, [uri, name, ...wanted]),
  );
  if (outcome) show(outcome);
  return outcome;
}

async function start() {
  const command = await python(vscode.window.activeTextEditor?.document.uri);
  const modules = vscode.workspace.getConfiguration("rise").get("load") ?? [];
  const args = ["-P", "-m", "rise.cli", "lsp", ...modules.flatMap((module) => ["--load", module])];
  const server = { command, args };
  client = new LanguageClient("rise", "RISE", server, {
    documentSelector: [{ language: "rise" }],
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/*.rise") },
    initializationOptions: { showsResults: true },
    middleware: { executeCommand },
  });
  try {
    await client.start();
  } catch (error) {
    const hint = `Install it with: ${command} -m pip install 'rise-lang[lsp]', or set rise.pythonPath.`;
    vscode.window.showErrorMessage(`The RISE language server did not start (${error.message}). ${hint}`);
  }
}

async function activate(context) {
  results = vscode.window.createOutputChannel("RISE", "rise");
  context.subscriptions.push(results);
  for (const name of COMMANDS) {
    const here = async () => {
      const found = await definitionHere();
      if (found) await vscode.commands.executeCommand(`rise.${name}`, ...found);
    };
    context.subscriptions.push(vscode.commands.registerCommand(`rise.${name}Here`, here));
  }
  const showPanel = () => {
    if (panel) return panel.reveal();
    const ask = async (params) => {
      if (!client?.isRunning()) throw new Error("The RISE language server does not run.");
      return client.sendRequest("rise/panel", params);
    };
    panel = new Panel(context.extensionUri, ask, () => (panel = undefined));
  };
  context.subscriptions.push(vscode.commands.registerCommand("rise.showPanel", showPanel));
  context.subscriptions.push({ dispose: () => panel?.view.dispose() });
  const restart = async () => {
    await deactivate();
    await start();
  };
  context.subscriptions.push(vscode.commands.registerCommand("rise.restart", restart));
  await start();
}

async function deactivate() {
  const running = client;
  client = undefined;
  if (running?.isRunning()) await running.stop();
}

module.exports = { activate, deactivate, executeCommand, COMMANDS };
