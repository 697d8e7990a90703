// The document of the panel. It runs only our two scripts, and loads nothing from a network.
"use strict";

const SECTIONS = [
  ["rules", "Rules here"],
  ["derivation", "Derivation by auto"],
  ["kernel", "CUDA"],
];

const quoted = (text) => String(text).replace(/&/g, "&amp;").replace(/"/g, "&quot;").replace(/</g, "&lt;");

function policy(source, nonce) {
  return `default-src 'none'; style-src ${source}; script-src 'nonce-${nonce}'`;
}

/** source: where styles may come from; nonce: known to our scripts only; style, scripts: their addresses. */
function page({ source, nonce, style, scripts }) {
  const sections = SECTIONS.map(
    ([name, title]) =>
      `<details data-section="${name}"><summary>${title}</summary><div id="${name}"></div></details>`,
  );
  const loaded = scripts.map((script) => `<script nonce="${quoted(nonce)}" src="${quoted(script)}"></script>`);
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${quoted(policy(source, nonce))}">
<title>RISE</title>
<link rel="stylesheet" href="${quoted(style)}">
</head>
<body>
<main>
<div id="type" aria-live="polite"></div>
<form id="form" hidden>
<label for="sizes">Sizes</label> <input id="sizes" autocomplete="off" spellcheck="false">
<button>use</button>
</form>
${sections.join("\n")}
</main>
${loaded.join("\n")}
</body>
</html>
`;
}

module.exports = { page, policy, SECTIONS };
