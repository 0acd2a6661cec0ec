// The tokens of a text, to be looked at one by one: a list with one tab stop, in which arrow keys lead from token to token.

import {make} from "../dom.js";

const ORIGINS = {sampled: "drawn", drafted: "drafted", forced: "forced", given: "given"};

const INVISIBLE = {" ": "space", "\n": "line break", "\t": "tab", "\r": "carriage return", "": "nothing"};

/** What a token is called where its text cannot be seen. */
export const spoken = text => INVISIBLE[text] ?? (/^\s+$/.test(text) ? "blanks" : text);

/** How a token came about, in the words of the legend. */
export const originOf = token => ORIGINS[token.origin] ?? token.origin;

export class TokenList {
  /** `chosen(place)` is called when the user comes to a token. */
  constructor(label, chosen) {
    this.chosen = chosen;
    this.count = 0;
    this.place = null;
    this.element = make("div", {className: "tokens", role: "listbox", "aria-label": label, "aria-orientation": "horizontal", "aria-busy": "true", tabIndex: 0});
    this.element.addEventListener("keydown", event => this.pressed(event));
    this.element.addEventListener("click", event => {
      const option = event.target.closest("[role=option]");
      if (option) this.go(Number(option.dataset.place));
    });
    this.element.addEventListener("focus", () => this.count && this.go(this.place ?? 0));
  }

  add(token) {
    const text = token.text.replace(/\n/g, "⏎\n");
    const option = make("span", {role: "option", className: `${token.origin}${token.steered ? " steered" : ""}`, textContent: text, tabIndex: -1,
      "aria-selected": "false", "aria-label": `${spoken(token.text)}, ${originOf(token)}${token.steered ? ", steered" : ""}`,
      "data-place": this.count});
    this.element.append(option);
    this.count++;
  }

  /** Nothing more comes. */
  rest() { this.element.removeAttribute("aria-busy"); }

  option(place) { return this.element.children[place]; }

  /** Comes to a token. */
  go(place) {
    this.mark(place);
    this.option(place).focus({preventScroll: false});
    this.chosen(place);
  }

  /** Shows which token is looked at. */
  mark(place) {
    if (this.place !== null) {
      this.option(this.place).setAttribute("aria-selected", "false");
      this.option(this.place).tabIndex = -1;
    }
    this.place = place;
    // The list itself is the tab stop as long as no token is.
    this.element.tabIndex = place === null ? 0 : -1;
    if (place === null) return;
    this.option(place).setAttribute("aria-selected", "true");
    this.option(place).tabIndex = 0;
  }

  pressed(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.count) return;
    const place = this.place ?? 0, last = this.count - 1;
    const target = {ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: last, ArrowDown: this.beside(place, 1), ArrowUp: this.beside(place, -1)}[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.go(Math.min(last, Math.max(0, target)));
  }

  /** The token above or below this one, where the text is broken into lines. */
  beside(place, direction) {
    const here = this.option(place).getClientRects()[0];
    let best = place, nearest = Infinity, line = null;
    for (let at = place + direction; at >= 0 && at < this.count; at += direction) {
      const there = this.option(at).getClientRects()[0];
      if (Math.abs(there.top - here.top) < 3) continue;
      line ??= there.top;
      if (Math.abs(there.top - line) > 3) break;
      const distance = Math.abs(there.left - here.left);
      if (distance < nearest) [best, nearest] = [at, distance];
    }
    return best;
  }
}
