import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { repair, Session, validate } from "lexiform";
import native from "../lib/native.js";
import { small } from "./demo.js";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");

// Finalizers run when the event loop turns.
const turn = () => new Promise((done) => setImmediate(done));

async function collected() {
  for (let round = 0; round < 5; round += 1) {
    collect();
    await turn();
  }
}

test("the memory of 10,000 grammars with their states and sessions is freed", async () => {
  await collected();
  const before = native.externalMemory();
  let [most, resident] = [0, 0];
  for (let count = 0; count < 10_000; count += 1) {
    const grammar = small.compile({ regex: `a{${count % 90}}[b-y]{0,9}z` });
    const session = new Session(grammar);
    grammar.mask(grammar.stepBytes(grammar.start(), "a".repeat(count % 90)));
    session.fork().fill(session.mask());
    most = Math.max(most, native.externalMemory() - before);
    if (count % 100 === 0) await turn();
    if (count === 2_000) resident = await residentMemory();
  }
  assert.equal(await collectedMemory(before), 0);
  assert.ok(most < 256 << 20, `the collector let ${most >> 20} MiB pile up`);
  const grown = (await residentMemory()) - resident;
  assert.ok(grown < 32 << 20, `8,000 grammars left ${grown >> 20} MiB`);
});

test("schemas that are judged leave nothing behind", async () => {
  const judge = (count) => {
    const schema = { type: "object", properties: { [`key${count}`]: { type: "integer" } } };
    validate(schema, `{"key${count}": 1}`);
    repair(schema, `{'key${count}': 1`);
  };
  for (let count = 0; count < 200; count += 1) judge(count);
  const resident = await residentMemory();
  for (let count = 200; count < 1_200; count += 1) judge(count);
  const grown = (await residentMemory()) - resident;
  assert.ok(grown < 32 << 20, `1,000 schemas left ${grown >> 20} MiB`);
});

async function collectedMemory(before) {
  await collected();
  return native.externalMemory() - before;
}

async function residentMemory() {
  await collected();
  return process.memoryUsage().rss;
}
