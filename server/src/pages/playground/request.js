// From what the form holds to what the service is asked: the body of a request, and the constraint alone.
//
// A source that is JSON goes into the body as it was written, so that no number and no order of keys is changed on the way.

/** Stands for the source in a body until that is written. */
const MARK = "@source of the constraint@";

/** The field of a request that holds a constraint of this kind. */
function field(kind, source) {
  switch (kind) {
    case "schema": return {response_format: {type: "json_schema", json_schema: {name: "answer", schema: source}}};
    case "regex": return {structured_outputs: {regex: source}};
    case "ebnf": return {structured_outputs: {grammar: source}};
    default: return {};
  }
}

/** The constraint as the routes that look at constraints take it. A schema is sent as a text, so that one that is no JSON is told of. */
export const constraintOf = ({kind, source, model}) => ({...field(kind, source), ...(model && {model})});

/** The fields of a request that only this service knows; official clients send them as `extra_body`. */
const OWN = ["structured_outputs", "monitors", "law", "search", "field_confidence", "schema_in_prompt"];

/** What is said of the monitors: what they are, or why none are sent. */
export const MONITORED = {
  hint: "Further constraints, one a line, at most 8: a regular expression, the id of a registered grammar, or an object as in response_format. They are asked about each token beside the constraint.",
  none: "Monitors stand beside a constraint of the whole text, under the laws local, smc and sir; none are sent now.",
};

/** Whether a request of this state may have monitors. */
export const takesMonitors = ({kind, law, search}) =>
  ["schema", "regex", "ebnf"].includes(kind) && search === "none" && ["local", "smc", "sir"].includes(law);

/** A line of the field: an object as it is written, an identity, or else a regular expression. */
function monitor(line) {
  if (/^gr_[0-9a-f]+$/.test(line)) return line;
  try {
    const value = JSON.parse(line);
    if (value !== null && typeof value === "object") return value;
  } catch { /* Then it is no JSON. */ }
  return {type: "regex", pattern: line};
}

/** The monitors of a state, as a request has them. */
export const monitorsOf = state => (takesMonitors(state) ? state.monitors.split("\n").map(line => line.trim()).filter(Boolean).map(monitor) : []);

/** The fields of a search, which has no law, and no temperature unless it draws. Its width is even, and room for all samples. */
function searched({search, samples, temperature}) {
  if (search === "cntp") return {search, temperature: temperature || 1};
  if (search === "k_best") return {search, temperature: 0};
  return {search: {kind: search, width: Math.max(4, samples + samples % 2)}, temperature: 0};
}

/** What the model is told of a constraint in words, as the service would tell it. */
const WORDS = {
  schema: "Answer with JSON that obeys this JSON Schema:",
  regex: "Answer with a text that matches this regular expression:",
  ebnf: "Answer with a text of this grammar:",
  tools: "You can call these tools:",
};

/** Whether both texts of a comparison are told of the constraint: so they differ by what it enforces, and by nothing else. */
const isTold = ({compare, kind}) => compare && kind in WORDS;

/** The messages of this state. */
const messagesOf = ({prompt, told}) => [...(told ? [{role: "system", content: told}] : []), {role: "user", content: prompt}];

/** The request of this state as an object, in which `MARK` stands for a JSON source. */
export function objectOf(state, model) {
  const body = {model, messages: messagesOf(state), temperature: state.temperature,
    max_tokens: state.length, seed: state.seed};
  if (state.samples > 1) body.n = state.samples;
  if (state.kind === "tools") Object.assign(body, {tools: MARK, tool_choice: state.choice});
  else Object.assign(body, field(state.kind, state.kind === "schema" ? MARK : state.source));
  if (isTold(state) && state.kind !== "tools") body.schema_in_prompt = "always";
  const monitors = monitorsOf(state);
  if (monitors.length) body.monitors = monitors;
  if (state.search !== "none") Object.assign(body, searched(state));
  else if (state.law !== "local") body.law = state.law;
  if (state.confidence) body.field_confidence = true;
  return body;
}

/** An object as JSON text, with the source as it was written where `MARK` stands. */
export function written(object, state, indent) {
  const text = JSON.stringify(object, null, indent);
  const place = text.indexOf(JSON.stringify(MARK));
  if (place < 0) return text;
  const before = text.slice(0, place), line = before.slice(before.lastIndexOf("\n") + 1);
  const margin = indent ? line.match(/^ */)[0] : "";
  const source = state.source.trim().replace(/\n/g, "\n" + margin);
  return before + source + text.slice(place + JSON.stringify(MARK).length);
}

/** The body that asks for the prompt of this state as the model reads it. */
export const promptBodyOf = (state, model) => written(objectOf(state, model), state);

/** The body that asks what the source of this state becomes for each target. */
export const projectBodyOf = (state, toward, model) => written({[state.kind]: MARK, toward, ...(model && {model})}, state);

/** The body of the request that the page sends: streamed, and with the details of each token. */
export function bodyOf(state, model) {
  const more = {stream: true, stream_options: {include_usage: true}, token_details: {top: 8, places: true, drafts: true}};
  return written({...objectOf(state, model), ...more}, state);
}

/** The same request without any constraint, of which the model is told all the same. */
export const freed = state => ({...state, kind: "none", law: "local", search: "none", confidence: false,
  told: isTold(state) ? `${WORDS[state.kind]}\n${state.source.trim()}` : ""});

/** What the official clients know of a request, and what only this service knows. */
export function parted(object) {
  const entries = Object.entries(object);
  return [entries.filter(([name]) => !OWN.includes(name)), entries.filter(([name]) => OWN.includes(name))].map(Object.fromEntries);
}
