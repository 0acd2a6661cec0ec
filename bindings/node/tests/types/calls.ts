// Calls as a program in TypeScript has them: `tsc --strict` checks them, and nothing runs.

import { generateObject, generateText, jsonSchema, Output, wrapLanguageModel } from "ai";
import type { LanguageModel } from "ai";
import { z } from "zod";
import {
  Compiler,
  fillBatch,
  LexiformError,
  repair,
  repairAsync,
  Session,
  standardSchema,
  validate,
  Vocabulary,
} from "lexiform";
import type { Edit, Grammar, Misfit, Problem, State } from "lexiform";
import { repairMiddleware, repairText, schema } from "lexiform/ai";
import { logitsProcessor } from "lexiform/transformers";

const Person = z.object({ name: z.string(), age: z.int() });
const vocabulary = new Vocabulary(["<end>", new Uint8Array([97])], { eos: [0], kinds: ["special", "text"] });
const compiler = new Compiler(vocabulary, { primed: false, limits: { sourceBytes: 1000 } });
const grammar: Grammar = compiler.compile({ jsonSchema: Person }, { whitespace: "compact", documents: { a: Person } });
export const later: Promise<Grammar> = compiler.compileAsync({ regex: /a+/ }, { signal: AbortSignal.timeout(1000) });
compiler.compile({ jsonSchema: jsonSchema({ type: "string" }) });
compiler.compile({ choice: ["a", "b"] }, { prefix: "x" });
// @ts-expect-error: an unknown option
compiler.compile({ regex: "a" }, { whitspace: "compact" });
// @ts-expect-error: an unknown source
compiler.compile({ regx: "a" });

const state: State | null = grammar.step(grammar.start(), 1);
// @ts-expect-error: the state may be null
grammar.fill(state, new Uint32Array(1));
if (state !== null) {
  const mask: Uint32Array = grammar.mask(state);
  fillBatch([{ grammar, state, row: 0 }, { session: new Session(grammar), row: 1, budget: 3 }], mask);
}

const verdict = validate(Person, "{}");
if (verdict.valid) verdict.value.name.toUpperCase();
else {
  const problem: Misfit = verdict.problem;
  problem.pointer?.split("/");
}
export const edits: readonly Edit[] = repair({ type: "string" }, "x", { insert: 2, nodes: 100 }).edits;
export const repaired = repairAsync(Person, "x", { signal: new AbortController().signal });

try {
  compiler.compile({ ebnf: "a" });
} catch (error) {
  if (error instanceof LexiformError) {
    const problems: readonly Problem[] = error.problems;
    problems.map(({ line }) => (line === null ? 0 : line));
  }
}

export async function answers(model: Exclude<LanguageModel, string>): Promise<string> {
  const { object } = await generateObject({ model, schema: schema(Person), prompt: "", repairText: repairText(Person) });
  const wrapped = wrapLanguageModel({ model: model as never, middleware: repairMiddleware() });
  const { output } = await generateText({ model: wrapped, prompt: "", output: Output.object({ schema: standardSchema(Person) }) });
  return object.name + output.name;
}

const logits = [{ data: new Float32Array(2) }];
export const masked: { data: Float32Array }[] = logitsProcessor(grammar, { maxNewTokens: 9 })([[1n, 2n]], logits);
