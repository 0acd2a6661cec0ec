// Schemas in the forms that JavaScript programs use, as JSON texts.
//
//   text, object, boolean ── as they are
//   zod, and others of the Standard JSON Schema ── schema["~standard"].jsonSchema.input
//   toJSONSchema(), toJsonSchema() ── what the method returns
//   jsonSchema() of the AI SDK ── schema.jsonSchema

import { json, named, text } from "./arguments.js";
import { callError, LexiformError, problem } from "./errors.js";

const TARGET = { target: "draft-2020-12" };

/** Returns the JSON text of a schema. */
export function schemaText(schema) {
  if (typeof schema === "string") return text(schema, "a schema");
  if (typeof schema === "boolean") return String(schema);
  const isSchema = (typeof schema === "object" && schema !== null) || typeof schema === "function";
  if (!isSchema) throw notASchema(named(schema));
  return json(plainSchema(schema), "a schema");
}

/** Returns a schema as plain JSON Schema. */
export function plainSchema(schema) {
  const standard = schema["~standard"];
  if (standard?.jsonSchema !== undefined) return converted(() => standard.jsonSchema.input(TARGET));
  for (const method of ["toJSONSchema", "toJsonSchema"]) {
    if (typeof schema[method] === "function") return converted(() => schema[method]());
  }
  if (isOfAiSdk(schema)) return ofAiSdk(schema);
  if (standard !== undefined) {
    const message = `schemas of ${standard.vendor} do not say what they are in JSON Schema`;
    throw new LexiformError([problem("unsupported", message)]);
  }
  if (typeof schema === "function") throw notASchema("a function");
  if (Array.isArray(schema)) throw notASchema("an array");
  return schema;
}

/** Returns `true` for the schemas that `jsonSchema()` of the AI SDK makes, which have a symbol of its own. */
function isOfAiSdk(schema) {
  return "jsonSchema" in schema && schema[Symbol.for("vercel.ai.schema")] === true;
}

function ofAiSdk(schema) {
  const plain = schema.jsonSchema;
  if (typeof plain?.then === "function") {
    throw callError("this schema of the AI SDK is a promise; await its `jsonSchema` and pass what that is");
  }
  return plain;
}

/** Returns what a library makes of its own schema, or its reason why it cannot. */
function converted(convert) {
  try {
    return convert();
  } catch (error) {
    throw new LexiformError([problem("unsupported", String(error?.message ?? error))]);
  }
}

function notASchema(what) {
  return callError(
    `a schema is JSON Schema as a string, an object or a boolean, or a schema of a library that can say what it is in JSON Schema, not ${what}`,
  );
}
