// The last runs of this page, to look at again. They are gone with the page: the link holds a form, and a form writes anew.

import {make} from "../dom.js";

const KEPT = 10;
const SHOWN = 60;

export class History {
  /** `select` lists the runs; `show(runs)` is called with those that are chosen. */
  constructor(select, show) {
    Object.assign(this, {select, kept: [], next: 1});
    select.onchange = () => show(this.kept.find(({number}) => String(number) === select.value).runs);
  }

  /** None of them is shown any more. */
  leave() { this.select.selectedIndex = -1; }

  /** Whether none can be chosen: as long as something is written, that is what is shown. */
  hold(isHeld) { this.select.disabled = isHeld; }

  /** Keeps the runs of one request, as the newest. */
  add(runs) {
    this.kept.unshift({number: this.next++, runs});
    this.kept.length = Math.min(this.kept.length, KEPT);
    this.select.replaceChildren(...this.kept.map(({number, runs: [run]}) => make("option", {value: number, textContent: `${number}: ${titleOf(run)}`})));
    this.select.hidden = this.kept.length < 2;
  }
}

function titleOf(run) {
  const text = run.samples[0].text.replace(/\s+/g, " ").trim() || "(nothing)";
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}
