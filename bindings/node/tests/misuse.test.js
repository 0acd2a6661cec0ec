import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { Compiler, fillBatch, Grammar, LexiformError, Session, setThreads, Vocabulary } from "lexiform";
import native from "../lib/native.js";
import { translated } from "../lib/errors.js";
import { says, small, vocabulary } from "./demo.js";

const source = new URL("../src/", import.meta.url);
const grammar = small.compile({ regex: "a+" });
const start = grammar.start();
const other = small.compile({ regex: "a+b" });
const mask = new Uint32Array(grammar.words);

test("wrong arguments are errors of the package", () => {
  const calls = [
    [() => new Vocabulary("ab", { eos: [0] }), "must be an array"],
    [() => new Vocabulary([], { eos: [] }), "the vocabulary is empty"],
    [() => new Vocabulary(["a"]), "`eos` names the tokens"],
    [() => new Vocabulary(["a"], { eos: [7] }), "the end-of-sequence token 7 is outside"],
    [() => new Vocabulary(["a"], { eos: [-1] }), "whole number"],
    [() => new Vocabulary(["a"], { eos: [0], kinds: [] }), "there are 1 tokens and 0 kinds"],
    [() => new Vocabulary(["a"], { eos: [0], kinds: ["word"] }), '"word" is no kind of token'],
    [() => Vocabulary.fromTokenizerJson("{", { eos: [0] }), "line 1"],
    [() => Vocabulary.fromTokenizerJson("{}", { eos: [0], rows: 2 ** 31 }), "a model with 2147483648 rows"],
    [() => new Compiler({}), "a Vocabulary is needed"],
    [() => new Grammar({}), "made by a Compiler"],
    [() => new Session(vocabulary), "a Grammar is needed"],
    [() => grammar.step(other.start(), 1), "belongs to another grammar"],
    [() => grammar.step({}, 1), ""],
    [() => grammar.step(start, -1), "must be a whole number from 0, not -1"],
    [() => grammar.step(start, 1.5), "not 1.5"],
    [() => grammar.step(start, 2 ** 32), "not 4294967296"],
    [() => grammar.step(start, "1"), ""],
    [() => grammar.step(start, 1, { end: [1] }), "unknown option `end`"],
    [() => grammar.walk(start, "ab"), "must be an array of tokens"],
    [() => grammar.fill(start, new Int32Array(grammar.words)), ""],
    [() => grammar.fill(start, new Uint32Array(grammar.words + 1)), "a row of this vocabulary has"],
    [() => grammar.fill(start, mask, { row: 1 }), "row 1 is outside of the mask, which has 1 rows"],
    [() => grammar.fill(start, mask, { budget: -1 }), "a budget must be a whole number"],
    [() => grammar.fill(start, mask, { ends: [9999] }), "9999"],
    [() => grammar.tokens(start, { ends: [NaN] }), "not NaN"],
    [() => grammar.explain(start, Infinity), "not inf"],
    [() => grammar.stepBytes(start, 7), "must be a string"],
    [() => fillBatch([{ grammar, state: start, row: 0 }, { grammar, state: start, row: 0 }], mask), "row 0 is given twice"],
    [() => fillBatch([{ grammar, state: start, row: 3 }], mask), "row 3 is outside"],
    [() => fillBatch([{ grammar, state: start }], mask), ""],
    [() => fillBatch([{ session: grammar, row: 0 }], mask), "a Session is needed"],
    [() => fillBatch([{ session: new Session(grammar), state: start, row: 0 }], mask), "a row is of a session, or"],
    [() => setThreads(0), "one thread at least"],
  ];
  for (const [call, message] of calls) assert.throws(call, says("call", message), String(call));
});

test("a mask whose memory was given away has no rows", () => {
  const detached = new Uint32Array(grammar.words);
  structuredClone(detached.buffer, { transfer: [detached.buffer] });
  assert.throws(() => grammar.fill(start, detached), says("call", "0 rows"));
});

test("a panic is an error, on both kinds of threads", { skip: native.panicForTest === undefined }, () => {
  try {
    native.panicForTest();
    assert.fail("it panics");
  } catch (error) {
    const { problems } = translated(error);
    assert.match(problems[0].message, /as the test asked/);
  }
  assert.ok(small.compile({ regex: "a" }));
});

test("every function of the native part catches panics", () => {
  for (const file of readdirSync(source, { recursive: true }).filter((name) => name.endsWith(".rs"))) {
    const text = readFileSync(new URL(file, source), "utf8");
    for (const [, attributes] of text.matchAll(/#\[napi(.*)\]\n(?:\s*(?:\/\/|#\[).*\n)*\s*pub(?:\(crate\))? fn/g)) {
      assert.match(attributes, /catch_unwind/, `${file}: #[napi${attributes}]`);
    }
  }
});

test("errors are errors, with a message for people", () => {
  const error = new LexiformError([
    { kind: "invalid", message: "one", place: "#/a", pointer: "/a", line: null, column: null },
    { kind: "call", message: "two", place: null, pointer: null, line: null, column: null },
  ]);
  assert.ok(error instanceof Error && error.name === "LexiformError");
  assert.equal(error.message, "#/a: one\ntwo");
});
