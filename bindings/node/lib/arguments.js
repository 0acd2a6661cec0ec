// Arguments in the forms that JavaScript programs use, as the native part takes them.

import { callError, LexiformError, problem } from "./errors.js";

/** Returns a text, which must be whole UTF-16: the other half of a surrogate pair would be replaced silently. */
export function text(value, what) {
  if (typeof value !== "string") throw callError(`${what} must be a string, not ${named(value)}`);
  if (value.isWellFormed()) return value;
  const at = value.search(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/);
  const lines = value.slice(0, at).split("\n");
  const [line, column] = [lines.length, [...lines.at(-1)].length + 1];
  const place = `line ${line}, column ${column}`;
  const message = `${what} has half of a surrogate pair`;
  throw new LexiformError([{ ...problem("syntax", message), place, line, column }]);
}

/** Returns a text or the text of bytes. */
export function textOrBytes(value, what) {
  if (!(value instanceof Uint8Array)) return text(value, what);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(value);
  } catch {
    throw new LexiformError([problem("syntax", `${what} is not UTF-8`)]);
  }
}

/** Returns bytes, those of a string among them. */
export function bytes(value, what) {
  if (value instanceof Uint8Array) return value;
  return new TextEncoder().encode(text(value, what));
}

/** Returns tokens as an array of numbers. */
export function tokens(value, what) {
  if (Array.isArray(value)) return value.some((token) => typeof token === "bigint") ? value.map(Number) : value;
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return Array.from(value, Number);
  throw callError(`${what} must be an array of tokens, not ${named(value)}`);
}

/** Returns an options object, in which only these names are known. */
export function known(options, names) {
  if (options === undefined) return {};
  plain(options);
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) throw callError(`unknown option \`${name}\` (options: ${names.join(", ")})`);
  }
  return options;
}

/** Returns an options object without some of its names, and these, each of which may be missing. */
export function apart(options, names) {
  if (options === undefined) return [{}, {}];
  const [rest, named] = [{}, {}];
  for (const [name, value] of Object.entries(plain(options))) {
    if (value !== undefined) (names.includes(name) ? named : rest)[name] = value;
  }
  return [rest, named];
}

/** Returns an options object as JSON, where its functions and values without JSON are mistakes. */
export function asJson(options) {
  return Object.keys(options).length === 0 ? undefined : json(options, "an option");
}

/** Returns a value as JSON. What JSON cannot express is an error, and not null or nothing. */
export function json(value, what) {
  const refuse = (key, part) => {
    const isLost =
      (typeof part === "number" && !Number.isFinite(part)) ||
      ["bigint", "function", "symbol"].includes(typeof part);
    if (isLost) throw callError(`${what} has no JSON: ${key === "" ? "it" : `\`${key}\``} is ${named(part)}`);
    return part;
  };
  let written;
  try {
    written = JSON.stringify(value, refuse);
  } catch (error) {
    throw error instanceof LexiformError ? error : callError(`${what} has no JSON: ${error.message}`);
  }
  if (written === undefined) throw callError(`${what} has no JSON: it is ${named(value)}`);
  return written;
}

function plain(options) {
  if (options === null || typeof options !== "object" || Array.isArray(options)) {
    throw callError(`the options must be an object, not ${named(options)}`);
  }
  return options;
}

/** Returns what a value is, for messages. */
export function named(value) {
  if (value === null) return "null";
  if (typeof value === "object") return Array.isArray(value) ? "an array" : "an object";
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  return typeof value === "undefined" ? "undefined" : `a ${typeof value}`;
}
