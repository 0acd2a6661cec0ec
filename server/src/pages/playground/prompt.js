// The prompt of the form's request as the model reads it: its chat template with everything that the service tells it, and who
// wrote which part of it.

import {ask} from "../api.js";
import {make} from "../dom.js";
import {promptBodyOf} from "./request.js";

const LATER = 500;
/** The number of colours of parts of the request. */
const COLOURS = 4;

export class PromptView {
  /** `asked()` gives the state and the model, or nothing while there is no model. */
  constructor({fold, text, note, writers}, asked) {
    Object.assign(this, {fold, text, note, writers, asked, timer: 0, turn: 0});
    fold.addEventListener("toggle", () => this.now());
  }

  /** Shows it again when the user has stopped writing. */
  later() {
    clearTimeout(this.timer);
    if (this.fold.open) this.timer = setTimeout(() => this.now(), LATER);
  }

  async now() {
    clearTimeout(this.timer);
    const asked = this.asked();
    if (!this.fold.open || !asked) return;
    // An answer that comes after that to a later question is not shown.
    const turn = ++this.turn;
    try {
      const told = await ask("/tokenize", promptBodyOf(...asked));
      if (turn === this.turn) this.show(told, `${told.count} tokens, with what the service adds. Only the template writes control tokens.`);
    } catch (error) {
      if (turn === this.turn) this.show({prompt: ""}, error.message);
    }
  }

  /** Shows the prompt, each part in the colour of its writer. */
  show({prompt, spans}, note) {
    const colours = new Map();
    const colourOf = pointer => {
      if (!colours.has(pointer)) colours.set(pointer, `said-${colours.size % COLOURS}`);
      return colours.get(pointer);
    };
    const parts = (spans ?? []).flatMap(span => (span.from === "template" ? templateParts(span)
      : [make("span", {className: colourOf(span.pointer), title: writerOf(span.pointer), textContent: span.text})]));
    this.text.replaceChildren(...(parts.length ? parts : [prompt]));
    this.text.hidden = !prompt;
    this.note.textContent = note;
    const legend = (className, text) => make("li", {}, make("span", {className, textContent: text}));
    const said = [...colours].map(([pointer, colour]) => legend(colour, writerOf(pointer)));
    this.writers.hidden = !parts.length;
    this.writers.replaceChildren(...(parts.length ? [legend("template", "the template"), legend("control", "a control token"), ...said] : []));
  }
}

/** A part of the template's text, with its control tokens apart. */
function templateParts({text, start, control_tokens: controls}) {
  const letters = [...text], parts = [];
  let at = 0;
  const plain = to => { if (to > at) parts.push(make("span", {className: "template", textContent: letters.slice(at, to).join("")})); };
  for (const control of controls ?? []) {
    const [from, to] = [control.start - start, control.end - start];
    plain(from);
    parts.push(make("span", {className: "control", title: "a control token", textContent: letters.slice(from, to).join("")}));
    at = to;
  }
  plain(letters.length);
  return parts;
}

/** Who wrote what a pointer into the request leads to. */
const writerOf = pointer => (pointer ? `request ${pointer}` : "the service, from the request");
