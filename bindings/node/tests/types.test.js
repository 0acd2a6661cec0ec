import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import * as ai from "lexiform/ai";
import * as lexiform from "lexiform";
import * as transformers from "lexiform/transformers";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

test("the types are strict, and those that programs need", () => {
  const tsc = `${ROOT}node_modules/typescript/bin/tsc`;
  const done = spawnSync(process.execPath, [tsc, "--project", "tests/types"], { cwd: ROOT, encoding: "utf8" });
  assert.equal(done.status, 0, done.stdout + done.stderr);
});

test("what is declared is there, and what is there is declared", () => {
  for (const [file, module] of [["index", lexiform], ["ai", ai], ["transformers", transformers]]) {
    const declared = readFileSync(`${ROOT}lib/${file}.d.ts`, "utf8");
    const values = [...declared.matchAll(/^export (?:declare )?(?:class|function|const) (\w+)/gm)].map(([, name]) => name);
    const renamed = [...declared.matchAll(/^export \{ \w+ as (\w+) \}/gm)].map(([, name]) => name);
    assert.deepEqual([...new Set([...values, ...renamed])].sort(), Object.keys(module).sort(), file);
    for (const [, name, body] of declared.matchAll(/^export class (\w+)(?: extends \w+)? \{\n([\s\S]*?)^\}/gm)) {
      const members = [...body.matchAll(/^ {2}(static )?(?:readonly )?(\w+)[(:]/gm)];
      const wanted = members.filter(([, , member]) => member !== "constructor").map(([, fixed, member]) => `${fixed ?? ""}${member}`);
      const own = Object.getOwnPropertyNames(module[name].prototype).filter((member) => member !== "constructor");
      const fixed = Object.getOwnPropertyNames(module[name]).filter((member) => !["arguments", "caller", "length", "name", "prototype"].includes(member));
      const found = [...own, ...fixed.map((member) => `static ${member}`)];
      // Errors have their problems as a field of each.
      const rest = name === "LexiformError" ? ["problems"] : [];
      assert.deepEqual([...new Set(wanted)].sort(), [...found, ...rest].sort(), name);
    }
  }
});
