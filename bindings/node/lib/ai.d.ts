/** Validation and repair for the AI SDK, the package `ai`. */

import type { LanguageModelMiddleware } from "ai";
import type { RepairOptions, Schema, SchemaOptions } from "lexiform";

/** Returns a schema that the AI SDK takes, and whose values Lexiform validates. */
export { standardSchema as schema } from "lexiform";

/** Returns a function for `repairText` of `generateObject` and `streamObject`. */
export function repairText(
  schema: Schema,
  options?: SchemaOptions & RepairOptions,
): (given: { text: string }) => Promise<string | null>;

/**
 * Returns a middleware for `wrapLanguageModel`, which repairs the answers of `generateText` with an `output`: by the
 * schema that the call asks for, and only where it asks for one. Streams pass as they are.
 */
export function repairMiddleware(options?: SchemaOptions & RepairOptions): LanguageModelMiddleware;
