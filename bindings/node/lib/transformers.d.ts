/** Grammars for transformers.js, the package `@huggingface/transformers`. */

import type { Grammar, Tokens } from "lexiform";

/** Logits of some rows, as tensors of transformers.js are. */
export interface Logits {
  readonly [row: number]: { data: unknown };
}

/**
 * Returns a processor for the `logits_processor` of `generate`: it removes the tokens that a grammar does not allow
 * next. Make one for each call; the first tokens that it is called with are the prompt.
 */
export function logitsProcessor(
  grammar: Grammar,
  options?: {
    /** The most tokens that are generated: texts are complete within them. */
    maxNewTokens?: number;
    /** The tokens that end a sequence, instead of those of the vocabulary. */
    ends?: Tokens;
  },
): <T extends Logits>(inputIds: readonly (readonly bigint[])[], logits: T) => T;
