// The place for texts that were tried and not written: trees of drafts, attempts of the global law, particles.
//
// Drafts come with the tokens of a run, and are shown where one is looked at. Whoever has other such data hands it over as an event, and it is
// shown until a token is looked at or the next run begins:
//
//   document.dispatchEvent(new CustomEvent("lexiform:branches", {detail: {
//     kind: "drafts" | "attempts" | "particles",
//     title: "Drafts of …",          instead of the name of the kind, or left out
//     nodes: [{
//       id: 3,                       unique within the list
//       parent: 1 | null,            the node before, which stands earlier in the list; null for a beginning
//       text: "Vienna",              what this node adds
//       outcome: "kept" | "rejected" | "open",
//       probability: 0.81 | null,    of the text under the model, or the weight of a particle
//       note: "outside the schema"   anything more, or left out
//     }]
//   }}))

import {make} from "../dom.js";
import {percent} from "./detail.js";

const TITLES = {drafts: "Drafts", attempts: "Attempts", particles: "Particles"};

/** More nodes than this are counted, not shown. */
const SHOWN = 500;

/** Fills the element with a tree, or hides it where there is none. `title` and `body` are its parts. */
export function showBranches({section, title, body}, data) {
  section.hidden = !data?.nodes?.length;
  body.replaceChildren();
  if (section.hidden) return;
  title.textContent = data.title ?? TITLES[data.kind] ?? "Branches";
  const root = make("ul", {className: "branches"}), lists = new Map();
  for (const node of data.nodes.slice(0, SHOWN)) {
    const item = make("li", {className: node.outcome ?? "open"}, make("code", {textContent: node.text}),
      node.probability === null || node.probability === undefined ? null : make("span", {className: "soft", textContent: ` ${percent(node.probability)}`}),
      make("span", {className: "soft", textContent: ` ${[node.outcome, node.note].filter(Boolean).join(": ")}`}));
    lists.set(node.id, item);
    const parent = lists.get(node.parent);
    if (parent) (parent.querySelector(":scope > ul") ?? parent.appendChild(make("ul"))).append(item);
    else root.append(item);
  }
  body.append(root);
  if (data.nodes.length > SHOWN) body.append(make("p", {className: "soft", textContent: `and ${data.nodes.length - SHOWN} more`}));
}
