// What is told of one token of a run: where it stands in the constraint of that run, what the model wanted there, what the mask
// removed, and what was left to draw from.

import {make} from "../dom.js";
import {pointerAfter, schemaPlace} from "../playground/places.js";
import {originOf, spoken} from "./tokens.js";

const WHY = {
  sampled: "The model drew it among the tokens that were allowed.",
  drafted: "It was guessed ahead, by copying earlier text or by a small draft model, and the model's own draw confirmed it.",
  forced: "The constraint left one text here; it was written ahead, and the model's own draw confirmed it.",
  given: "It was given, not drawn.",
};

/** A probability for people: three figures, and never rounded to 0 or 100 %. */
export function percent(number) {
  if (number <= 0) return "0 %";
  const share = 100 * number;
  if (share >= 99.95) return number >= 1 ? "100 %" : "> 99.9 %";
  if (share < 0.001) return "< 0.001 %";
  return `${Number(share.toPrecision(3))} %`;
}

const count = number => number.toLocaleString("en");

const tokens = number => `${count(number)} ${number === 1 ? "token" : "tokens"}`;

/** A token's text with what cannot be seen spelled out. */
export const quotedText = text => /^\s*$/.test(text) ? `⟨${spoken(text)}⟩` : text.replace(/\n/g, "⏎").replace(/ /g, "␣");

const quoted = text => make("code", {className: "quoted", textContent: quotedText(text)});

function bar(number, name) {
  const inner = make("span", {className: `bar ${name}`});
  inner.style.width = `${Math.max(number > 0 ? 2 : 0, 100 * Math.min(1, number))}%`;
  return make("span", {className: "track", "aria-hidden": "true"}, inner);
}

function row(candidate, token) {
  const isDrawn = candidate.id === token.id;
  const left = candidate.share > 0 ? [bar(candidate.share, "left"), make("span", {textContent: percent(candidate.share)})]
    : [make("span", {className: "removed", textContent: candidate.allowed ? "cut off by a filter" : "removed"})];
  return make("tr", {className: `${isDrawn ? "drawn" : ""} ${candidate.allowed ? "" : "masked"}`},
    make("th", {scope: "row"}, quoted(candidate.text), isDrawn ? make("span", {className: "badge", textContent: "written"}) : null),
    make("td", {}, make("span", {className: "cell"}, bar(candidate.probability, "own"), make("span", {textContent: percent(candidate.probability)}))),
    make("td", {}, make("span", {className: "cell"}, ...left)));
}

function table(sample, token) {
  const free = sample.run.state.kind === "none";
  const head = ["Token", "The model", free ? "Drawn from" : "After the constraint"].map(text => make("th", {scope: "col", textContent: text}));
  return make("table", {className: "candidates"}, make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...(token.candidates ?? []).map(candidate => row(candidate, token))));
}

/** How much of the model's probability the constraint has left here. */
function effect(sample, token) {
  const {kind, temperature} = sample.run.state;
  if (kind === "none") return "Nothing constrains this text.";
  const left = `${tokens(token.allowed)} ${token.allowed === 1 ? "was" : "were"} allowed`;
  const warmth = temperature > 0 && temperature !== 1 ? `, at temperature ${temperature}` : "";
  const removed = 1 - token.mass;
  const asked = sample.run.monitors ? " Then the monitors were asked, and may have refused some of them." : "";
  if (removed < 5e-4) return `${left}, and the model wanted hardly anything else${warmth}.${asked}`;
  return `${left}. The constraint removed ${percent(removed)} of what the model wanted${warmth}.${asked}`;
}

/** Where a token begins: in the JSON value, in the schema, or in the rules of a grammar. */
function places(sample, place) {
  const {kind, source} = sample.run.state, token = sample.tokens[place];
  if (kind === "schema") {
    const pointer = pointerAfter(sample.before(place));
    let schema = "#";
    try { schema = schemaPlace(JSON.parse(source), pointer); } catch { /* The run of a source that is no JSON was refused. */ }
    return [["In the answer", pointer || "the whole value"], ["In the schema", schema]];
  }
  const chains = (token.places ?? []).map(rules => [...rules].reverse().join(" › "));
  if (kind === "ebnf" && chains.length) return [[chains.length === 1 ? "Rules" : "Rules (several readings)", chains.join("   ")]];
  if (kind === "tools" && chains.length) return [["In the parameters", chains.join("   ")]];
  return [];
}

/** The details of a token as elements. */
export function detailOf(sample, place) {
  const token = sample.tokens[place];
  const facts = [["Came about", `${originOf(token)}. ${WHY[token.origin] ?? ""}`], ["Effect", effect(sample, token)], ...places(sample, place)];
  if (token.steered) facts.push(["Budget", `Max tokens (${sample.run.state.length}) narrowed the choice here, so that the answer is complete in time.`]);
  return [
    make("p", {className: "which"}, quoted(token.text), ` token ${place + 1} of ${sample.tokens.length}`,
      sample.run.samples.length > 1 ? `, sample ${sample.index + 1}` : ""),
    make("dl", {}, ...facts.flatMap(([name, text]) => [make("dt", {textContent: name}), make("dd", {textContent: text})])),
    make("div", {className: "scroll", tabIndex: 0, role: "region", "aria-label": "What else might have come"}, table(sample, token)),
  ];
}
