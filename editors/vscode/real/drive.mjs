// In Visual Studio Code, in a browser: opens a program with a mistake, mends it, and opens the panel on it.
//   node drive.mjs BROWSER URL FOLDER FILE PICTURE SECTION WAITED
// Prints as JSON what was seen: lenses, types in the text, problems before and after, the text of the panel.
// Run it where playwright-core is installed.
import { createRequire } from "node:module";

const [browser, url, folder, file, picture, section, waited] = process.argv.slice(2);
const { chromium } = createRequire(`${process.cwd()}/`)("playwright-core");
const started = await chromium.launch({ executablePath: browser, args: ["--no-sandbox", "--disable-gpu"] });
const page = await started.newPage({ viewport: { width: 1280, height: 760 } });
page.setDefaultTimeout(60_000);
const seen = {};

const payload = encodeURIComponent(JSON.stringify([["openFile", `vscode-remote://${folder}/${file}`]]));
await page.goto(`${url}/?folder=${folder}&payload=${payload}`);
await page.locator(".codelens-decoration").first().waitFor();

// the mistake, in the list of problems; then without it, not saved
await page.keyboard.press("Control+Shift+M");
const problems = page.locator(".markers-panel");
await problems.getByText("R0305").waitFor();
seen.problems = await problems.innerText();
const line = page.locator(".view-line", { hasText: "max" }).first();
await line.click();
await page.keyboard.press("End");
await page.keyboard.press("Shift+Home");
await page.keyboard.type("  zip(xs)(ys) |> map((x, y) => a * x + y)");
await problems.getByText("No problems have been detected").waitFor();
seen.mended = await problems.innerText();
await page.keyboard.press("Control+J");
await page.locator(".codelens-decoration").nth(1).waitFor();
seen.lenses = await page.locator(".codelens-decoration").allInnerTexts();
seen.text = await page.locator(".view-lines").first().innerText();

// the panel, with the cursor on `reduce`
await page.keyboard.press("Control+B");
await page.keyboard.press("Control+G");
await page.keyboard.type("6:10");
await page.keyboard.press("Enter");
await page.locator('.editor-actions [aria-label^="Show Type, Rules"]').click();
const panel = page.frameLocator("iframe.webview").frameLocator("iframe");
await panel.getByText("at the cursor").waitFor();
await panel.locator("summary", { hasText: section }).click();
await panel.getByText(waited).first().waitFor();
seen.panel = await panel.locator("body").innerText();
await page.screenshot({ path: picture });
await started.close();
console.log(JSON.stringify(seen));
