// Compilers: from sources to grammars for one vocabulary.

import { apart, asJson, bytes, json, known, named, text } from "./arguments.js";
import { abortable, callError, calling } from "./errors.js";
import { Grammar } from "./grammar.js";
import native from "./native.js";
import { schemaText } from "./schema.js";
import { nativeVocabulary } from "./vocabulary.js";

/** How the text of each kind of source is read. */
const SOURCES = {
  jsonSchema: schemaText,
  regex: regexText,
  ebnf: (source) => text(source, "a grammar"),
  grammar: (source) => text(source, "a grammar"),
  structuralTag: (source) => (typeof source === "string" ? text(source, "a structural tag") : json(source, "a structural tag")),
  choice: choiceText,
  any: anyText,
};

/** Compiles grammars for one vocabulary. */
export class Compiler {
  #native;

  constructor(vocabulary, options) {
    const { primed = true, limits } = known(options, ["primed", "limits"]);
    const inner = nativeVocabulary(vocabulary);
    this.#native = calling(() => new native.Compiler(inner, primed, limits && json(limits, "a limit")));
  }

  compile(source, options) {
    const [rest, { prefix }] = apart(options, ["prefix"]);
    const [kind, written] = sourceText(source);
    return new Grammar(calling(() => this.#native.compile(kind, written, compileOptions(rest), prefixBytes(prefix))));
  }

  async compileAsync(source, options) {
    const [rest, { prefix, signal }] = apart(options, ["prefix", "signal"]);
    const [kind, written] = sourceText(source);
    const [named, before] = [compileOptions(rest), prefixBytes(prefix)];
    return new Grammar(
      await abortable(signal, (abort) => this.#native.compileAsync(kind, written, named, before, abort)),
    );
  }
}

/** Returns the options of a compile as JSON, with the schemas in `documents` as texts. */
export function compileOptions({ documents, ...options }) {
  if (documents === undefined) return asJson(options);
  const texts = Object.entries(documents).map(([uri, document]) => [uri, schemaText(document)]);
  return asJson({ ...options, documents: Object.fromEntries(texts) });
}

function sourceText(source) {
  const kinds = source !== null && typeof source === "object" ? Object.keys(source) : [];
  const [kind] = kinds;
  if (kinds.length !== 1 || !Object.hasOwn(SOURCES, kind)) {
    const given = kinds.length === 0 ? named(source) : `an object with ${kinds.map((name) => `\`${name}\``).join(", ")}`;
    throw callError(`a source is an object with one of ${Object.keys(SOURCES).join(", ")}, not ${given}`);
  }
  return [kind, SOURCES[kind](source[kind])];
}

function prefixBytes(prefix) {
  return prefix === undefined ? undefined : bytes(prefix, "`prefix`");
}

/** The flags of an expression that do not change which whole texts it matches, as it is read here. */
const FLAGS = /^[dgu]*$/;

function regexText(source) {
  if (!(source instanceof RegExp)) return text(source, "a regular expression");
  if (FLAGS.test(source.flags)) return text(source.source, "a regular expression");
  throw callError(`the flags of ${source} are not supported; there may be none but d, g and u`);
}

function choiceText(texts) {
  if (!Array.isArray(texts)) throw callError(`a choice is an array of strings, not ${named(texts)}`);
  return JSON.stringify(texts.map((one) => text(one, "a text of a choice")));
}

function anyText(source) {
  if (source !== true) throw callError(`\`any\` is true, not ${named(source)}`);
  return "";
}
