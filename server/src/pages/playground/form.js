// The form of the request: what it holds, how it is filled, and what each kind of constraint is called.

import {make} from "../dom.js";
import {DEFAULTS, EXAMPLES, firstOf} from "./examples.js";
import {MONITORED, takesMonitors} from "./request.js";

const LABELS = {
  schema: ["Schema", "JSON Schema, 2020-12 and older drafts"],
  regex: ["Regular expression", "for the whole text"],
  ebnf: ["Grammar", "EBNF, GBNF, Lark, ABNF, pest …: the notation is recognised"],
  tools: ["Tools", "a list, as in chat completions"],
  none: ["", ""],
};

const NUMBERS = ["temperature", "length", "seed", "samples"];

const at = id => document.getElementById(id);

export class Form {
  /** `changed(isSource)` is called when the user changes something. */
  constructor(editor, changed) {
    this.editor = editor;
    this.changed = changed;
    /** What was written for the kinds that are not shown now. */
    this.kept = {};
    this.element = at("request");
    this.element.addEventListener("input", event => this.touched(event.target));
    const chips = EXAMPLES.map(example => {
      const button = make("button", {type: "button", className: "chip", textContent: example.name});
      button.onclick = () => {
        this.fill({...DEFAULTS, ...example});
        this.changed(true);
      };
      return button;
    });
    at("examples").append(...chips);
  }

  touched(target) {
    if (target.name === "language") return;
    if (target.name === "kind") return this.switchTo(target.value);
    this.label();
    this.changed(target === this.editor.area);
  }

  /** Another kind of constraint: with what was written for it before, or else an example. */
  switchTo(kind) {
    this.kept[this.kind] = this.editor.text;
    this.kind = kind;
    this.editor.text = this.kept[kind] ?? firstOf(kind).source ?? "";
    this.label();
    this.changed(true);
  }

  label() {
    const [name, hint] = LABELS[this.kind];
    at("source-label").textContent = name;
    at("source-hint").textContent = hint;
    at("source-part").hidden = this.kind === "none";
    at("choice-part").hidden = this.kind !== "tools";
    at("law-hint").hidden = at("law").value === "local" || at("search").value !== "none";
    at("search-hint").hidden = at("search").value === "none";
    at("law").disabled = at("search").value !== "none";
    this.labelMonitors();
  }

  /** Which monitors are sent: none where nothing could be asked about them. */
  labelMonitors() {
    const takes = takesMonitors(this.state);
    at("monitors").disabled = !takes;
    at("monitors").removeAttribute("aria-invalid");
    at("monitors-hint").textContent = takes ? MONITORED.hint : MONITORED.none;
  }

  /** Brings the user to a monitor that was refused, or that refused. */
  goToMonitor(number) {
    const lines = at("monitors").value.split("\n");
    const filled = [...lines.keys()].filter(line => lines[line].trim());
    if (filled[number] === undefined) return;
    const from = lines.slice(0, filled[number]).join("\n").length + (filled[number] ? 1 : 0);
    at("monitors").setAttribute("aria-invalid", "true");
    at("monitors").focus();
    at("monitors").setSelectionRange(from, from + lines[filled[number]].length);
  }

  fill({name: _, ...state}) {
    this.kept = {};
    this.kind = state.kind in LABELS ? state.kind : DEFAULTS.kind;
    this.element.elements.kind.value = this.kind;
    this.editor.text = state.source;
    for (const name of ["prompt", "monitors"]) at(name).value = state[name];
    for (const name of NUMBERS) at(name).value = state[name];
    for (const name of ["law", "search", "choice"]) {
      at(name).value = state[name];
      if (at(name).selectedIndex < 0) at(name).value = DEFAULTS[name];
    }
    for (const name of ["compare", "confidence"]) at(name).checked = state[name];
    this.label();
  }

  /** What the form holds. */
  get state() {
    const numbers = NUMBERS.map(name => [name, at(name).value === "" ? DEFAULTS[name] : Number(at(name).value)]);
    return {kind: this.kind, source: this.kind === "none" ? "" : this.editor.text, prompt: at("prompt").value, ...Object.fromEntries(numbers),
      law: at("law").value, search: at("search").value, choice: at("choice").value, monitors: at("monitors").value,
      compare: at("compare").checked, confidence: at("confidence").checked};
  }
}
