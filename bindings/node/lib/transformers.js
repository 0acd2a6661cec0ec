// Grammars for transformers.js (the package `@huggingface/transformers`): a processor of logits.

import { known } from "./arguments.js";
import { callError } from "./errors.js";
import { Session } from "./grammar.js";

/**
 * Returns a processor for the `logits_processor` of `generate`: it removes the tokens that a grammar does not
 * allow next. Make one for each call. The first tokens that it is called with are the prompt.
 */
export function logitsProcessor(grammar, options) {
  const { maxNewTokens, ends } = known(options, ["maxNewTokens", "ends"]);
  const sequences = [];
  const mask = new Uint32Array(grammar.words);
  return (inputIds, logits) => {
    inputIds.forEach((ids, row) => {
      const sequence = (sequences[row] ??= { prompt: ids.length, session: new Session(grammar, { ends }) });
      const written = follow(sequence, ids);
      if (!sequence.session.terminated) {
        const budget = maxNewTokens === undefined ? undefined : Math.max(maxNewTokens - written, 0);
        sequence.session.fill(mask, { budget });
        clear(logits[row].data, mask);
      }
    });
    return logits;
  };
}

/** Brings a session to the tokens of its row, and returns how many were written. */
function follow({ prompt, session }, ids) {
  const taken = session.tokens;
  const written = ids.length - prompt;
  if (written < 0) throw callError("a processor is for one call of `generate`: make a new one for the next");
  let same = 0;
  while (same < Math.min(taken.length, written) && Number(ids[prompt + same]) === taken[same]) same += 1;
  session.rollback(taken.length - same);
  const fresh = Array.from(ids.slice(prompt + same), Number);
  // What follows the end of a row that is waiting for others is padding.
  const accepted = session.validate(fresh);
  session.accept(fresh.slice(0, accepted));
  if (accepted < fresh.length && !session.terminated) {
    throw callError(`token ${fresh[accepted]} may not come next; another processor or sampler ignored the mask`);
  }
  return written;
}

/** Removes the tokens that a mask does not allow. */
function clear(logits, mask) {
  for (let token = 0; token < logits.length; token += 1) {
    if (((mask[token >> 5] >>> (token & 31)) & 1) === 0) logits[token] = -Infinity;
  }
}
