import assert from "node:assert/strict";
import { test } from "node:test";
import { logitsProcessor } from "lexiform/transformers";
import { z } from "zod";
import { answer } from "../examples/transformers.js";
import { demo, demoVocabulary, read, says } from "./demo.js";

const END = 1;
const Person = z.object({ name: z.string().max(12), age: z.int().min(0).max(150) });

// A generator of plain arithmetic, so that every run writes the same.
function* noise(seed) {
  for (let chance = seed; ; ) {
    chance = (Math.imul(chance, 1_103_515_245) + 12_345) & 0x7fffffff;
    yield (chance >>> 8) / 0x7fffff;
  }
}

/** A model without weights: it prefers tokens by chance, and calls processors as transformers.js does. */
class ModelOfNoise {
  config = { eos_token_id: END, vocab_size: demoVocabulary.length };

  async generate({ input_ids, max_new_tokens, logits_processor }) {
    const rows = input_ids.tolist().map((ids) => ids.map(BigInt));
    const [isDone, chance] = [rows.map(() => false), noise(7)];
    for (let count = 0; count < max_new_tokens && isDone.includes(false); count += 1) {
      const data = rows.map(() => Float32Array.from({ length: this.config.vocab_size }, () => chance.next().value));
      const logits = Object.assign(data.map((row) => ({ data: row })), { dims: [rows.length, this.config.vocab_size] });
      for (const processor of logits_processor) assert.equal(processor(rows, logits), logits);
      for (const [row, scores] of data.entries()) {
        rows[row].push(BigInt(scores.indexOf(Math.max(...scores))));
        isDone[row] ||= rows[row].at(-1) === BigInt(END);
      }
    }
    return tensor(rows.map((ids) => ids.map(Number)));
  }
}

function tensor(rows) {
  return {
    dims: [rows.length, rows[0].length],
    tolist: () => rows,
    slice: (_, [from]) => tensor(rows.map((ids) => ids.slice(from))),
  };
}

const tokenizer = Object.assign(async () => ({ input_ids: tensor([[5, 6, 7]]) }), {
  decode: (ids) => Buffer.concat(ids.filter((id) => id !== END).map((id) => demoVocabulary.bytes(id))).toString(),
});

test("a model that writes by chance writes values of the schema", async () => {
  const parts = { model: new ModelOfNoise(), tokenizer, tokenizerJson: read("models/demo/tokenizer.json") };
  const person = await answer(parts, Person, "Maria");
  assert.ok(Person.safeParse(person).success, JSON.stringify(person));
});

test("rows of a batch end on their own, and a processor is for one call", async () => {
  const grammar = demo.compile({ jsonSchema: Person });
  const processor = logitsProcessor(grammar, { maxNewTokens: 50 });
  const prompts = tensor([[5, 6], [7, 8]]);
  const written = await new ModelOfNoise().generate({ input_ids: prompts, max_new_tokens: 50, logits_processor: [processor] });
  for (const ids of written.tolist()) {
    const text = tokenizer.decode(ids.slice(2, ids.indexOf(END, 2)));
    assert.ok(Person.safeParse(JSON.parse(text)).success, text);
  }
  assert.throws(() => processor([[5n]], [{ data: new Float32Array(demoVocabulary.length) }]), says("call", "make a new one"));
});

test("beams that take each other's place are followed", () => {
  const grammar = demo.compile({ regex: "ab|cd" });
  const [a, b, c, d] = ["a", "b", "c", "d"].map((letter) => grammar.tokens(grammar.start()).concat([...Array(2052).keys()]).find((token) => demoVocabulary.bytes(token).toString() === letter));
  const processor = logitsProcessor(grammar);
  const allowed = (ids) => {
    const data = new Float32Array(demoVocabulary.length);
    processor([[9n, ...ids.map(BigInt)]], [{ data }]);
    return [...data.keys()].filter((token) => data[token] === 0);
  };
  allowed([]);
  assert.ok(allowed([a]).includes(b));
  assert.ok(allowed([c]).includes(d) && !allowed([c]).includes(b));
  assert.throws(() => allowed([b]), says("call", "may not come next"));
});

test("the processors of transformers.js take it", async (context) => {
  const transformers = await import("@huggingface/transformers").catch(() => undefined);
  if (transformers === undefined) return context.skip("@huggingface/transformers is not installed");
  const { LogitsProcessorList, Tensor } = transformers;
  const grammar = demo.compile({ choice: ["a"] });
  const list = new LogitsProcessorList();
  list.extend([logitsProcessor(grammar)]);
  const logits = new Tensor("float32", new Float32Array(2 * demoVocabulary.length), [2, demoVocabulary.length]);
  const masked = list([[5n], [6n]], logits);
  const kept = [...masked[1].data.keys()].filter((token) => masked[1].data[token] === 0);
  assert.deepEqual(kept, grammar.tokens(grammar.start()));
  assert.deepEqual([...masked[0].data], [...masked[1].data]);
});
