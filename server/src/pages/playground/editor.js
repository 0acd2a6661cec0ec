// The editor of the source: line numbers, marks below what is wrong, and the way to a place.

import {make} from "../dom.js";
import {Lines} from "./places.js";

/** More text than this is shown without marks, so that typing stays quick. */
const MARKED = 100_000;

export class Editor {
  constructor(element) {
    this.area = element.querySelector("textarea");
    this.numbers = element.querySelector(".numbers");
    this.marks = element.querySelector(".marks");
    /** What is wrong with the source, and what else is told of its places. */
    this.own = [];
    this.others = [];
    this.places = [];
    this.area.addEventListener("scroll", () => this.scrolled());
    // A paste of many lines is many inputs to some browsers; they are shown once.
    this.area.addEventListener("input", () => {
      this.frame ??= requestAnimationFrame(() => this.clear());
    });
  }

  get text() { return this.area.value; }

  set text(text) {
    this.area.value = text;
    this.clear();
    this.area.scrollTop = this.area.scrollLeft = 0;
  }

  /** Marks these places of what is wrong, `{from, to, isError}`, and numbers the lines. */
  mark(places) {
    this.own = places;
    this.draw();
  }

  /** Marks these places besides, as long as the text stays as it is. */
  also(places) {
    this.others = places;
    this.draw();
  }

  clear() {
    this.others = [];
    this.mark([]);
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = undefined;
    this.places = [...this.own, ...this.others].sort((one, other) => one.from - other.from);
    const text = this.text, lines = new Lines(text);
    const wrong = new Set(this.places.filter(place => place.isError).map(place => lines.of(place.from)));
    const number = (_, line) => make("span", {className: wrong.has(line + 1) ? "bad" : "", textContent: `${line + 1}\n`});
    this.numbers.replaceChildren(...Array.from({length: lines.count}, number));
    this.marks.replaceChildren(...(text.length > MARKED ? [] : this.marked(text)));
    this.scrolled();
  }

  /** The text in pieces, those at a place as marks. Where places overlap, the first one is marked. */
  marked(text) {
    const pieces = [];
    let at = 0;
    for (const {from, to, isError} of this.places) {
      if (from < at) continue;
      // What is wrong may be a whole object; its first line says enough.
      const line = text.indexOf("\n", from), end = Math.max(from + 1, line < 0 ? to : Math.min(to, line));
      pieces.push(text.slice(at, from), make("mark", {className: isError ? "" : "note", textContent: text.slice(from, end) || " "}));
      at = end;
    }
    return [...pieces, text.slice(at), "\n"];
  }

  scrolled() {
    const {scrollTop, scrollLeft} = this.area;
    this.numbers.style.transform = `translateY(${-scrollTop}px)`;
    this.marks.style.transform = `translate(${-scrollLeft}px, ${-scrollTop}px)`;
  }

  /** Goes to a place and selects it. */
  go(from, to) {
    this.area.focus();
    this.area.setSelectionRange(from, Math.max(to, from));
    const height = parseFloat(getComputedStyle(this.area).lineHeight);
    const line = new Lines(this.text).of(from) - 1;
    if (line * height < this.area.scrollTop || (line + 2) * height > this.area.scrollTop + this.area.clientHeight) {
      this.area.scrollTop = Math.max(0, (line - 3) * height);
    }
  }
}
