"use strict";
// The page is one document with its data in it. A step holds only what it changes; programs are put together
// when they are looked at, from the nearest step that is kept.
const data = JSON.parse(document.getElementById("data").textContent);
const stories = data.stories, kernel = data.kernel;
const EVERY = 64;  // so many steps apart whole programs are kept
const MOST = 4e6;  // cells of the table by which two texts are compared
const $ = (id) => document.getElementById(id);
const element = (kind, className, ...parts) => {
  const made = document.createElement(kind);
  if (className) made.className = className;
  made.append(...parts);
  return made;
};

// --- programs ---------------------------------------------------------------------------------------

const kept = stories.map((story) => new Map([[0, story.start]]));

function patched(list, cuts) {
  const made = list.slice();
  for (const [at, gone, come] of cuts) made.splice(at, gone, ...come);
  return made;
}

function programAt(which, step) {
  const known = kept[which];
  let at = step;
  while (!known.has(at)) at -= 1;
  let state = known.get(at);
  while (at < step) {
    const next = stories[which].steps[at];
    state = { lines: patched(state.lines, next.lines), boxes: patched(state.boxes, next.boxes) };
    at += 1;
    if (at % EVERY === 0) known.set(at, state);
  }
  known.set(step, state);
  if (known.size > 400) for (const key of known.keys()) if (key % EVERY && key !== step) known.delete(key);
  return state;
}

const textOf = (which, state) => state.lines.map((line) => stories[which].table[line][0]);

// --- changes ----------------------------------------------------------------------------------------

function pieces(lines, range) {
  if (!range.length) return [];
  const [line, column, lastLine, lastColumn] = range, found = [];
  for (let n = line; n <= lastLine; n += 1) {
    const from = n === line ? column : 0, to = n === lastLine ? lastColumn : lines[n].length;
    for (const match of lines[n].slice(from, to).matchAll(/\w+|\|>|=>|[^\s\w]/g))
      found.push({ text: match[0], line: n, column: from + match.index });
  }
  return found;
}

// which pieces of either text are not in a longest common subsequence
function changed(old, young) {
  let start = 0, oldEnd = old.length, youngEnd = young.length;
  while (start < oldEnd && start < youngEnd && old[start].text === young[start].text) start += 1;
  while (oldEnd > start && youngEnd > start && old[oldEnd - 1].text === young[youngEnd - 1].text) { oldEnd -= 1; youngEnd -= 1; }
  const rows = oldEnd - start, columns = youngEnd - start;
  const gone = old.slice(start, oldEnd), come = young.slice(start, youngEnd);
  if (!rows || !columns || rows * columns > MOST) return [gone, come];
  const width = columns + 1, best = new Uint16Array((rows + 1) * width);
  for (let a = rows - 1; a >= 0; a -= 1)
    for (let b = columns - 1; b >= 0; b -= 1)
      best[a * width + b] = gone[a].text === come[b].text ? best[(a + 1) * width + b + 1] + 1
        : Math.max(best[(a + 1) * width + b], best[a * width + b + 1]);
  const lost = [], found = [];
  let a = 0, b = 0;
  while (a < rows || b < columns)
    if (a < rows && b < columns && gone[a].text === come[b].text) { a += 1; b += 1; }
    else if (b === columns || (a < rows && best[(a + 1) * width + b] >= best[a * width + b + 1])) lost.push(gone[a++]);
    else found.push(come[b++]);
  return [lost, found];
}

// --- text -------------------------------------------------------------------------------------------

const WORDS = /\/\/.*|"[^"]*"|\b(map\w*|reduce\w*|scan\w*|generate|toMem|copy\w*|tensor\w*|as[A-Z]\w*|split|join|transpose|zip|let|in|for|if|const|int|float|half)\b|\b\d[\w.]*|\|>|=>|[{}();,]/g;

function colour(text, into) {
  let at = 0;
  for (const match of text.matchAll(WORDS)) {
    if (match.index > at) into.append(text.slice(at, match.index));
    const first = match[0][0];
    const kind = match[0].startsWith("//") ? "c" : match[1] ? "k" : first >= "0" && first <= "9" ? "n" : "o";
    into.append(element("span", kind, match[0]));
    at = match.index + match[0].length;
  }
  if (at < text.length) into.append(text.slice(at));
}

// the lines, with the range of a term tinted and some pieces of it marked
function show(pane, lines, range, marks, tag) {
  const code = element("div", "code"), byLine = new Map();
  for (const mark of marks) (byLine.get(mark.line) || byLine.set(mark.line, []).get(mark.line)).push(mark);
  lines.forEach((text, n) => {
    const row = element("div", "l");
    row.dataset.n = n + 1;
    const inside = range.length && n >= range[0] && n <= range[2];
    const from = inside ? (n === range[0] ? range[1] : text.search(/\S|$/)) : 0;
    const to = inside ? (n === range[2] ? range[3] : text.length) : 0;
    if (!inside) colour(text, row);
    else {
      colour(text.slice(0, from), row);
      const region = element("span", "region");
      let at = from;
      for (const mark of byLine.get(n) || []) {
        colour(text.slice(at, mark.column), region);
        at = mark.column + mark.text.length;
        region.append(element(tag, "", mark.text));
      }
      colour(text.slice(at, to), region);
      row.append(region);
      colour(text.slice(to), row);
    }
    code.append(row);
  });
  pane.querySelector(".code")?.remove();
  pane.append(code);
  if (range.length) reveal(pane, code.children[range[0]], code.children[range[2]]);
}

function reveal(pane, first, last) {
  if (!first) return;
  const top = first.offsetTop, bottom = last.offsetTop + last.offsetHeight;
  if (top < pane.scrollTop || bottom > pane.scrollTop + pane.clientHeight)
    pane.scrollTop = Math.max(0, top - Math.max(20, (pane.clientHeight - (bottom - top)) / 2));
}

// --- types on hover ---------------------------------------------------------------------------------

const tip = $("tip"), under = element("div", "");
under.id = "under";

function columnAt(row, x, y) {
  const point = document.caretPositionFromPoint ? document.caretPositionFromPoint(x, y) : null;
  const range = point ? null : document.caretRangeFromPoint?.(x, y);
  const node = point ? point.offsetNode : range?.startContainer, offset = point ? point.offset : range?.startOffset;
  if (!node || !row.contains(node)) return -1;
  const before = document.createRange();
  before.setStart(row, 0);
  before.setEnd(node, offset);
  const column = before.toString().length, box = document.createRange();
  // the caret is between two characters, the pointer on one of them
  if (node.nodeType === 3 && offset > 0) {
    box.setStart(node, offset - 1);
    box.setEnd(node, offset);
    const on = box.getBoundingClientRect();
    if (x >= on.left && x < on.right) return column - 1;
  }
  return column;
}

// the innermost term at a column: the shortest; inner ones come first
function typedAt(which, line, column) {
  const spans = stories[which].table[line][1];
  let best = null;
  for (let n = 0; n < spans.length; n += 3)
    if (spans[n] <= column && column < spans[n] + spans[n + 1] && (!best || spans[n + 1] < best[1]))
      best = [spans[n], spans[n + 1], stories[which].types[spans[n + 2]]];
  return best;
}

document.addEventListener("mousemove", (event) => {
  const row = event.target.closest?.(".l"), pane = row?.closest(".pane");
  tip.hidden = true;
  under.remove();
  if (!pane || pane.dataset.story === undefined) return;
  const which = Number(pane.dataset.story), state = programAt(which, Number(pane.dataset.step));
  const line = state.lines[Number(row.dataset.n) - 1], column = columnAt(row, event.clientX, event.clientY);
  const found = column < 0 ? null : typedAt(which, line, column);
  if (!found) return;
  const text = stories[which].table[line][0].slice(found[0], found[0] + found[1]);
  tip.textContent = `${text.length > 60 ? text.slice(0, 59) + "…" : text} : ${found[2]}`;
  tip.hidden = false;
  tip.style.left = Math.max(4, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = (event.clientY + 24 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 12 : event.clientY + 18) + "px";
});

// --- the tree of strategies -------------------------------------------------------------------------

const title = (story, n) => story.steps[n].rule;

function grown(story) {
  const root = { name: "", inside: [], steps: 0 };
  let path = [root];
  story.steps.forEach((step, n) => {
    let depth = 0;
    while (depth < step.by.length && path[depth + 1]?.name === step.by[depth]) depth += 1;
    path = path.slice(0, depth + 1);
    for (const name of step.by.slice(depth)) {
      const node = { name, inside: [], steps: 0 };
      path[path.length - 1].inside.push(node);
      path.push(node);
    }
    path[path.length - 1].inside.push(n);
    for (const node of path) node.steps += 1;
  });
  return root;
}

const words = (text) => text.toLowerCase();
const wanted = { text: "" };
const matches = (step) => !wanted.text || [step.rule, ...step.by].some((name) => words(name).includes(wanted.text));

function plant(which, node, into) {
  const story = stories[which];
  for (let part of node.inside)
    if (typeof part === "number") into.append(leaf(which, part, story.steps[part].rule));
    else if (part.steps === 1) {
      let inner = part;
      while (typeof inner !== "number") inner = inner.inside[0];
      into.append(leaf(which, inner, story.steps[inner].rule, part.name));
    } else {
      let names = part.name;
      while (part.inside.length === 1) {  // a strategy all of whose steps another one made
        part = part.inside[0];
        names += ` › ${part.name}`;
      }
      const summary = element("summary", "", element("b", "", names), ` ${part.steps}`);
      summary.title = names;
      const folded = element("details", "", summary);
      folded.open = part.steps < 40 || node.name === "";
      folded.addEventListener("toggle", () => { if (folded.open && !folded.planted) { folded.planted = true; plant(which, part, folded); mark(); } });
      if (folded.open) { folded.planted = true; plant(which, part, folded); }
      folded.node = part;
      into.append(folded);
    }
}

function leaf(which, n, rule, by) {
  const step = stories[which].steps[n];
  const made = element("div", "t" + (step.agrees === false ? " bad" : ""), element("i", "", String(n + 1)), rule);
  made.title = [...step.by, rule].join(" › ");
  made.dataset.step = n + 1;
  made.dataset.story = which;
  made.hidden = !matches(step);
  return made;
}

function filtered() {
  $("trees").replaceChildren(...stories.map((story, which) => {
    const tree = element("div", "tree");
    if (stories.length > 1) tree.append(element("h2", "", story.name));
    if (wanted.text)
      story.steps.forEach((step, n) => { if (matches(step)) tree.append(leaf(which, n, step.rule)); });
    else plant(which, grown(story), tree);
    return tree;
  }));
  const count = stories[0].steps.filter(matches).length;
  $("found").textContent = wanted.text ? `${count} of ${stories[0].steps.length} steps` : "";
  mark();
}

// the step that is shown, in the tree; what it is in is opened
function mark() {
  for (const row of document.querySelectorAll(".t.picked")) row.classList.remove("picked");
  stories.forEach((story, which) => {
    if (!place) return;
    const at = Math.min(place, story.steps.length);
    const tree = $("trees").children[which];
    for (;;) {
      const row = tree?.querySelector(`.t[data-step="${at}"]`);
      if (row) {
        for (let up = row.parentElement; up && up !== tree; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
        row.classList.add("picked");
        if (which === 0 || stories.length === 1) row.scrollIntoView({ block: "nearest" });
        return;
      }
      const folded = [...(tree?.querySelectorAll("details") || [])].find((d) => !d.planted && holds(d.node, at - 1));
      if (!folded) return;
      folded.planted = true;
      folded.open = true;
      plant(which, folded.node, folded);
    }
  });
}

const holds = (node, n) => node.inside.some((part) => (typeof part === "number" ? part === n : holds(part, n)));

// --- one step ---------------------------------------------------------------------------------------

let place = 0, both = stories.length === 1 && innerWidth > 1500;
const length = Math.max(...stories.map((story) => story.steps.length));
const sameStep = (a, b) => a && b && a.rule === b.rule && a.path.join() === b.path.join() && JSON.stringify(a.parameters) === JSON.stringify(b.parameters);

function firstDifference() {
  let n = 0;
  while (n < length && sameStep(stories[0].steps[n], stories[1].steps[n])) n += 1;
  return n;
}

function pane(which, step, heading) {
  const made = element("div", "pane", element("h3", "", heading));
  made.dataset.story = which;
  made.dataset.step = step;
  return made;
}

function go(n, quiet) {
  place = Math.max(0, Math.min(length, n));
  $("slider").value = place;
  $("counter").value = `${place} of ${length}`;
  $("before").setAttribute("aria-pressed", both);
  const made = [];
  stories.forEach((story, which) => {
    const at = Math.min(place, story.steps.length), step = story.steps[at - 1];
    const after = textOf(which, programAt(which, at));
    const before = step ? textOf(which, programAt(which, at - 1)) : [];
    const [gone, come] = step ? changed(pieces(before, step.before), pieces(after, step.after)) : [[], []];
    const name = stories.length > 1 ? `${story.name}: ` : "";
    if (both && step && stories.length === 1) made.push([pane(which, at - 1, "before"), before, step.before, gone, "del"]);
    const heading = !step ? "the program" : at === story.steps.length && place > at ? "its end" : `after step ${at}, ${step.rule}`;
    made.push([pane(which, at, name + heading), after, step ? step.after : [], come, "ins"]);
  });
  $("panes").replaceChildren(...made.map((each) => each[0]));
  for (const [where, lines, range, marks, tag] of made) show(where, lines, range, marks, tag);
  $("about").replaceChildren(...stories.flatMap((story, which) => about(which)));
  mark();
  if (!quiet) history.replaceState(null, "", "#step=" + place);
}

function about(which) {
  const story = stories[which], at = Math.min(place, story.steps.length), step = story.steps[at - 1];
  const parts = stories.length > 1 ? [element("h2", "", story.name)] : [];
  if (stories.length > 1 && which === 0) {
    const first = firstDifference();
    parts.unshift(element("p", "dim", first === length ? "Both derivations are the same." : `They are the same up to step ${first}.`));
  }
  if (step) parts.push(ruleCard(story, step));
  else parts.push(element("p", "dim", `${story.steps.length} steps. → shows the first one.`));
  parts.push(element("h2", "", "Loops"), picture(which, at));
  return parts;
}

function ruleCard(story, step) {
  const rule = story.rules[step.rule], card = element("div", "card", element("h3", "", step.rule));
  const proved = rule.known.startsWith("proved");
  card.append(element("span", "badge" + (proved ? " good" : ""), (proved ? "∎ " : "· ") + rule.known), " ");
  if (step.agrees !== null) card.append(element("span", "badge " + (step.agrees ? "good" : "bad"), step.agrees ? "✓ evaluated: agrees" : "✗ changes the result"));
  if (rule.meaning) card.append(element("p", "", rule.meaning));
  card.append(element("p", "", element("code", "", rule.equation)));
  const given = Object.entries(step.parameters).map(([name, value]) => `${name} = ${value}`).join(", ");
  if (given) card.append(element("p", "dim", `with ${given}`));
  for (const ask of step.asks) card.append(element("p", "dim", `asks for ${ask}`));
  if (!rule.exact) card.append(element("p", "dim", "It changes the order of sums."));
  card.append(element("p", "dim", `${step.source ? step.source + ", " : ""}at ${step.path.join(".") || "the top"}`));
  if (step.by.length) card.append(element("p", "dim", `by ${step.by.join(" › ")}`));
  if (rule.entry) {
    const link = element("button", "link", "in the list of rules");
    link.addEventListener("click", () => openRules(step.rule));
    card.append(link);
  }
  return card;
}

function picture(which, at) {
  const story = stories[which], boxes = programAt(which, at).boxes, old = new Set(at ? programAt(which, at - 1).boxes : boxes);
  const made = element("div", ""), open = [[-1, made]];
  for (const number of boxes) {
    const [depth, kind, name, extent] = story.boxes[number];
    while (open[open.length - 1][0] >= depth) open.pop();
    const box = element("div", `box ${kind}${old.has(number) ? "" : " new"}`, name, extent ? element("em", "", ` × ${extent}`) : "");
    open[open.length - 1][1].append(box);
    open.push([depth, box]);
  }
  return made;
}

// --- rules ------------------------------------------------------------------------------------------

function openRules(name) {
  const list = $("rules");
  if (!list.children.length) {
    const all = Object.assign({}, ...stories.map((story) => story.rules));
    for (const rule of Object.keys(all).sort()) {
      const line = element("p", "");
      line.id = "rule-" + rule;
      all[rule].entry.split(/(`[^`]*`|\*\*(?:\\\*|[^*])*\*\*)/).forEach((part) => line.append(
        part.startsWith("`") ? element("code", "", part.slice(1, -1))
          : part.startsWith("**") ? element("b", "", part.slice(2, -2).replaceAll("\\*", "*")) : part));
      list.append(line);
    }
  }
  $("drawer").showModal();
  for (const line of list.children) line.classList.toggle("found", line.id === "rule-" + name);
  document.getElementById("rule-" + name)?.scrollIntoView({ block: "center" });
}

// --- the kernel -------------------------------------------------------------------------------------

const cells = (row, kind = "td") => element("tr", "", ...row.map((cell) => element(kind, typeof cell === "number" ? "r" : "", cell === null ? "" : typeof cell === "number" ? cell.toLocaleString("en") : cell)));

function tabled(head, rows) {
  const made = element("table", "", ...rows.map((row) => cells(row)));
  if (head) made.prepend(cells(head, "th"));
  if (head) rows[0]?.forEach((cell, n) => { if (rows.some((row) => typeof row[n] === "number")) made.rows[0].cells[n].className = "r"; });
  return made;
}

function openKernel() {
  if ($("cuda").children.length) return;
  show($("cuda"), kernel.text, [], [], "ins");
  const last = stories[0].steps.length;
  Object.assign($("low").dataset, { story: 0, step: last });
  show($("low"), textOf(0, programAt(0, last)), [], [], "ins");
  const rows = $("cuda").querySelectorAll(".l");
  kernel.lines.forEach((part, n) => { if (part >= 0) rows[n].classList.add("linked"); });
  $("cuda").addEventListener("click", (event) => { const row = event.target.closest(".l"); if (row) fromLine(Number(row.dataset.n) - 1); });
  $("low").addEventListener("click", (event) => { const row = event.target.closest(".l"); if (row) fromTerm(Number(row.dataset.n) - 1, columnAt(row, event.clientX, event.clientY)); });
  $("figures").append(...figures());
}

function pick(paneName, isPicked, range) {
  const rows = $(paneName).querySelectorAll(".l");
  let first = null, last = null;
  rows.forEach((row, n) => { const on = isPicked(n); row.classList.toggle("picked", on); if (on) { first ||= row; last = row; } });
  if (first) reveal($(paneName), first, range ? rows[range[2]] : last);
}

function explain(part) {
  const [, step, text, source] = kernel.parts[part], where = element("div", "card");
  where.append(element("h2", "", "This line comes from"), element("p", "", element("code", "", text)));
  const story = stories[0];
  if (step) {
    const link = element("button", "link", `step ${step}: ${story.steps[step - 1].rule}`);
    link.addEventListener("click", () => { look("derivation"); go(step); });
    where.append(element("p", "", "made by ", link), element("p", "dim", story.rules[story.steps[step - 1].rule].meaning));
  } else where.append(element("p", "dim", "as it stands in the program"));
  if (source) where.append(element("p", "dim", source));
  $("origin").replaceChildren(where);
}

function fromLine(n) {
  const part = kernel.lines[n];
  pick("cuda", (line) => line === n);
  history.replaceState(null, "", "#line=" + (n + 1));
  if (part < 0) return;
  const range = kernel.parts[part][0];
  pick("low", (line) => range.length && line >= range[0] && line <= range[2], range);
  explain(part);
}

function fromTerm(line, column) {
  const size = (r) => (r[2] - r[0]) * 1000 + r[3] - r[1];
  const inside = (r) => r.length && (line > r[0] || (line === r[0] && column >= r[1])) && (line < r[2] || (line === r[2] && column <= r[3]));
  let best = -1;
  kernel.parts.forEach(([range], n) => { if (inside(range) && (best < 0 || size(range) < size(kernel.parts[best][0]))) best = n; });
  if (best < 0) return;
  const range = kernel.parts[best][0];
  pick("low", (n) => n >= range[0] && n <= range[2]);
  pick("cuda", (n) => kernel.lines[n] === best);
  explain(best);
}

function figures() {
  const made = [element("div", "", "")];
  made[0].id = "origin";
  made[0].append(element("p", "dim", "A click on a line of CUDA shows the term and the step that it comes from; a click on a term shows its lines."));
  for (const each of kernel.kernels) {
    made.push(element("h2", "", each.name), tabled(null, each.facts));
    if (each.shared.length) made.push(element("h2", "", "Shared memory"), memoryMap(each), tabled(["buffer", "bytes", "slots", "layout"], each.shared.map((b) => [b.name, b.bytes, b.slots || null, b.layout])));
    if (each.barriers.length) made.push(element("h2", "", "Barriers and waits"), linked(each.barriers));
    if (each.conflicts.length) made.push(element("h2", "", "Bank conflicts of a warp's access"), linked(each.conflicts));
    if (each.traffic.length) made.push(element("h2", "", "Bytes"), tabled(["level", "bytes", "operations per byte"], each.traffic));
    if (each.roofline) made.push(element("h2", "", "Roofline"), roof(each.roofline));
    if (each.profile.length) made.push(element("h2", "", "Profile"), tabled(null, each.profile));
    if (each.hot.length) made.push(element("h2", "", "Where time goes"), linked(each.hot));
  }
  return made;
}

function linked(rows) {
  const made = tabled(null, rows);
  [...made.rows].forEach((row, n) => { row.style.cursor = "pointer"; row.addEventListener("click", () => fromLine(rows[n][0] - 1)); });
  return made;
}

const SVG = "http://www.w3.org/2000/svg";
function drawn(kind, attributes, text) {
  const made = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text) made.textContent = text;
  return made;
}

// across: bytes of shared memory; down: lines of the kernel, from where a buffer is written to its last use
function memoryMap(each) {
  const all = Math.max(1, ...each.shared.map((b) => b.offset + b.bytes)), last = Math.max(...each.shared.map((b) => b.until));
  const first = Math.min(...each.shared.map((b) => b.from)), x = (n) => 4 + (312 * n) / all, y = (n) => 16 + (140 * (n - first)) / Math.max(1, last - first);
  const image = drawn("svg", { viewBox: "0 0 320 172" });
  image.append(drawn("text", { x: 4, y: 10 }, "0"), drawn("text", { x: 316, y: 10, "text-anchor": "end" }, `${all.toLocaleString("en")} bytes`));
  each.shared.forEach((b, n) => {
    const hue = (n * 67 + 210) % 360, left = x(b.offset), width = Math.max(2, x(b.offset + b.bytes) - left), top = y(b.from), height = Math.max(6, y(b.until) - top);
    const box = drawn("rect", { x: left, y: top, width, height, rx: 2, fill: `hsl(${hue} 55% 55% / .35)`, stroke: `hsl(${hue} 50% 50%)` });
    box.append(drawn("title", {}, `${b.name}: ${b.bytes} bytes at ${b.offset}, lines ${b.from} to ${b.until}`));
    image.append(box);
    for (let slot = 1; slot < Math.min(b.slots, 32); slot += 1) image.append(drawn("line", { x1: left + (width * slot) / b.slots, x2: left + (width * slot) / b.slots, y1: top, y2: top + height, stroke: `hsl(${hue} 50% 50%)`, "stroke-dasharray": "2 2" }));
    if (width > b.name.length * 5) image.append(drawn("text", { x: left + 3, y: top + Math.min(12, height) }, b.name));
  });
  image.append(drawn("text", { x: 4, y: 168 }, `lines ${first} to ${last}, from above`));
  return image;
}

function roof(r) {
  const image = drawn("svg", { viewBox: "0 0 320 190" }), low = Math.log10(r.least), high = Math.log10(r.most);
  const top = Math.log10(r.peak * 1.6), bottom = Math.log10(Math.min(r.bandwidth * r.least, r.points[0]?.[2] ?? Infinity) / 2);
  const x = (v) => 30 + (280 * (Math.log10(v) - low)) / (high - low), y = (v) => 165 - (150 * (Math.log10(v) - bottom)) / (top - bottom);
  const knee = r.peak / r.bandwidth;
  image.append(drawn("polyline", { points: `${x(r.least)},${y(r.bandwidth * r.least)} ${x(knee)},${y(r.peak)} ${x(r.most)},${y(r.peak)}`, fill: "none", stroke: "var(--accent)", "stroke-width": 2 }));
  image.append(drawn("text", { x: 314, y: y(r.peak) - 4, "text-anchor": "end" }, `${r.peak} TFLOP/s`), drawn("text", { x: 34, y: 180 }, "operations per byte of memory →"));
  for (const [name, intensity, rate] of r.points) {
    image.append(drawn("circle", { cx: x(intensity), cy: y(rate), r: 4, fill: "var(--bad)" }), drawn("text", { x: x(intensity) - 7, y: y(rate) + 14, "text-anchor": "end" }, `${name}: ${rate} TFLOP/s`));
  }
  return image;
}

// --- what keys do -----------------------------------------------------------------------------------

function look(tab) {
  $("derivation").hidden = tab !== "derivation";
  $("kernel").hidden = tab !== "kernel";
  $("steps").hidden = tab === "kernel";
  for (const button of document.querySelectorAll("nav button")) button.setAttribute("aria-pressed", button.dataset.tab === tab);
  if (tab === "kernel") openKernel();
}

function nextMatch(direction) {
  let n = place + direction;
  while (n >= 1 && n <= length && !matches(stories[0].steps[n - 1] || stories[1].steps[n - 1])) n += direction;
  go(n);
}

const KEYS = {
  ArrowRight: () => nextMatch(1), ArrowLeft: () => nextMatch(-1), j: () => nextMatch(1), k: () => nextMatch(-1),
  Home: () => go(0), End: () => go(length), b: () => { both = !both; go(place); },
  "/": () => { look("derivation"); $("filter").focus(); $("filter").select(); },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === $("filter")) {
    if (event.key === "Escape" || event.key === "Enter") $("filter").blur();
    if (event.key === "Escape") { $("filter").value = wanted.text = ""; filtered(); }
    return;
  }
  const act = KEYS[event.key];
  if (act) { event.preventDefault(); act(); }
});
$("slider").max = length;
$("slider").addEventListener("input", () => go(Number($("slider").value)));
$("slider").addEventListener("keydown", (event) => { if (KEYS[event.key]) event.preventDefault(); });
$("filter").addEventListener("input", () => { wanted.text = words($("filter").value.trim()); filtered(); });
$("before").addEventListener("click", KEYS.b);
$("before").hidden = stories.length > 1;
$("previous").addEventListener("click", KEYS.ArrowLeft);
$("next").addEventListener("click", KEYS.ArrowRight);
$("trees").addEventListener("click", (event) => { const row = event.target.closest(".t"); if (row) go(Number(row.dataset.step)); });
for (const button of document.querySelectorAll("nav button")) button.addEventListener("click", () => look(button.dataset.tab));
document.querySelector("nav").hidden = !kernel;
addEventListener("hashchange", fromAddress);

function fromAddress() {
  const step = /step=(\d+)/.exec(location.hash), line = /line=(\d+)/.exec(location.hash);
  look(line && kernel ? "kernel" : "derivation");
  go(step ? Number(step[1]) : stories.length > 1 ? firstDifference() + 1 : 0, true);
  if (line && kernel) fromLine(Number(line[1]) - 1);
}

filtered();
fromAddress();
