import assert from "node:assert/strict";
import { test } from "node:test";
import { repair, repairAsync, validate } from "lexiform";
import { demo, says } from "./demo.js";

// Each of these takes many seconds, if nobody ends it.
const words = Array.from({ length: 40_000 }, (_, at) => `${((at + 1) * 2654435761) % 2 ** 32}-${at}`);
const heavy = { jsonSchema: { type: "array", items: { enum: words }, uniqueItems: true, minItems: 3 } };

test("a compile on another thread makes the same grammar", async () => {
  const source = { jsonSchema: { type: "object", properties: { a: { type: "integer" } }, required: ["a"] } };
  const [one, other] = [demo.compile(source), await demo.compileAsync(source)];
  assert.deepEqual(other.mask(other.start()), one.mask(one.start()));
  await assert.rejects(demo.compileAsync({ jsonSchema: { type: "objct" } }), says("invalid", "objct"));
  await assert.rejects(demo.compileAsync({ regex: "a" }, { strict: true }), says("call", "strict"));
});

test("an abort ends a compile, with its reason", async () => {
  const controller = new AbortController();
  const compile = demo.compileAsync(heavy, { signal: controller.signal });
  controller.abort(new Error("nobody waits"));
  await assert.rejects(compile, /nobody waits/);
  await assert.rejects(demo.compileAsync(heavy, { signal: AbortSignal.abort() }), { name: "AbortError" });
  const soon = AbortSignal.timeout(20);
  await assert.rejects(repairAsync(heavy.jsonSchema, "x", { signal: soon }), { name: "TimeoutError" });
  await assert.rejects(demo.compileAsync({ regex: "a" }, { signal: 1 }), says("call", "AbortSignal"));
});

test("a timeout of zero ends what it bounds", () => {
  assert.throws(() => demo.compile(heavy, { timeout: 0 }), says("cancelled", "the compile took longer than 0 ms"));
  // The time of a compile counts as that of what it is for.
  assert.throws(() => repair(heavy.jsonSchema, "x", { timeout: 0 }), says("cancelled", "the repair took longer"));
  assert.throws(() => validate(heavy.jsonSchema, "x", { timeout: 0 }), says("cancelled", "the check took longer"));
});

test("many compiles run beside each other", async () => {
  const grammars = await Promise.all(Array.from({ length: 64 }, (_, at) => demo.compileAsync({ regex: `a{${at + 1}}` })));
  assert.deepEqual(grammars.map((grammar) => grammar.minCompletion(grammar.start()) > 0), Array(64).fill(true));
});
