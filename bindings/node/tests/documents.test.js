import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ROOT, read } from "./demo.js";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));

/** The blocks of these languages in a page. */
const blocks = (page, language) =>
  [...read(page).matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].filter(([, named]) => named === language).map(([, , text]) => text);

for (const page of ["bindings/node/README.md", "docs/src/javascript.md"]) {
  test(`the examples of ${page} run, and print what it says`, () => {
    const examples = blocks(page, "js");
    assert.ok(examples.length > 1);
    const program = `process.chdir(${JSON.stringify(ROOT)});\n${examples.join("")}`;
    const done = spawnSync(process.execPath, ["--input-type=module", "--eval", program], { cwd: PACKAGE, encoding: "utf8" });
    assert.equal(done.status, 0, done.stderr);
    assert.equal(done.stdout, blocks(page, "text").join(""));
  });
}
