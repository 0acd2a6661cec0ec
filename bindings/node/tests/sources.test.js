import assert from "node:assert/strict";
import { test } from "node:test";
import { Compiler, Vocabulary } from "lexiform";
import { jsonSchema } from "ai";
import { z } from "zod";
import { says, small } from "./demo.js";

const accepts = (grammar, text) => grammar.validate(text).valid;

test("every kind of source compiles", () => {
  const sources = [
    [{ jsonSchema: { type: "integer" } }, "12", "x"],
    [{ jsonSchema: '{"type": "integer"}' }, "12", "x"],
    [{ jsonSchema: true }, "[]", "x"],
    [{ regex: "a+" }, "aa", "b"],
    [{ regex: /^a\/[bc]$/u }, "a/b", "a/d"],
    [{ ebnf: 'root ::= "a" b\nb ::= "b" | ""' }, "ab", "b"],
    [{ choice: ["one", 'two "2"'] }, 'two "2"', "three"],
    [{ any: true }, "what ever", undefined],
    [{ structuralTag: { type: "structural_tag", format: { type: "const_string", value: "hi" } } }, "hi", "ho"],
  ];
  for (const [source, inside, outside] of sources) {
    const grammar = small.compile(source);
    assert.ok(accepts(grammar, inside), JSON.stringify(source));
    assert.ok(outside === undefined || !accepts(grammar, outside), JSON.stringify(source));
  }
});

test("grammars are read in the notation that is named", () => {
  const gbnf = small.compile({ grammar: 'root ::= "a" [0-9]+' }, { notation: "gbnf" });
  assert.ok(accepts(gbnf, "a12"));
  const lark = small.compile({ grammar: 'text: "a" DIGIT+\nDIGIT: /[0-9]/' }, { notation: "lark", start: "text" });
  assert.ok(accepts(lark, "a12"));
  assert.throws(() => small.compile({ grammar: "a" }, { notation: "larc" }), says("call", "larc"));
});

test("schemas of libraries are what they say in JSON Schema", () => {
  const schemas = [
    z.object({ name: z.string(), age: z.int().min(0) }),
    jsonSchema({ type: "object", properties: { name: { type: "string" }, age: { type: "integer", minimum: 0 } }, required: ["name", "age"] }),
    { toJSONSchema: () => ({ type: "object", properties: { name: { type: "string" }, age: { type: "integer" } } }) },
    Object.assign(() => undefined, { toJsonSchema: () => ({ type: "object", properties: { name: {}, age: { type: "integer" } } }) }),
  ];
  for (const schema of schemas) {
    const grammar = small.compile({ jsonSchema: schema });
    assert.ok(accepts(grammar, '{"name": "Ada", "age": 36}'));
    assert.ok(!accepts(grammar, '{"name": "Ada", "age": "36"}'));
  }
  const properties = { jsonSchema: { type: "string" } };
  assert.ok(accepts(small.compile({ jsonSchema: { type: "object", properties } }), '{"jsonSchema": "a"}'));
});

test("schemas that are none are refused with the reason", () => {
  const vendor = { "~standard": { version: 1, vendor: "other", validate: () => ({ value: 1 }) } };
  const circle = {};
  circle.allOf = [circle];
  const refused = [
    [vendor, "unsupported", "schemas of other"],
    [z.object({ at: z.date() }), "unsupported", "Date"],
    [jsonSchema(Promise.resolve({ type: "string" })), "call", "is a promise"],
    [circle, "call", "circular"],
    [{ minimum: NaN }, "call", "`minimum` is NaN"],
    [[], "call", "not an array"],
    [() => 1, "call", "not a function"],
    [7, "call", "not 7"],
    [undefined, "call", "not undefined"],
    ["{", "syntax"],
    ['{"a": "\ud800"}', "syntax", "half of a surrogate pair"],
  ];
  for (const [schema, kind, message] of refused) {
    assert.throws(() => small.compile({ jsonSchema: schema }), says(kind, message));
  }
});

test("options have the meaning of their names", () => {
  const schema = { type: "object", properties: { a: { type: "number" } } };
  const open = small.compile({ jsonSchema: schema }, { additionalProperties: "open", numbers: "any" });
  const closed = small.compile({ jsonSchema: schema }, { whitespace: "compact" });
  assert.ok(accepts(open, '{"a": 1.50, "b": 1}') && !accepts(closed, '{"a":1,"b":1}'));
  assert.ok(accepts(closed, '{"a":1}') && !accepts(closed, '{"a": 1}'));
  const documents = { "urn:x": z.object({ n: z.int() }) };
  assert.ok(accepts(small.compile({ jsonSchema: { $ref: "urn:x" } }, { documents }), '{"n": 1}'));
  assert.ok(accepts(small.compile({ regex: "\\Aa" }, { dialect: "python" }), "a"));
  const healed = small.compile({ regex: "//a" }, { prefix: ":" });
  assert.equal(healed.forced(healed.start()).toString(), "://a");
  assert.throws(() => small.compile({ jsonSchema: { minlength: 1 } }, { strict: true }), says("unsupported", "with `strict`"));
});

test("options that are misspelled, or of another source, are refused", () => {
  const refused = [
    [{ jsonSchema: true }, { whitspace: "compact" }, "did you mean `whitespace`?"],
    [{ jsonSchema: true }, { whitespace: "none" }, 'must be one of "indented", "flexible", "compact"'],
    [{ jsonSchema: true }, { whitespace: "compact", whitespacePattern: " " }, "exclude each other"],
    [{ jsonSchema: true }, { dialect: "ecma" }, "unknown option `dialect`"],
    [{ regex: "a" }, { strict: true }, "unknown option `strict`"],
    [{ regex: "a" }, { timeout: -1 }, "a number of milliseconds"],
    [{ regex: "a" }, { timeout: NaN }, "is NaN"],
    [{ regex: "a" }, [], "must be an object"],
    [{ regex: /a/i }, undefined, "the flags of /a/i"],
    [{ regx: "a" }, undefined, "not an object with `regx`"],
    [{ regex: "a", ebnf: "b" }, undefined, "not an object with `regex`, `ebnf`"],
    ["a", undefined, "not a string"],
    [{ choice: "a" }, undefined, "an array of strings"],
    [{ choice: [1] }, undefined, "must be a string, not 1"],
    [{ any: false }, undefined, "`any` is true"],
  ];
  for (const [source, options, message] of refused) {
    assert.throws(() => small.compile(source, options), says("call", message));
  }
});

test("problems have their places, all at once", () => {
  const places = (source) => {
    try {
      small.compile(source);
    } catch (error) {
      return error.problems.map(({ pointer, line, column }) => pointer ?? [line, column]);
    }
  };
  assert.deepEqual(places({ jsonSchema: { required: "name", type: "objct" } }), ["/required", "/type"]);
  assert.deepEqual(places({ regex: "a(b" }), [[1, 2]]);
  assert.throws(() => small.compile({ jsonSchema: false }), /#: /);
});

test("sources obey the limits of their compiler", () => {
  const vocabulary = new Vocabulary(["<end>", "a"], { eos: [0] });
  const limited = new Compiler(vocabulary, { primed: false, limits: { sourceBytes: 10 } });
  assert.throws(() => limited.compile({ regex: "a".repeat(11) }), says("limit", "source_bytes"));
  assert.throws(() => small.compile({ jsonSchema: "[".repeat(5 << 20) }), says("limit"));
  assert.throws(() => small.compile({ regex: "(".repeat(100_000) }), says("limit"));
  assert.throws(() => new Compiler(vocabulary, { limits: { sourceByts: 1 } }), says("call", "sourceByts"));
});
