import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fillBatch, Session, setThreads, Vocabulary } from "lexiform";
import { demo, demoVocabulary, ROOT, read, says, small, spelled, vocabulary } from "./demo.js";

const AS_SPECIFIED = { whitespace: "flexible", additionalProperties: "open", numbers: "any" };

function* schemas() {
  const known = new Set();
  const folders = readdirSync(`${ROOT}schemas`, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  for (const { name } of folders.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (existsSync(`${ROOT}schemas/${name}/expected_error.txt`)) continue;
    const schema = read(`schemas/${name}/schema.json`);
    known.add(schema);
    yield [name, schema];
  }
  for (const [at, line] of read("models/demo/heldout.jsonl").trimEnd().split("\n").entries()) {
    const { schema } = JSON.parse(line);
    const text = schema && JSON.stringify(schema);
    if (text === undefined || known.has(text)) continue;
    known.add(text);
    yield [`heldout ${at + 1}`, text];
  }
}

// FNV-1a of 64 bits in two halves: numbers of JavaScript have 53 bits.
function digested(words, [high, low]) {
  for (const byte of new Uint8Array(words.buffer)) {
    low = (low ^ byte) >>> 0;
    const carried = low * 0x1b3;
    high = (Math.imul(high, 0x1b3) + Math.floor(carried / 2 ** 32) + Math.imul(low, 0x100)) >>> 0;
    low = carried >>> 0;
  }
  return [high, low];
}

function alongAText(grammar) {
  let [state, chance, digest] = [grammar.start(), 1, [0xcbf29ce4, 0x84222325]];
  const mask = new Uint32Array(grammar.words);
  for (let step = 0; step < 24; step += 1) {
    grammar.fill(state, mask);
    digest = digested(mask, digest);
    const tokens = grammar.tokens(state);
    if (tokens.length === 0) break;
    chance = Number((BigInt(chance) * 1_103_515_245n + 12_345n) % 2n ** 31n);
    state = grammar.step(state, tokens[Math.floor(chance / 65_536) % tokens.length]);
  }
  return digest.map((half) => half.toString(16).padStart(8, "0")).join("");
}

test("masks are those of the library on 200 schemas", () => {
  const found = [];
  for (const [name, schema] of schemas()) {
    if (found.length === 200) break;
    found.push(`${alongAText(demo.compile({ jsonSchema: schema }, AS_SPECIFIED))} ${name}`);
  }
  assert.equal(found.length, 200);
  assert.deepEqual(found, read("tests/data/mask_digests.txt").trimEnd().split("\n"));
});

test("a vocabulary is its tokens", () => {
  const made = new Vocabulary([new Uint8Array([0xc3]), "é", "<e>"], { eos: [2], kinds: ["text", "text", "mark"] });
  assert.deepEqual([0, 1, 2, 3].map((token) => made.bytes(token).toString("latin1")), ["\xc3", "\xc3\xa9", "<e>", ""]);
  assert.deepEqual([0, 1, 2, 3].map((token) => made.kind(token)), ["text", "text", "special", "unused"]);
  assert.deepEqual([made.length, made.words, made.eos, made.special("<e>"), made.special("x")], [3, 1, [2], 2, null]);
  assert.deepEqual([demoVocabulary.length, demoVocabulary.words], [2052, 65]);
  const wide = Vocabulary.fromTokenizerJson(Buffer.from(read("models/demo/tokenizer.json")), { eos: [1n], rows: 3000 });
  assert.equal(wide.length, 3000);
});

test("prompts are healed", () => {
  const urls = new Vocabulary(["<end>", "http", ":", "://", "a"], { eos: [0] });
  const { kept, removed } = urls.heal([1, 2]);
  assert.deepEqual([kept, removed.toString()], [1, ":"]);
});

test("steps, forced text and ends", () => {
  const grammar = small.compile({ regex: "(yes|no)!{2}" });
  const start = grammar.start();
  assert.deepEqual(grammar.tokens(start), spelled("ny"));
  const [y] = spelled("y");
  const after = grammar.step(start, y);
  assert.equal(grammar.forced(after).toString(), "es!!");
  assert.equal(grammar.step(start, 0), null);
  assert.equal(grammar.minCompletion(after), 5);
  const end = grammar.stepBytes(after, "es!!");
  assert.ok(grammar.isAccepting(end) && !grammar.isFinished(end));
  assert.ok(grammar.isFinished(grammar.step(end, 0)));
  const [other] = spelled("~");
  assert.deepEqual(grammar.tokens(end, { ends: [other] }), [other]);
  assert.equal(grammar.step(end, 0, { ends: [other] }), null);
  assert.ok(grammar.stepBytes(start, "y").equals(after) && !start.equals(after));
  assert.equal(grammar.walk(start, spelled("yes?")).length, 3);
  assert.equal(grammar.stepBytes(start, new Uint8Array([0xff])), null);
});

test("masks go into rows of arrays, and budgets close texts in time", () => {
  const grammar = small.compile({ regex: "a{1,9}" });
  const mask = new Uint32Array(2 * grammar.words).fill(7);
  grammar.fill(grammar.start(), mask, { row: 1 });
  assert.deepEqual([...mask.slice(0, grammar.words)], Array(grammar.words).fill(7));
  const has = (words, token) => (words[token >> 5] >>> (token & 31)) & 1;
  const [a] = spelled("a");
  assert.ok(has(mask.subarray(grammar.words), a) && !has(mask.subarray(grammar.words), 0));
  const one = grammar.step(grammar.start(), a);
  assert.deepEqual(grammar.tokens(one), [0, a]);
  assert.deepEqual(grammar.tokens(one, { budget: 1 }), [0]);
  assert.deepEqual(grammar.mask(one, undefined, { budget: 1 })[0], 1);
});

test("a session accepts, validates, takes back, forks and starts again", () => {
  const session = new Session(small.compile({ choice: ["yes", "yet"] }));
  assert.ok(session.accept(spelled("y")) && !session.accept(spelled("q")));
  assert.equal(session.validate(spelled("et?")), 2);
  assert.ok(session.accept(spelled("e")[0]));
  const fork = session.fork();
  assert.ok(session.accept([...spelled("s"), 0]) && session.terminated && !session.accept([0]));
  assert.deepEqual(fork.tokens, spelled("ye"));
  const rest = small.compile({ regex: "s|t" });
  assert.deepEqual(fork.mask(), rest.mask(rest.start()));
  session.rollback(2);
  assert.deepEqual([session.tokens, session.terminated, session.accepting], [spelled("ye"), false, false]);
  session.reset();
  assert.deepEqual(session.tokens, []);
  assert.throws(() => session.rollback(1), says("call", "1 tokens cannot be taken back"));
});

test("batches write what single calls write, with any number of threads", () => {
  const grammars = [{ regex: "[a-z]+" }, { choice: ["one", "two"] }, { jsonSchema: { type: "integer" } }];
  const compiled = grammars.map((source) => small.compile(source));
  const session = new Session(compiled[1]);
  session.accept(spelled("t"));
  for (const threads of [1, 4]) {
    setThreads(threads);
    const mask = new Uint32Array(4 * vocabulary.words);
    const rows = compiled.map((grammar, row) => ({ grammar, state: grammar.start(), row }));
    assert.deepEqual(fillBatch([...rows, { session, row: 3, budget: 9 }], mask), []);
    const single = compiled.map((grammar) => [...grammar.mask(grammar.start())]);
    assert.deepEqual([...mask], [...single.flat(), ...session.mask()]);
  }
  assert.deepEqual(fillBatch([], new Uint32Array(0)), []);
});

test("explanations, reports and findings", () => {
  const schema = { type: "object", properties: { a: { type: "integer" } }, required: ["a"], minlength: 1 };
  const grammar = small.compile({ jsonSchema: schema });
  const { mayEnd, ways } = grammar.explain(grammar.stepBytes(grammar.start(), '{"'));
  assert.ok(!mayEnd && ways.some(({ text }) => text?.toString().includes("a")));
  assert.deepEqual(grammar.report().map(({ pointer, enforced }) => [pointer, enforced])[0], ["/type", "exact"]);
  assert.ok(grammar.findings.some(({ pointer, message }) => pointer === "/minlength" && message.includes("minLength")));
  assert.throws(() => small.compile({ regex: "a" }).report(), says("call", "only grammars of schemas"));
});

test("a grammar that outgrows its memory goes on in its replacement", () => {
  const grammar = small.compile({ regex: "((a|b){1,500},)*" });
  let state = grammar.start();
  const word = `${"ab".repeat(200)},`;
  for (let count = 0; count < 50; count += 1) state = grammar.stepBytes(state, word);
  assert.ok(grammar.isAccepting(state) && grammar.tokens(state).length === 3);
});
