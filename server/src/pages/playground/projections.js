// The source as each provider takes it: what its schema becomes there, how the two relate, and what is lost at which place.

import {request} from "../api.js";
import {copyBy, make} from "../dom.js";
import {indented, Lines, Places, sliceOf} from "./places.js";
import {projectBodyOf} from "./request.js";

const LATER = 500;
/** The most entries of a list that are shown at once. */
const SHOWN = 20;

const NOT_HERE = "Schemas and the parameters of tools are projected. Choose one of them as the constraint.";

export class Projections {
  /** `parts` are the elements that are filled; `asked()` gives the state and the model, or nothing while there is no model. */
  constructor(editor, parts, asked) {
    Object.assign(this, {editor, parts, asked, timer: 0, turn: 0, told: null});
    parts.options.addEventListener("change", event => (event.target.name === "target" ? this.choose() : this.now()));
  }

  get isShown() { return !this.parts.panel.hidden; }

  /** The source has changed: what is shown is of another one, until it rests and is asked about. */
  later() {
    clearTimeout(this.timer);
    this.turn++;
    if (!this.isShown) return;
    this.parts.note.setAttribute("aria-busy", "true");
    this.timer = setTimeout(() => this.now(), LATER);
  }

  async now() {
    clearTimeout(this.timer);
    const asked = this.asked();
    if (!this.isShown || !asked) return this.editor.also([]);
    const [state, model] = asked, turn = ++this.turn;
    const {note} = this.parts;
    note.setAttribute("aria-busy", "true");
    try {
      const told = await this.ask(state, model);
      if (turn === this.turn) this.show(state, told);
    } catch (error) {
      if (turn === this.turn) this.fail(state, error);
    }
    if (turn === this.turn) note.removeAttribute("aria-busy");
  }

  /** Asks the service; its answer as text too, in which numbers and keys stand as they were written. */
  async ask(state, model) {
    if (state.kind !== "schema" && state.kind !== "tools") throw new Error(NOT_HERE);
    // A source that is no JSON would make the whole body none; what is wrong with it is told below the source.
    try { JSON.parse(state.source); } catch { throw new Error("The source is no JSON yet."); }
    const text = await (await request("/v1/project", projectBodyOf(state, this.parts.toward.value, model))).text();
    return {text, projections: JSON.parse(text).projections};
  }

  fail(state, error) {
    this.told = null;
    this.say(error.message, error.diagnostics?.length ? "bad" : "soft");
    const places = new Places(state.source, true), lines = new Lines(state.source);
    const within = one => `${pointerOf(one.param)}${one.path}`;
    const at = one => places.of(within(one))?.[0] ?? -1;
    const problems = [...(error.diagnostics ?? [])].sort((one, other) => at(one) - at(other));
    const items = problems.map(one => this.item(places, lines, within(one), one.message, "bad"));
    this.parts.list.replaceChildren(...(items.length ? [make("ul", {className: "places"}, items)] : []));
    this.editor.also([]);
  }

  say(text, mood) {
    this.parts.note.textContent = text;
    this.parts.note.className = `hint ${mood}`;
  }

  show(state, told) {
    this.told = {...told, source: state.source};
    const whole = told.projections.filter(one => one.schemas.every(schema => schema.taken)).length;
    this.say(`${whole} of ${told.projections.length} take this as it is. A click on a loss leads to its place.`, "soft");
    this.choose();
  }

  /** Shows the targets that are chosen. */
  choose() {
    if (!this.told) return;
    const chosen = new Set([...this.parts.options.querySelectorAll("[name=target]:checked")].map(box => box.value));
    const {source, text, projections} = this.told;
    const places = new Places(source, true), lines = new Lines(source);
    const shown = [...projections.entries()].filter(([, one]) => chosen.has(one.profile));
    const marks = [];
    const cards = shown.map(([at, one]) => this.card(one, sliceOf(text, `/projections/${at}/document`), {places, lines, marks}));
    this.parts.list.replaceChildren(...cards);
    this.editor.also(marks);
  }

  /** What one target takes. `raw` is the text of what is written for it. */
  card(projection, raw, where) {
    const title = make("h3", {textContent: projection.profile, id: `target-${projection.profile}`});
    const written = raw && raw !== "null" ? indented(raw) : "";
    const copy = make("button", {type: "button", className: "quiet", textContent: "Copy", "aria-label": `Copy for ${projection.profile}`});
    copy.onclick = () => copyBy(copy, written);
    const parts = projection.schemas.map(schema => this.schema(schema, projection.schemas.length > 1, where));
    const code = make("pre", {className: "code", tabIndex: 0, textContent: written, role: "group", "aria-label": `Written for ${projection.profile}`});
    return make("section", {className: "card target", "aria-labelledby": title.id},
      make("div", {className: "line"}, title, written ? copy : null), parts, written ? code : null);
  }

  /** What became of one schema: its relation, what is lost, what is written in another shape, what the target refuses. */
  schema(schema, isNamed, where) {
    const [words, mood] = relationOf(schema);
    const list = (entries, total, name, item) => {
      if (!total) return null;
      const more = total > entries.length || entries.length > SHOWN ? ` (${Math.min(entries.length, SHOWN)} of ${total} shown)` : "";
      return make("details", {className: "told"}, make("summary", {textContent: `${name}: ${total}${more}`}),
        make("ul", {className: "places"}, entries.slice(0, SHOWN).map(item)));
    };
    const at = pointer => schema.pointer + pointer;
    const begin = loss => where.places.of(at(loss.pointer))?.[0] ?? -1;
    const losses = [...(schema.losses ?? [])].sort((one, other) => begin(one) - begin(other));
    for (const loss of losses) {
      const place = where.places.of(at(loss.pointer));
      if (place) where.marks.push({from: place[0], to: place[1], isError: false});
    }
    const place = (pointer, text, className) => this.item(where.places, where.lines, at(pointer), text, className);
    const lost = losses.slice(0, SHOWN).map(loss => place(loss.pointer, `${loss.effect}: ${loss.message}`, "warn"));
    const problems = (schema.problems ?? []).slice(0, SHOWN).map(one => place(one.path, one.message, "bad"));
    const refused = schema.taken || schema.problems ? [] : schema.refused;
    return make("div", {className: "schema"},
      make("p", {className: "relation"}, isNamed ? make("code", {textContent: schema.name}) : null, isNamed ? " " : "",
        make("span", {className: mood, textContent: words})),
      lost.length || problems.length ? make("ul", {className: "places"}, problems, lost) : null,
      list(schema.recodings ?? [], schema.counts.recodings, "Written in another shape", one => place(one.pointer, one.message, "")),
      list(refused, refused.length ? schema.counts.refused : 0, "Not taken as it is", one => place(one.path, one.message, "")));
  }

  /** A line that leads to a place of the source. */
  item(places, lines, pointer, text, className) {
    const found = places.of(pointer);
    const button = make("button", {type: "button", className},
      make("span", {className: "at", textContent: found ? `line ${lines.of(found[0])}` : "whole source"}), make("span", {textContent: text}));
    button.onclick = () => this.editor.go(...(found ?? [0, 0]));
    return make("li", {}, button);
  }
}

/** The pointer into the source of a field of the request: `tools[0].parameters` is `/0/parameters`. */
const pointerOf = param => (param ?? "").replace(/^(schema|tools)/, "").replace(/\[(\d+)\]/g, "/$1").replaceAll(".", "/");

/** How what the target takes relates to the schema, and how good that is. */
function relationOf(schema) {
  if (schema.problems) return ["cannot be written for this target", "bad"];
  if (schema.taken) return ["taken as it is", "good"];
  const names = {equal: "equal", wider: "wider: answers have to be validated", narrower: "narrower: some values cannot be answered",
    neither: "wider in some places, narrower in others"};
  const {proven, tested} = schema;
  const how = proven ? "proven"
    : !tested ? "neither proven nor tested"
    : tested.contradictions.length ? `contradicted: ${tested.contradictions[0]}` : `tested on ${tested.values} values and ${tested.answers} answers`;
  const mood = tested?.contradictions.length ? "bad" : schema.relation === "equal" ? "good" : "warn";
  return [`${names[schema.relation]} (${how})`, mood];
}
