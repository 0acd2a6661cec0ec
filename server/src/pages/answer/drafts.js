// The drafts of a pass as branches: what was guessed ahead, by whom, and what the model's draws made of it.

import {quotedText} from "./detail.js";

const DRAFTERS = {
  forced: "the constraint", copied: "copied from the text", predicted: "the prediction", model: "the draft model",
  recycled: "recycled tokens", trigram: "earlier trigrams", n_gram: "earlier n-grams", state: "this place of the constraint before",
  suffix: "earlier answers", corpus: "the operator's texts", samples: "the other samples", phrase: "a phrase",
};

const OUTCOMES = {kept: "kept", refused: "rejected", unjudged: "open"};

/** The tree of the pass that wrote this token, as `showBranches` takes it; null where nothing was drafted for it. */
export function branchesOf(sample, place) {
  const pass = sample.passOf(place);
  if (!pass) return null;
  const nodes = pass.drafts.map((draft, id) => ({id, parent: draft.parent, text: quotedText(draft.text), outcome: OUTCOMES[draft.fate],
    note: DRAFTERS[draft.drafter] ?? draft.drafter}));
  const kept = pass.drafts.filter(({fate}) => fate === "kept").length;
  const written = kept ? `${pass.first + 1} to ${pass.first + kept + 1}` : `${pass.first + 1}`;
  return {kind: "drafts", title: `Drafts of the pass that wrote token${kept ? "s" : ""} ${written}`, nodes};
}
