// Vocabularies: the tokens of a model as bytes.

import { bytes, known, named, text, textOrBytes, tokens } from "./arguments.js";
import { callError, calling } from "./errors.js";
import native from "./native.js";

let nativeOf;

/** The tokens of a model as bytes. */
export class Vocabulary {
  #native;

  static {
    nativeOf = (vocabulary) => (vocabulary instanceof Vocabulary ? vocabulary.#native : undefined);
  }

  constructor(given, options) {
    if (given instanceof native.Vocabulary) {
      this.#native = given;
      return;
    }
    if (!Array.isArray(given)) throw callError(`the tokens must be an array, not ${named(given)}`);
    const { eos, kinds } = known(options, ["eos", "kinds"]);
    const parts = given.map((token) => bytes(token, "a token"));
    const lengths = Uint32Array.from(parts, (part) => part.length);
    this.#native = calling(() => new native.Vocabulary(Buffer.concat(parts), lengths, ends(eos), kinds));
  }

  static fromTokenizerJson(json, options) {
    const { eos, rows } = known(options, ["eos", "rows"]);
    const read = textOrBytes(json, "the tokenizer.json");
    return new Vocabulary(calling(() => native.Vocabulary.fromTokenizerJson(read, ends(eos), rows)));
  }

  get length() {
    return this.#native.length;
  }

  get words() {
    return Math.ceil(this.#native.length / 32);
  }

  get eos() {
    return this.#native.eos;
  }

  bytes(token) {
    return calling(() => Buffer.from(this.#native.bytes(token)));
  }

  kind(token) {
    return calling(() => this.#native.kind(token));
  }

  special(name) {
    return calling(() => this.#native.special(text(name, "a name")));
  }

  heal(prompt) {
    const { kept, removed } = calling(() => this.#native.heal(tokens(prompt, "a prompt")));
    return { kept, removed: Buffer.from(removed) };
  }
}

/** Returns the native part of a vocabulary. */
export function nativeVocabulary(vocabulary) {
  const found = nativeOf(vocabulary);
  if (found === undefined) throw callError(`a Vocabulary is needed, not ${named(vocabulary)}`);
  return found;
}

function ends(eos) {
  if (eos === undefined) throw callError("`eos` names the tokens that end a sequence, such as `eos: [2]`");
  return tokens(eos, "`eos`");
}
