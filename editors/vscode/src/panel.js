// The panel beside a program: follows the cursor, asks the server for what is open, and shows the answers.
"use strict";

const { randomBytes } = require("node:crypto");
const vscode = require("vscode");
const { page, SECTIONS } = require("./page.js");

const DELAY = 200; // milliseconds without a move of the cursor
const NAMES = SECTIONS.map(([name]) => name);
const NEWER = "superseded"; // a newer request is under way, whose answer will come

class Panel {
  /** ask: sends a request to the server; closed: what is done in the end. */
  constructor(extensionUri, ask, closed) {
    this.ask = ask;
    this.open = new Set();
    this.sizes = new Map(); // by file and definition
    this.known = new Map(); // by section: what its answer is about
    this.edits = 0;
    this.listening = [
      vscode.window.onDidChangeTextEditorSelection(() => this.soon()),
      vscode.window.onDidChangeActiveTextEditor(() => this.soon()),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.changed(document)),
    ];
    const media = vscode.Uri.joinPath(extensionUri, "media");
    const beside = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    const options = { enableScripts: true, retainContextWhenHidden: true, localResourceRoots: [media] };
    this.view = vscode.window.createWebviewPanel("rise.panel", "RISE", beside, options);
    this.view.webview.onDidReceiveMessage((message) => this.received(message));
    this.view.onDidDispose(() => {
      this.dispose();
      closed();
    });
    const address = (name) => this.view.webview.asWebviewUri(vscode.Uri.joinPath(media, name)).toString();
    this.view.webview.html = page({
      source: this.view.webview.cspSource,
      nonce: randomBytes(16).toString("base64"),
      style: address("panel.css"),
      scripts: [address("render.js"), address("panel.js")],
    });
    this.follow();
  }

  dispose() {
    clearTimeout(this.timer);
    for (const each of this.listening) each.dispose();
    this.listening = [];
  }

  reveal() {
    this.view.reveal(undefined, true);
  }

  post(message) {
    this.view.webview.postMessage(message);
  }

  // --- where the cursor is --------------------------------------------------------------------------

  /** The editor with a program that was active last: the panel itself may be, now. */
  follow() {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.languageId === "rise") this.editor = editor;
    if (!this.editor) return undefined;
    const { line, character } = this.editor.selection.active;
    const uri = this.editor.document.uri.toString();
    this.cursor = { uri, position: { line, character } };
    return this.cursor;
  }

  changed(document) {
    if (document.languageId !== "rise") return;
    this.edits += 1;
    this.soon();
  }

  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.refresh(), DELAY);
  }

  // --- questions ------------------------------------------------------------------------------------

  params(section, more) {
    const { uri, position } = this.cursor;
    const target = vscode.workspace.getConfiguration("rise").get("target");
    const sizes = this.sizes.get(`${uri}#${this.name}`) ?? "";
    return { textDocument: { uri }, position, section, sizes, target, ...more };
  }

  /** The answer to a request, also where the server fails. */
  async answer(section, more = {}) {
    try {
      return await this.ask(this.params(section, more));
    } catch (error) {
      return { error: { code: String(error.code ?? ""), message: error.message, mistakes: [] } };
    }
  }

  /** Everything anew for the cursor: its type, then what is open. */
  async refresh() {
    if (!this.follow()) return;
    const round = (this.round = {});
    this.post({ kind: "cursor", cursor: this.cursor });
    let answer = await this.answer("type");
    if (round !== this.round) return;
    const name = answer.result?.definition?.name;
    if (name !== this.name) {
      this.name = name;
      if (this.params("type").sizes) answer = await this.answer("type"); // with the sizes of this definition
      if (round !== this.round) return;
    }
    this.post({ kind: "answer", section: "type", answer });
    await Promise.all([...this.open].map((section) => this.show(section)));
  }

  /** What the answer about a section depends on: rules on the cursor, a kernel on the whole definition. */
  subject(section) {
    const { textDocument, position, sizes, target } = this.params(section);
    return JSON.stringify([textDocument, this.name, sizes, target, this.edits, section === "rules" ? position : 0]);
  }

  async show(section, more = {}) {
    const subject = this.subject(section) + JSON.stringify(more);
    if (this.known.get(section) === subject) return;
    this.known.set(section, subject);
    this.post({ kind: "asked", section });
    const answer = await this.answer(section, more);
    if (this.known.get(section) !== subject) return;
    if (answer.error?.code === NEWER) this.known.delete(section);
    else this.post({ kind: "answer", section, answer });
  }

  /** A part of a section: what a rule makes, or a step. */
  async detail(section, more, post) {
    const subject = this.known.get(section === "rule" ? "rules" : "derivation");
    const answer = await this.answer(section, more);
    const still = this.known.get(section === "rule" ? "rules" : "derivation") === subject;
    if (still && answer.error?.code !== NEWER) this.post({ ...post, answer });
  }

  // --- what was pressed -----------------------------------------------------------------------------

  async received(message) {
    switch (message?.kind) {
      case "ready":
        return this.refresh();
      case "section":
        if (!NAMES.includes(message.section)) return;
        if (!message.open) return void this.open.delete(message.section);
        this.open.add(message.section);
        return this.cursor && this.show(message.section);
      case "sizes":
        if (!this.cursor) return;
        this.sizes.set(`${this.cursor.uri}#${this.name}`, String(message.sizes));
        return this.refresh();
      case "term":
        return this.show("rules", { path: message.path });
      case "rule":
        return this.detail("rule", { rule: message.rule, path: message.path }, { kind: "rule", rule: message.rule });
      case "step":
        return this.detail("step", { number: message.number }, { kind: "step" });
      case "reveal":
        return this.goTo(message.place);
    }
  }

  /** Shows a place of the source, in the column where programs are. */
  async goTo(place) {
    const { start, end } = place.range;
    const selection = new vscode.Range(start.line, start.character, end.line, end.character);
    const viewColumn = this.editor?.viewColumn ?? vscode.ViewColumn.One;
    await vscode.window.showTextDocument(vscode.Uri.parse(place.uri), { viewColumn, selection });
  }
}

module.exports = { Panel, DELAY };
