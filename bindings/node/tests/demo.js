// What several tests need: the root of the checkout, the demo tokenizer, and a vocabulary of letters.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Compiler, LexiformError, Vocabulary } from "lexiform";

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
export const read = (path) => readFileSync(ROOT + path, "utf8");

export const demoVocabulary = Vocabulary.fromTokenizerJson(read("models/demo/tokenizer.json"), { eos: [1] });
export const demo = new Compiler(demoVocabulary);

const letters = ["<end>", ...Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at)), "\n"];
export const vocabulary = new Vocabulary(letters, { eos: [0] });
export const small = new Compiler(vocabulary, { primed: false });

/** The tokens of a text in the vocabulary of letters. */
export const spelled = (text) => [...text].map((letter) => letters.indexOf(letter));

/** Returns a check for `assert.throws`: an error of the package with a problem of this kind that says this. */
export const says = (kind, message) => (error) => {
  if (!(error instanceof LexiformError)) return false;
  const isTold = (problem) => problem.kind === kind && (message === undefined || problem.message.includes(message));
  if (error.problems.some(isTold)) return true;
  throw new Error(`no problem is "${kind}: ${message}": ${JSON.stringify(error.problems)}`);
};
