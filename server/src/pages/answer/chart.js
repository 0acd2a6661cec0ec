// A bar for each token of a text: how probable it was, how much was allowed, how long it took.

import {percent} from "./detail.js";

const SVG = "http://www.w3.org/2000/svg";

const MEASURES = {
  probability: {value: token => token.probability, most: () => 1, said: percent, top: "100 %", bottom: "0 %", of: "The model's probability of each token"},
  mass: {value: token => token.mass, most: () => 1, said: percent, top: "100 %", bottom: "0 %", of: "The probability that the model put on all allowed tokens"},
  allowed: {value: token => Math.log10(token.allowed + 1), most: values => Math.max(...values, 1), said: number => `${Math.round(10 ** number - 1).toLocaleString("en")} tokens`, of: "The number of tokens allowed, on a logarithmic scale",
    top: most => `${Math.round(10 ** most - 1).toLocaleString("en")} tokens`, bottom: "0"},
  micros: {value: token => token.micros / 1000, most: values => Math.max(...values, 0.001), said: number => `${Number(number.toPrecision(2))} ms`, of: "The time since the token before",
    top: most => `${Number(most.toPrecision(2))} ms`, bottom: "0"},
};

/** Draws the bars of some tokens. A click on one calls `chosen(place)`. */
export function draw({svg, top, bottom}, measure, tokens, chosen) {
  const {value, most, said, of, top: high, bottom: low} = MEASURES[measure];
  const values = tokens.map(value), greatest = most(values);
  svg.setAttribute("viewBox", `0 0 ${Math.max(tokens.length, 24)} 1`);
  svg.setAttribute("aria-label", `${of}: ${tokens.length} tokens.`);
  top.textContent = typeof high === "function" ? high(greatest) : high;
  bottom.textContent = low;
  svg.replaceChildren(...values.map((number, place) => {
    const group = document.createElementNS(SVG, "g");
    const height = Math.max(0.02, number / greatest);
    group.append(rect({x: place, width: 1, y: 0, height: 1, class: "column"}),
      rect({x: place + 0.1, width: 0.8, y: 1 - height, height, class: `value ${tokens[place].origin}`}));
    const title = document.createElementNS(SVG, "title");
    title.textContent = `${JSON.stringify(tokens[place].text)}: ${said(number)}`;
    group.append(title);
    group.onclick = () => chosen(place);
    return group;
  }));
}

/** Shows which bar is that of the token that is looked at. */
export function point(svg, place) {
  for (const [at, group] of [...svg.children].entries()) group.classList.toggle("chosen", at === place);
}

function rect(attributes) {
  const element = document.createElementNS(SVG, "rect");
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}
