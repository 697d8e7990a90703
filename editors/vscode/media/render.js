// What the panel shows, as HTML: functions of the server's answers, which know no document.
"use strict";

const riseRender = (() => {
  const SIGNS = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  const text = (value) => String(value ?? "").replace(/[&<>"']/g, (sign) => SIGNS[sign]);
  const code = (value) => `<code>${text(value)}</code>`;
  const dim = (value) => `<p class="dim">${value}</p>`;

  /** A button that does something; `data` says what. */
  function button(label, data, more = "") {
    const attributes = Object.entries(data).map(([name, value]) => `data-${name}="${text(value)}"`);
    return `<button type="button" ${attributes.join(" ")} ${more}>${label}</button>`;
  }

  const isPlace = (place) => Boolean(place && place.uri && place.range);

  function placeName(place) {
    const name = place.uri.split("/").pop();
    return `${/%(?![0-9a-f]{2})/i.test(name) ? name : decodeURIComponent(name)}:${place.line}:${place.column}`;
  }

  /** A link to a place of the source; nothing where there is none. */
  function link(place, label) {
    if (!isPlace(place)) return "";
    return button(text(label ?? placeName(place)), { act: "reveal", place: JSON.stringify(place) }, 'class="link"');
  }

  // --- mistakes -------------------------------------------------------------------------------------

  function mistake(found) {
    const notes = (found.notes ?? []).map((note) => dim(text(note))).join("");
    const hint = found.hint ? `<p>${text(found.hint)}</p>` : "";
    return `<div class="mistake" role="alert"><p><b>${text(found.code)}</b> ${text(found.message)} ${link(found)}</p>${hint}${notes}</div>`;
  }

  function failed(error) {
    return (error.mistakes?.length ? error.mistakes : [error]).map(mistake).join("");
  }

  /** An answer: what was found, or what is wrong. */
  const answered = (answer, shown) =>
    answer?.error ? failed(answer.error) : answer?.result ? shown(answer.result) : dim("The cursor is in no definition.");

  // --- type and sizes -------------------------------------------------------------------------------

  const row = (cells, kind = "td") => `<tr>${cells.map((cell) => `<${kind}>${cell}</${kind}>`).join("")}</tr>`;

  function type(answer) {
    return answered(answer, ({ definition, here, mistakes }) => {
      const wrong = (mistakes ?? []).map(mistake).join("");
      if (!definition) return wrong || dim("The cursor is in no definition.");
      const parts = [`<h1>${text(definition.name)} ${link(definition.place)}</h1>`, wrong];
      if (definition.type) parts.push(`<p>${code(definition.type)}</p>`);
      if (definition.constraints?.length) parts.push(`<p>where ${definition.constraints.map(code).join(", ")}</p>`);
      if (definition.comment) parts.push(dim(text(definition.comment)));
      if (definition.problem) parts.push(mistake(definition.problem));
      if (definition.inputs) parts.push(inputs(definition));
      if (here) parts.push(`<p class="here">at the cursor: ${code(`${here.text} : ${here.type}`)}</p>`);
      return parts.join("");
    });
  }

  function inputs(definition) {
    const sized = Object.entries(definition.sizes);
    const at = sized.map(([name, size]) => `${name} = ${size}`).join(", ");
    const heads = sized.length ? ["", "type", `at ${text(at)}`] : ["", "type"];
    const cells = (name, each) => [text(name), code(each.type), ...(sized.length ? [code(each.at)] : [])];
    const rows = definition.inputs.map((each) => row(cells(each.name, each)));
    return `<table>${row(heads, "th")}${rows.join("")}${row(cells("result", definition.result))}</table>`;
  }

  // --- rules ----------------------------------------------------------------------------------------

  /** opened: what rules were applied to, by their names. */
  function rules(answer, opened = {}) {
    return answered(answer, ({ term, around, own, general }) => {
      const outer = around.map((each) => `<li>${button(text(each.text), { act: "term", path: JSON.stringify(each.path) }, 'class="link"')}</li>`);
      const wider = outer.length ? `<nav aria-label="terms around"><ol>${outer.join("")}</ol></nav>` : "";
      return `${wider}<p class="term">${code(term.text)} ${link(term.place)}</p>${dim(code(term.type))}
${group("Rules of this construct", own, opened)}${group("General laws", general, opened)}`;
    });
  }

  function group(title, items, opened) {
    const list = items.map((item, n) => `<li>${ruleLine(item, n)}${opened[item.name] ? applied(opened[item.name]) : ""}</li>`);
    return `<h2>${title} <small>${items.length}</small></h2><ul class="list" data-list>${list.join("")}</ul>`;
  }

  // as in the list of rules: proved; proved up to the rounding of sums; tested
  const MARKS = { "proved for all sizes": "∎", "proved for all sizes, up to the rounding of sums": "≈" };

  function given(item) {
    const values = Object.entries(item.given ?? {}).map(([name, value]) => `${name} = ${value}`);
    return values.length ? ` <small>with ${text(values.join(", "))}</small>` : "";
  }

  function ruleLine(item, n) {
    const mark = MARKS[item.known] ?? "·";
    const label = `<span title="${text(item.known)}">${mark}</span> <b>${text(item.name)}</b>${given(item)} <span class="dim">${text(item.meaning)}</span>`;
    return button(label, { act: "rule", rule: item.name }, `class="item" tabindex="${n ? -1 : 0}"`);
  }

  function applied(answer) {
    if (answer.error) return failed(answer.error);
    if (!answer.result) return dim("…");
    const shown = answer.result;
    const conditions = shown.conditions.map((each) => dim(`only if ${text(each.name)}. ${text(each.reason)}`)).join("");
    const asks = (shown.asks ?? []).map((each) => dim(`asks for ${code(each)}`)).join("");
    const exact = shown.exact ? "" : dim("It changes the order of sums.");
    return `<div class="card"><p>${code(shown.equation)}</p>${dim(text(shown.known))}${conditions}${asks}${exact}
<pre>${text(shown.before)}</pre><p class="dim">becomes</p><pre>${text(shown.after)}</pre></div>`;
  }

  // --- derivations ----------------------------------------------------------------------------------

  /** shown: the answer about one step, if one is shown. */
  function derivation(answer, shown) {
    return answered(answer, ({ plan, steps, target }) => {
      const chosen = plan.map((each) => `<li>${text(each)}</li>`).join("");
      const one = shown ? answered(shown, step) : "";
      return `<p class="dim">for ${text(target)}</p><ol class="plan">${chosen}</ol>
<div class="steps">${listed(steps, shown?.result?.number)}<div class="step" aria-live="polite">${one}</div></div>`;
    });
  }

  function listed(steps, current) {
    let last = "";
    const first = current ?? 0;
    const item = (n, label) =>
      `<li>${button(label, { act: "step", number: n }, `class="item" tabindex="${n === first ? 0 : -1}" aria-current="${n === current}"`)}</li>`;
    const rows = [item(0, "the program")];
    steps.forEach((each, n) => {
      const by = each.by.slice(0, 3).join(" › ");
      if (by !== last) rows.push(`<li class="by">${text(by)}</li>`);
      last = by;
      rows.push(item(n + 1, `<span class="n">${n + 1}</span> ${text(each.rule)}`));
    });
    return `<ul class="list" data-list aria-label="steps">${rows.join("")}</ul>`;
  }

  function step(shown) {
    if (!shown.number) return `<h3>The program</h3>${program(shown.after)}`;
    const { rule } = shown;
    const parameters = Object.entries(shown.parameters).map(([name, value]) => `${name} = ${value}`).join(", ");
    const parts = [`<h3>${shown.number}. ${text(rule.name)} ${link(shown.place)}</h3>`, `<p>${text(rule.meaning)}</p>`, `<p>${code(rule.equation)}</p>`];
    if (parameters) parts.push(dim(`with ${text(parameters)}`));
    parts.push(dim(text(rule.known)), ...shown.asks.map((ask) => dim(`asks for ${code(ask)}`)));
    if (!rule.exact) parts.push(dim("It changes the order of sums."));
    if (shown.by.length) parts.push(dim(`by ${text(shown.by.join(" › "))}`));
    parts.push("<h4>before</h4>", program(shown.before, "del"), "<h4>after</h4>", program(shown.after, "ins"));
    return parts.join("");
  }

  /** A program in which the term that a step rewrites is marked. */
  function program({ text: whole, extent }, mark) {
    if (!extent.length || !mark) return `<pre>${text(whole)}</pre>`;
    const [line, column, last, end] = extent;
    const lines = whole.split("\n");
    const offset = (row, at) => lines.slice(0, row).reduce((sum, each) => sum + each.length + 1, 0) + at;
    const [from, to] = [inUnits(lines, line, column, offset), inUnits(lines, last, end, offset)];
    return `<pre>${text(whole.slice(0, from))}<${mark}>${text(whole.slice(from, to))}</${mark}>${text(whole.slice(to))}</pre>`;
  }

  /** The server counts characters, a script units of UTF-16. */
  const inUnits = (lines, row, column, offset) => offset(row, [...(lines[row] ?? "")].slice(0, column).join("").length);

  // --- kernels --------------------------------------------------------------------------------------

  /** cursor: the place of the cursor in the source, whose lines of CUDA are marked. */
  function kernel(answer, cursor) {
    return answered(answer, (found) => {
      const marked = partsAt(found, cursor);
      let first = true;
      const rows = found.text.map((line, n) => {
        const part = found.lines[n];
        const place = part < 0 ? undefined : found.places[part];
        const classes = `l${marked.has(part) ? " marked" : ""}`;
        const number = `<span class="n">${n + 1}</span>`;
        if (!isPlace(place)) return `<div class="${classes}">${number}${text(line)}</div>`;
        const [, made, term] = found.parts[part];
        const title = `${placeName(place)}: ${term}${made ? `, made by step ${made}` : ""}`;
        const more = `class="${classes}" title="${text(title)}" tabindex="${first ? 0 : -1}"`;
        first = false;
        return button(`${number}${text(line)}`, { act: "reveal", place: JSON.stringify(place) }, more);
      });
      const facts = found.kernels.map((each) => `<h2>${text(each.name)}</h2><table>${each.facts.map((fact) => row(fact.map(text))).join("")}</table>`);
      return `${facts.join("")}<div class="cuda" data-list role="group" aria-label="CUDA, each line with its place in the source">${rows.join("")}</div>`;
    });
  }

  const before = (a, b) => a.line < b.line || (a.line === b.line && a.character <= b.character);
  const holds = (range, at) => before(range.start, at) && before(at, range.end);
  const within = (inner, outer) => before(outer.start, inner.start) && before(inner.end, outer.end);

  /** The parts of a kernel that come from the smallest terms around a cursor. */
  function partsAt(found, cursor) {
    if (!cursor) return new Set();
    const around = found.places.flatMap((place, n) =>
      isPlace(place) && place.uri === cursor.uri && holds(place.range, cursor.position) ? [[n, place.range]] : [],
    );
    const smallest = around.filter(([, range]) => around.every(([, other]) => !within(other, range) || within(range, other)));
    return new Set(smallest.map(([n]) => n));
  }

  return { type, rules, derivation, kernel, partsAt, text };
})();

if (typeof module !== "undefined") module.exports = riseRender;
