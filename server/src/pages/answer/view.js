// The answer on the page: the texts of a run token by token, what is told of each, and what is told of the token that is
// looked at. All of it is of the run that is shown, and gone when the next one begins.

import {ask} from "../api.js";
import {copyBy, make} from "../dom.js";
import {showBranches} from "./branches.js";
import {draw, point} from "./chart.js";
import {detailOf, percent} from "./detail.js";
import {branchesOf} from "./drafts.js";
import {constraintOf} from "../playground/request.js";
import {TokenList} from "./tokens.js";

const at = id => document.getElementById(id);

const ENDS = {stop: "complete", length: "cut by max tokens", tool_calls: "a tool is called"};

/** What max tokens did to a text: from which token on, or to its end alone. */
const steering = ({from_token: from}) => (from === undefined ? "ended by max tokens" : `steered by max tokens from token ${from + 1} on`);

export class View {
  constructor() {
    at("measure").onchange = () => this.drawChart();
    at("copy-answer").onclick = event => copyBy(event.target, this.shown.map(({sample}) => sample.text).join("\n\n"));
    document.addEventListener("lexiform:branches", event => {
      at("explorer").hidden = false;
      this.branches(event.detail);
    });
    this.shown = [];
    this.looked = null;
  }

  branches(data) {
    showBranches({section: at("branches"), title: at("branches-title"), body: at("branches-body")}, data);
  }

  /** Empties everything, for these runs: the constrained one, and the free one if there is one. */
  begin(runs) {
    this.shown = [];
    this.looked = null;
    this.forgive();
    at("empty").hidden = at("changed").hidden = true;
    at("explorer").hidden = at("fields").hidden = at("copy-answer").hidden = true;
    at("detail-body").replaceChildren();
    this.branches(null);
    const columns = runs.map(run => {
      const titles = run.state.kind === "none" ? ["Free text", "free"] : ["Constrained", "constrained"];
      const column = make("section", {className: "column", "aria-label": titles[0]});
      if (runs.length > 1) column.append(make("h3", {textContent: titles[0]}));
      column.append(...run.samples.map(sample => this.card(sample, titles[1], runs.length > 1 ? "h4" : "h3")));
      return column;
    });
    at("columns").replaceChildren(...columns);
    at("columns").className = runs.length > 1 ? "two" : "";
  }

  /** The place of a sample. */
  card(sample, what, heading) {
    const several = sample.run.samples.length > 1;
    const list = new TokenList(`Tokens, ${what}${several ? `, sample ${sample.index + 1}` : ""}`, place => this.look(entry, place));
    const note = make("p", {className: "note soft"}), verdict = make("p", {className: "verdict"});
    const calls = make("ul", {className: "calls", hidden: true});
    const formatted = make("details", {className: "formatted", hidden: true}, make("summary", {textContent: "Formatted"}), make("pre", {className: "code"}));
    const plain = make("p", {className: "plain", hidden: true});
    const entry = {sample, list, plain, note, verdict, calls, formatted};
    this.shown.push(entry);
    return make("article", {className: "card"}, several ? make(heading, {textContent: `Sample ${sample.index + 1}`}) : null, list.element, plain, calls, note, verdict, formatted);
  }

  /** Shows what has come. */
  heard(sample, tokens) {
    const entry = this.shown.find(one => one.sample === sample);
    for (const token of tokens) entry.list.add(token);
    if (sample.finish) this.ended(entry);
  }

  ended({sample, plain, note, calls, formatted}) {
    const {told, tokens, run} = sample;
    // A search tells of no tokens how they came about; its texts are shown as they are.
    plain.hidden = tokens.length > 0 || !sample.content;
    plain.textContent = plain.hidden ? "" : sample.content;
    const count = tokens.length ? [`${tokens.length} ${tokens.length === 1 ? "token" : "tokens"}`] : [];
    const parts = [...count, ENDS[sample.finish] ?? sample.finish];
    if (told.budget) parts.push(steering(told.budget));
    if (told.law) parts.push(`law ${told.law}`);
    if (run.monitors) parts.push(`allowed by ${run.monitors === 1 ? "the monitor" : `all ${run.monitors} monitors`}`);
    if (told.particles) parts.push(`${told.effective_size.toFixed(1)} of ${told.particles} particles effective`);
    if (told.steps) parts.push(`${told.moves} of ${told.steps} proposals accepted`);
    if (told.attempts > 1) parts.push(`${told.attempts} attempts`);
    if (told.drafted) parts.push(`${told.accepted} of ${told.drafted} drafted tokens kept`);
    if (run.enforced && run.enforced !== "exact") parts.push(`enforced: ${run.enforced}`);
    note.textContent = parts.join(" · ");
    const json = formattedJson(sample.calls.length ? sample.calls.map(call => call.input).join("") : sample.content);
    formatted.hidden = json === null;
    formatted.lastChild.textContent = json ?? "";
    calls.hidden = !sample.calls.length;
    calls.replaceChildren(...sample.calls.map(call => make("li", {}, make("code", {textContent: `${call.name}(${call.input})`}))));
  }

  /** What is told when a run is over, well or not. */
  done() {
    for (const {list} of this.shown) list.rest();
    if (!this.shown.some(({sample}) => sample.text)) return at("columns").replaceChildren();
    at("copy-answer").hidden = false;
    const told = this.shown.find(({sample}) => sample.tokens.length);
    at("explorer").hidden = !told;
    if (told && this.looked === null) this.rest(told);
    this.showFields();
  }

  /** Nothing is looked at yet: the chart is of this text, and the detail says how to go on. */
  rest(entry) {
    this.charted = entry;
    this.drawChart();
    at("detail-body").replaceChildren(make("p", {className: "soft", textContent: "Click a token, or press Tab and the arrow keys, to see what else might have come there."}));
  }

  /** Says whether the form still asks for what is shown. */
  compare(state) {
    const run = this.shown[0]?.sample.run;
    at("changed").hidden = !run || JSON.stringify(run.state) === JSON.stringify(state);
  }

  fail(message) {
    at("failure").textContent = message;
    at("failure").hidden = false;
    at("empty").hidden = true;
  }

  /** Says no longer what went wrong: something else is asked for. */
  forgive() {
    at("failure").hidden = true;
    at("failure").textContent = "";
  }

  /** Looks at a token. */
  look(entry, place) {
    for (const other of this.shown) if (other !== entry) other.list.mark(null);
    this.looked = {entry, place};
    at("explorer").hidden = false;
    at("detail-body").replaceChildren(...detailOf(entry.sample, place));
    this.branches(branchesOf(entry.sample, place));
    if (this.charted !== entry) {
      this.charted = entry;
      this.drawChart();
    }
    point(at("bars"), place);
  }

  drawChart() {
    const entry = this.charted;
    if (!entry) return;
    const several = this.shown.length > 1 ? ` of “${entry.list.element.getAttribute("aria-label").replace(/^Tokens, /, "")}”` : "";
    at("chart-title").textContent = `Each token${several}`;
    draw({svg: at("bars"), top: at("chart-top"), bottom: at("chart-bottom")}, at("measure").value, entry.sample.tokens, place => entry.list.go(place));
    if (this.looked?.entry === entry) point(at("bars"), this.looked.place);
  }

  showFields() {
    const rows = this.shown.flatMap(({sample}) => (sample.told?.fields ?? []).map(field => ({field, sample})));
    at("fields").hidden = !rows.length;
    const several = new Set(rows.map(({sample}) => sample)).size > 1;
    const head = [...(several ? ["Sample"] : []), "Field", "The model's probability", "Left by the constraint"].map(text => make("th", {scope: "col", textContent: text}));
    const line = ({field, sample}) => {
      const bar = make("span", {className: "bar own"});
      bar.style.width = `${100 * field.probability}%`;
      const path = `${field.call === undefined ? "" : `call ${field.call + 1} `}${field.path || "(whole)"}`;
      return make("tr", {}, several ? make("td", {textContent: sample.index + 1}) : null, make("th", {scope: "row"}, make("code", {textContent: path})),
        make("td", {}, make("span", {className: "cell"}, make("span", {className: "track", "aria-hidden": "true"}, bar), make("span", {textContent: percent(field.probability)}))),
        make("td", {textContent: percent(field.mass)}));
    };
    at("fields-body").replaceChildren(make("table", {className: "candidates"}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows.map(line))));
  }

  /** Says of each free text whether it obeys the constraint of the run beside it. */
  async judge(constrained, free) {
    if (!["schema", "regex", "ebnf"].includes(constrained.state.kind)) return;
    const texts = free.samples.map(sample => sample.content);
    const told = await ask("/v1/grammars/check", {...constraintOf({...constrained.state, model: constrained.model}), texts}).catch(() => null);
    for (const [index, result] of (told?.results ?? []).entries()) {
      const entry = this.shown.find(({sample}) => sample === free.samples[index]);
      if (!entry) continue;
      entry.verdict.className = `verdict ${result.valid ? "good" : "bad"}`;
      entry.verdict.textContent = result.valid ? "✓ This text happens to obey the constraint."
        : result.at >= new TextEncoder().encode(texts[index]).length ? "✗ This text does not obey: it ends too early."
        : `✗ This text does not obey: it leaves the constraint at byte ${result.at}.`;
    }
  }
}

/** An object or a list of JSON with a line for each value; null for other texts, which have no other form. */
function formattedJson(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" ? JSON.stringify(value, null, 2) : null;
  } catch {
    return null;
  }
}
