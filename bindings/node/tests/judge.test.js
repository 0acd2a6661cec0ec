import assert from "node:assert/strict";
import { test } from "node:test";
import { repair, repairAsync, standardSchema, validate } from "lexiform";
import { z } from "zod";
import { says, small } from "./demo.js";

const Person = z.object({ name: z.string(), tags: z.array(z.string()).max(2).optional() });

test("a text is judged by its value", () => {
  for (const text of ['{"name":"Ada"}', '\n{ "tags" : [ ] ,\r\n\t"name" : "\\u0041" , "more": 1e40 }\n', Buffer.from('{"name": "é"}')]) {
    assert.ok(validate(Person, text).valid, String(text));
  }
  assert.deepEqual(validate(Person, '{"name": "Ada"}').value, { name: "Ada" });
});

test("what is wrong has its place in the text and in the value", () => {
  const wrong = (text) => validate(Person, text).problem;
  const { kind, pointer, offset, start, line, column } = wrong('{"name": "é😀",\n "tags": ["a", 7]}');
  assert.deepEqual({ kind, pointer, offset, start, line, column }, { kind: "unexpected", pointer: "/tags/1", offset: 34, start: 31, line: 2, column: 16 });
  assert.equal(wrong('{"name": "Ada"').kind, "ends_early");
  assert.equal(wrong('{"name": "Ada", "é": 1, "\\u00e9": 2}').kind, "duplicate_key");
  assert.equal(wrong('{"name": "Ada", "tags": ["a", "b", "c"]}').pointer, "/tags/1");
  assert.equal(validate({ type: "array", items: { type: "integer" } }, "[1 2]").problem.start, 3);
});

test("values are judged as their JSON, and what has none is refused", () => {
  assert.ok(validate(Person, { name: "Ada", tags: undefined }).valid);
  assert.equal(validate(Person, { name: "Ada", tags: [1] }).problem.pointer, "/tags/0");
  assert.throws(() => validate(Person, { name: "Ada", age: NaN }), says("call", "`age` is NaN"));
  assert.throws(() => validate(Person, undefined), says("call", "it is undefined"));
  assert.throws(() => validate(Person, { n: 1n }), says("call", "`n` is 1"));
  assert.throws(() => validate(Person, new Uint8Array([0xff])), says("syntax", "not UTF-8"));
  assert.throws(() => validate({ type: "objct" }, "{}"), says("invalid"));
  assert.throws(() => validate(Person, "{}", { whitespac: "compact" }), says("call", "did you mean"));
  assert.throws(() => validate(true, `"${"a".repeat(5 << 20)}"`), says("call", "sourceBytes"));
});

test("a text is repaired with its values whole", () => {
  const given = "Sure! ```json\n{'tags': ['a'], \"name\": 'Ada', x: 1";
  const repaired = repair(Person, given);
  assert.equal(repaired.text, '{"name": "Ada", "tags": ["a"]}');
  assert.deepEqual([...new Set(repaired.changes.map(({ kind }) => kind))].sort(), ["added", "around", "dropped", "reordered", "respelled"]);
  assert.ok(validate(Person, repaired.text).valid);
});

test("edits lead from one text to the other, by the index of the string", () => {
  const dates = small.compile({ regex: "[0-9]{4}-[0-9]{2}" });
  const { text, cost, edits } = dates.repair("2026/07");
  assert.deepEqual([text, cost, edits.map(({ start, removed, inserted }) => [start, removed, inserted])], ["2026-07", 1, [[4, "/", "-"]]]);
  const given = "é😀{'name': 'Ada'}";
  const repaired = repair(Person, given);
  let [written, at] = ["", 0];
  for (const { start, removed, inserted } of repaired.edits) {
    assert.equal(given.slice(start, start + removed.length), removed);
    written += given.slice(at, start) + inserted;
    at = start + removed.length;
  }
  assert.equal(written + given.slice(at), repaired.text);
});

test("repairs obey their limits, and run on other threads", async () => {
  assert.equal((await repairAsync(Person, "{'name': 'Ada'}")).text, '{"name": "Ada"}');
  const dates = small.compile({ regex: "[0-9]{4}-[0-9]{2}" });
  assert.equal((await dates.repairAsync("2026/07")).text, "2026-07");
  assert.throws(() => dates.repair("x".repeat(500), { nodes: 100 }), says("limit", "nodes"));
  assert.throws(() => dates.repair("x", { insert: 0 }), says("call", "insert"));
  assert.throws(() => dates.repair("x", { inserts: 1 }), says("call", "did you mean `insert`?"));
  await assert.rejects(repairAsync(Person, "x", { signal: AbortSignal.abort(new Error("no more")) }), /no more/);
});

test("a Standard Schema validates values, strings among them", () => {
  const { validate: judged, jsonSchema, vendor } = standardSchema(Person)["~standard"];
  assert.equal(vendor, "lexiform");
  assert.deepEqual(judged({ name: "Ada" }), { value: { name: "Ada" } });
  const { issues } = judged({ name: "Ada", tags: ["a", 1] });
  assert.deepEqual(issues.map(({ path }) => path), [["tags", "1"]]);
  assert.deepEqual(standardSchema({ type: "string" })["~standard"].validate("{}"), { value: "{}" });
  assert.equal(judged(undefined).issues.length, 1);
  assert.deepEqual(jsonSchema.input({ target: "draft-07" }).required, ["name"]);
});
