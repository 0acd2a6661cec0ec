// Validation and repair for the AI SDK (the package `ai`), which takes `standardSchema` wherever it takes a schema.

import { LexiformError } from "./errors.js";
import { repairAsync, standardSchema } from "./judge.js";

export { standardSchema as schema };

/** Returns a function for `repairText` of `generateObject` and `streamObject`. */
export function repairText(schema, options) {
  return ({ text }) => repairedOrNull(schema, text, options);
}

/**
 * Returns a middleware for `wrapLanguageModel`, which repairs the answers of `generateText` with an `output`: by
 * the schema that the call asks for, and only where it asks for one. Streams pass as they are.
 */
export function repairMiddleware(options) {
  return {
    specificationVersion: "v4",
    wrapGenerate: async ({ doGenerate, params }) => {
      const answer = await doGenerate();
      const schema = params.responseFormat?.type === "json" ? params.responseFormat.schema : undefined;
      if (schema === undefined) return answer;
      const repaired = answer.content.map(async (part) =>
        part.type === "text" ? { ...part, text: (await repairedOrNull(schema, part.text, options)) ?? part.text } : part,
      );
      return { ...answer, content: await Promise.all(repaired) };
    },
  };
}

/** Returns the repaired text, or null if there is none within reach: then the text is not touched. */
async function repairedOrNull(schema, text, options) {
  try {
    return (await repairAsync(schema, text, options)).text;
  } catch (error) {
    if (error instanceof LexiformError) return null;
    throw error;
  }
}
