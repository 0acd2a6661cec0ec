// The prompt of the form's request as the model reads it: its chat template with everything that the service tells it.

import {ask} from "../api.js";
import {promptBodyOf} from "./request.js";

const LATER = 500;

export class PromptView {
  /** `asked()` gives the state and the model, or nothing while there is no model. */
  constructor({fold, text, note}, asked) {
    Object.assign(this, {fold, text, note, asked, timer: 0, turn: 0});
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
      if (turn === this.turn) this.show(told.prompt, `${told.count} tokens, with what the service adds; special tokens by their names.`);
    } catch (error) {
      if (turn === this.turn) this.show("", error.message);
    }
  }

  show(text, note) {
    this.text.textContent = text;
    this.text.hidden = !text;
    this.note.textContent = note;
  }
}
