// What is wrong with the source, while it is typed: the service's own words, once, in the order of the text, each a way to its
// place.

import {ask} from "../api.js";
import {make} from "../dom.js";
import {Lines, Places} from "./places.js";
import {constraintOf} from "./request.js";

const PAUSE = 250;
/** A sample text is asked for of sources up to this length: the answer to that question grows with the source. */
const SAMPLED = 20_000;
/** The longest sample text that is shown. */
const SHOWN = 300;

const WORDS = {
  exact: "Compiles, and is enforced exactly.",
  closed: "Compiles. Of some objects, only the keys that are listed are written:",
  narrower: "Compiles. Some of what it allows is never written:",
  partial: "Compiles. Some of what it says has no effect:",
};

export class Lint {
  /** `parts` are the elements that are filled, `state` gives what the form holds, with the model. */
  constructor(editor, parts, state) {
    Object.assign(this, {editor, parts, state, problems: [], round: 0, timer: 0, running: Promise.resolve(), isDirty: false});
    editor.area.addEventListener("input", () => this.later());
  }

  /** The source has changed: what is said of it, or is being found out, is of another one, until it rests and is looked at. */
  later() {
    this.isDirty = true;
    this.round++;
    this.parts.verdict.setAttribute("aria-busy", "true");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.now(), PAUSE);
  }

  now() {
    clearTimeout(this.timer);
    this.isDirty = false;
    this.parts.verdict.setAttribute("aria-busy", "true");
    this.running = this.look(++this.round);
    return this.running;
  }

  /** Whether the source of this moment may be sent. What is typed while it is looked at is looked at too. */
  async allows() {
    let looked;
    do await (looked = this.isDirty ? this.now() : this.running); while (this.isDirty || looked !== this.running);
    return !this.problems.some(problem => problem.isError);
  }

  /** Brings the user to the first error. */
  goToFirst() {
    const first = this.problems.find(problem => problem.isError);
    if (first?.place) this.editor.go(...first.place);
    else this.editor.area.focus();
  }

  async look(round) {
    const state = this.state();
    let told;
    try {
      told = await findings(state);
    } catch (error) {
      told = {diagnostics: [{path: "", severity: "error", message: error.message}]};
    }
    if (round !== this.round) return;
    this.show(state, told);
    const sample = told.valid && state.source.length <= SAMPLED ? await sampleOf(state).catch(() => null) : null;
    if (round !== this.round) return;
    this.parts.sample.replaceChildren(...(sample === null ? [] : shown(sample)));
    this.parts.verdict.removeAttribute("aria-busy");
  }

  show(state, told) {
    const places = new Places(state.source, state.kind === "schema" || state.kind === "tools");
    const problem = one => ({...one, isError: one.severity === "error", place: places.of(one.path)});
    const order = one => [one.isError ? 0 : 1, one.place?.[0] ?? -1];
    this.problems = told.diagnostics.map(problem).sort((one, other) => {
      const [a, b] = [order(one), order(other)];
      return a[0] - b[0] || a[1] - b[1];
    });
    const errors = this.problems.filter(one => one.isError).length;
    const {verdict, list, sample} = this.parts;
    verdict.className = errors ? "bad" : told.valid ? "good" : "soft";
    verdict.textContent = errors ? `${errors === 1 ? "One problem" : `${errors} problems`}. A click leads to the place.`
      : told.valid ? WORDS[told.enforced] ?? "Compiles." : told.hint ?? "";
    const lines = new Lines(state.source);
    list.replaceChildren(...this.problems.map(one => this.item(lines, one)));
    sample.replaceChildren();
    const located = this.problems.filter(one => one.place);
    this.editor.mark(located.map(one => ({from: one.place[0], to: one.place[1], isError: one.isError})));
  }

  item(lines, problem) {
    const line = problem.place ? `line ${lines.of(problem.place[0])}` : "whole source";
    const path = /^(\/|#\/)/.test(problem.path) ? make("code", {textContent: problem.path}) : null;
    const button = make("button", {type: "button", className: problem.isError ? "bad" : ""},
      make("span", {className: "at", textContent: line}), make("span", {}, problem.message, path && " ", path));
    button.onclick = () => this.editor.go(...(problem.place ?? [0, 0]));
    return make("li", {}, button);
  }
}

const shown = sample => {
  const text = sample.length > SHOWN ? sample.slice(0, SHOWN) + "…" : sample;
  return ["Shortest text: ", make("code", {textContent: text === "" ? "(empty)" : text})];
};

/** The findings about a source, with their places in the source. */
async function findings(state) {
  if (state.kind === "none") return {valid: false, diagnostics: []};
  if (!state.source.trim()) {
    return {valid: false, diagnostics: [{path: "", severity: "error", message: "Nothing is written here yet. Write a constraint, or pick an example."}]};
  }
  return state.kind === "tools" ? findingsOfTools(state) : ask("/v1/grammars/lint", constraintOf(state));
}

/** The findings about each tool's parameters; their places lead through the list of tools. */
async function findingsOfTools({source, model}) {
  let tools;
  try {
    tools = JSON.parse(source);
  } catch (error) {
    // A list that is no JSON is no schema either, and the service says where and why.
    return ask("/v1/grammars/lint", constraintOf({kind: "schema", source, model}));
  }
  if (!Array.isArray(tools)) {
    return {valid: false, diagnostics: [{path: "", severity: "error", message: "The tools are a list: [{\"type\": \"function\", \"function\": {…}}]"}]};
  }
  const all = await Promise.all(tools.map(async (tool, index) => {
    const parameters = tool?.function?.parameters;
    if (parameters === undefined) return {valid: true, enforced: "exact", diagnostics: []};
    const told = await ask("/v1/grammars/lint", constraintOf({kind: "schema", source: JSON.stringify(parameters), model}));
    const within = path => `/${index}/function/parameters${path.replace(/^#/, "")}`;
    return {...told, diagnostics: told.diagnostics.map(one => ({...one, path: within(one.path)}))};
  }));
  const worst = ["partial", "narrower", "closed", "exact"].find(word => all.some(told => told.enforced === word));
  return {valid: all.every(told => told.valid), enforced: worst, diagnostics: all.flatMap(told => told.diagnostics)};
}

/** The shortest text that a source allows, if it is found. */
async function sampleOf(state) {
  if (state.kind === "tools" || state.kind === "none") return null;
  return (await ask("/v1/grammars/explain", constraintOf(state))).shortest;
}
