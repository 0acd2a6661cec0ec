// Texts and values against a schema, without the tokens of a model: valid or not, where and why, and repaired.

import { apart, asJson, json, text, textOrBytes } from "./arguments.js";
import { compileOptions } from "./compiler.js";
import { abortable, calling, translated } from "./errors.js";
import native from "./native.js";
import { plainSchema, schemaText } from "./schema.js";

/** The options of a repair; all others are those of the schema. */
const COSTS = ["insert", "delete", "substitute", "nodes", "timeout"];

/** Judges a JSON text (a string or bytes), or any other value, by a schema. */
export function validate(schema, value, options) {
  const isText = typeof value === "string" || value instanceof Uint8Array;
  const written = isText ? textOrBytes(value, "the text") : json(value, "the value");
  const [rest] = apart(options, []);
  const [read, named] = [schemaText(schema), compileOptions(rest)];
  const problem = calling(() => JSON.parse(native.judgeText(read, named, written)));
  if (problem !== null) return { valid: false, problem };
  return { valid: true, value: isText ? JSON.parse(written) : value, problem: null };
}

/** Returns the valid JSON text that keeps the values of this one. */
export function repair(schema, written, options) {
  const { read, named, costs } = repairArguments(schema, apart(options, COSTS));
  return calling(() => JSON.parse(native.repairText(read, named, text(written, "the text"), costs)));
}

/** Returns that text from another thread. */
export async function repairAsync(schema, written, options) {
  const [most, { signal }] = apart(options, ["signal"]);
  const { read, named, costs } = repairArguments(schema, apart(most, COSTS));
  const given = text(written, "the text");
  return JSON.parse(await abortable(signal, (abort) => native.repairTextAsync(read, named, given, costs, abort)));
}

function repairArguments(schema, [rest, costs]) {
  return { read: schemaText(schema), named: compileOptions(rest), costs: asJson(costs) };
}

/** Returns a schema as one of the Standard Schema, which other libraries validate with. */
export function standardSchema(schema, options) {
  const read = schemaText(schema);
  const isPlain = typeof schema === "string" || typeof schema === "boolean";
  const plain = () => (isPlain ? JSON.parse(read) : plainSchema(schema));
  const judged = (value) => {
    const written = spelled(value);
    if (written.issues !== undefined) return written;
    const { valid, problem } = validate(read, written.text, options);
    return valid ? { value } : { issues: [{ message: problem.message, path: path(problem.pointer) }] };
  };
  return { "~standard": { version: 1, vendor: "lexiform", validate: judged, jsonSchema: { input: plain, output: plain } } };
}

/** Returns the JSON text of a value, or that it has none, as an issue. */
function spelled(value) {
  try {
    return { text: json(value, "the value") };
  } catch (error) {
    return { issues: [{ message: translated(error).message }] };
  }
}

/** Returns the keys of a JSON pointer. */
function path(pointer) {
  const keys = pointer.split("/").slice(1);
  return keys.map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
}
