// The panel in its window: draws what arrives, and says what was pressed.
"use strict";

(() => {
  const editor = acquireVsCodeApi();
  const $ = (id) => document.getElementById(id);
  const state = { answers: {}, opened: {}, step: undefined, cursor: undefined };

  const SHOWN = {
    type: () => riseRender.type(state.answers.type),
    rules: () => riseRender.rules(state.answers.rules, state.opened),
    derivation: () => riseRender.derivation(state.answers.derivation, state.step),
    kernel: () => riseRender.kernel(state.answers.kernel, state.cursor),
  };

  /** What identifies a button, so that the focus stays on it when a section is drawn again. */
  const key = (element) => ["act", "rule", "number", "path", "place"].map((name) => element.dataset[name] ?? "").join("\n");

  function draw(section) {
    const target = $(section), focused = target.contains(document.activeElement) ? document.activeElement : null;
    const list = target.querySelector(".list"), top = list?.scrollTop ?? 0;
    const twins = (within) => [...within.querySelectorAll("button")].filter((each) => focused && key(each) === key(focused));
    const index = focused ? twins(target).indexOf(focused) : -1;
    target.innerHTML = state.answers[section] ? SHOWN[section]() : "";
    if (list && target.querySelector(".list")) target.querySelector(".list").scrollTop = top;
    if (index >= 0) twins(target)[index]?.focus();
  }

  const busy = (section, on) => $(section).setAttribute("aria-busy", String(on));

  const RECEIVED = {
    asked: ({ section }) => busy(section, true),
    answer({ section, answer }) {
      state.answers[section] = answer;
      busy(section, false);
      if (section === "rules") state.opened = {};
      if (section === "derivation") state.step = undefined;
      if (section === "type") sizes(answer);
      draw(section);
    },
    rule({ rule, answer }) {
      state.opened[rule] = answer;
      draw("rules");
    },
    step({ answer }) {
      state.step = answer;
      draw("derivation");
    },
    cursor({ cursor }) {
      state.cursor = cursor;
      if (state.answers.kernel) draw("kernel");
    },
    forget({ sections }) {
      for (const section of sections) {
        delete state.answers[section];
        draw(section);
      }
    },
  };

  function sizes(answer) {
    const definition = answer?.result?.definition;
    $("form").hidden = !definition?.names?.length && !definition?.problem;
    if (!definition || document.activeElement === $("sizes")) return;
    const entries = Object.entries(definition.sizes ?? {});
    if (!definition.problem) $("sizes").value = entries.map(([name, size]) => `${name}=${size}`).join(" ");
  }

  const ACTS = {
    reveal: ({ place }) => editor.postMessage({ kind: "reveal", place: JSON.parse(place) }),
    term: ({ path }) => editor.postMessage({ kind: "term", path: JSON.parse(path) }),
    step: ({ number }) => editor.postMessage({ kind: "step", number: Number(number) }),
    rule({ rule }) {
      if (state.opened[rule]) {
        delete state.opened[rule];
        return draw("rules");
      }
      const path = state.answers.rules.result.term.path;
      editor.postMessage({ kind: "rule", rule, path });
    },
  };

  /** In a list the arrow keys go from one button to the next; one of them is reached by Tab. */
  function moved(event) {
    const list = event.target.closest("[data-list]");
    const all = list ? [...list.querySelectorAll("button[tabindex]")] : [];
    const at = all.indexOf(event.target.closest("button"));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const next = all[Math.max(0, Math.min(to, all.length - 1))];
    for (const each of all) each.tabIndex = each === next ? 0 : -1;
    next.focus();
    if (next.dataset.act === "step") next.click();
  }

  addEventListener("message", ({ data }) => RECEIVED[data?.kind]?.(data));
  document.addEventListener("click", (event) => {
    const pressed = event.target.closest("[data-act]");
    if (pressed) ACTS[pressed.dataset.act]?.(pressed.dataset);
  });
  document.addEventListener("keydown", moved);
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    editor.postMessage({ kind: "sizes", sizes: $("sizes").value });
  });
  for (const section of document.querySelectorAll("[data-section]")) {
    section.addEventListener("toggle", () =>
      editor.postMessage({ kind: "section", section: section.dataset.section, open: section.open }),
    );
  }
  editor.postMessage({ kind: "ready" });
})();
