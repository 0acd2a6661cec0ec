// The page of the API: one section for each operation of openapi.json.

import {ask, key, keyButton, mayAsk, send} from "../api.js";
import {copyBy, make} from "../dom.js";
import {SchemaView} from "./schema_view.js";

const at = id => document.getElementById(id);

/** More of an answer than this is not shown. */
const SHOWN = 100_000;

const JSON_KIND = "application/json";

const idOf = (method, path) => `${method}-${path.replace(/[^a-z0-9]+/gi, "-").replace(/^-|-$/g, "")}`;

/** All operations, in the order of the document. */
function operationsOf(paths) {
  return Object.entries(paths).flatMap(([path, methods]) => Object.entries(methods)
    .filter(([method]) => ["get", "post", "put", "delete", "patch"].includes(method))
    .map(([method, operation]) => ({method, path, operation, id: idOf(method, path), tag: operation.tags?.[0] ?? "Other"})));
}

const badge = method => make("span", {className: `method ${method}`, textContent: method.toUpperCase()});

function section(one, schemas) {
  const {method, path, operation, id} = one;
  const title = make("h3", {id: `${id}-title`}, badge(method), make("code", {textContent: path}), make("span", {className: "summary", textContent: operation.summary ?? ""}),
    make("a", {className: "anchor", href: `#${id}`, textContent: "#", "aria-label": `Link to ${operation.summary ?? path}`}));
  const body = operation.requestBody?.content?.[JSON_KIND];
  const parts = [title];
  if (operation.description) parts.push(make("p", {textContent: operation.description}));
  if (operation.parameters?.length) parts.push(parameters(operation.parameters, schemas));
  if (body) parts.push(fold("Fields of the request", schemas.fields(body.schema)));
  parts.push(responses(operation.responses ?? {}, schemas), trial(one, body));
  return make("section", {className: "operation panel", id, "aria-labelledby": `${id}-title`}, ...parts);
}

function fold(title, content, isOpen = false) {
  return make("details", {className: "fold", open: isOpen}, make("summary", {textContent: title}), content);
}

function parameters(list, schemas) {
  const item = parameter => schemas.field(parameter.name, {description: parameter.description, ...schemas.resolved(parameter.schema)}, parameter.required);
  return make("div", {}, make("h4", {textContent: "Parameters"}), make("ul", {className: "fields"}, ...list.map(item)));
}

function responses(all, schemas) {
  const items = Object.entries(all).map(([status, response]) => {
    const content = response.content?.[JSON_KIND]?.schema;
    const kinds = Object.keys(response.content ?? {}).filter(kind => kind !== JSON_KIND);
    return make("li", {}, make("div", {className: "head"}, make("code", {className: "name", textContent: status === "default" ? "error" : status}),
      make("span", {textContent: response.description ?? ""}), kinds.length ? make("span", {className: "soft", textContent: `also ${kinds.join(", ")}`}) : null),
    content ? fold("Fields of the answer", schemas.fields(content)) : null);
  });
  return fold("Responses", make("ul", {className: "fields"}, ...items));
}

/** The form that sends the operation. */
function trial({method, path, operation, id}, body) {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(found => found[1]);
  const inputs = names.map(name => make("input", {id: `${id}-${name}`, required: true, autocomplete: "off"}));
  const text = body && make("textarea", {id: `${id}-body`, rows: 10, spellcheck: false, value: JSON.stringify(body.example ?? {}, null, 2)});
  const status = make("p", {className: "status", role: "status"});
  const output = make("pre", {className: "code", hidden: true, tabIndex: 0, "aria-label": "Answer"});
  const sendButton = make("button", {className: "primary", textContent: "Send"});
  const curl = make("button", {type: "button", textContent: "Copy as curl"});
  const target = () => names.reduce((all, name, index) => all.replace(`{${name}}`, encodeURIComponent(inputs[index].value)), path);
  curl.onclick = () => copyBy(curl, asCurl(method, target(), text?.value));
  const form = make("form", {className: "trial"},
    ...names.flatMap((name, index) => [make("label", {"for": `${id}-${name}`, textContent: name}), inputs[index]]),
    ...(text ? [make("label", {"for": `${id}-body`, textContent: "Body"}), text] : []),
    make("div", {className: "buttons"}, sendButton, curl), status, output);
  form.onsubmit = event => {
    event.preventDefault();
    tryOut({method, target: target(), text: text?.value}, {status, output, sendButton});
  };
  return fold(text ? "An example, to be sent" : "Send it", form, Boolean(text));
}

async function tryOut({method, target, text}, {status, output, sendButton}) {
  mayAsk();
  sendButton.disabled = true;
  status.className = "status soft";
  status.textContent = "Waiting …";
  output.hidden = true;
  const begun = performance.now();
  try {
    const answer = await send(target, text === undefined ? {method: method.toUpperCase()}
      : {method: method.toUpperCase(), body: text, headers: {"content-type": JSON_KIND}});
    const raw = await answer.text();
    status.className = `status ${answer.ok ? "good" : "bad"}`;
    status.textContent = `${answer.status} ${answer.statusText} · ${Math.round(performance.now() - begun)} ms · ${answer.headers.get("content-type") ?? ""}`;
    output.textContent = pretty(raw, answer.headers.get("content-type") ?? "");
    output.hidden = raw === "";
  } catch (error) {
    status.className = "status bad";
    status.textContent = error.message;
  } finally {
    sendButton.disabled = false;
  }
}

function pretty(raw, kind) {
  let text = raw;
  if (kind.startsWith(JSON_KIND)) {
    try { text = JSON.stringify(JSON.parse(raw), null, 2); } catch { /* It is shown as it came. */ }
  }
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}\n… ${(text.length - SHOWN).toLocaleString("en")} characters more` : text;
}

function asCurl(method, target, text) {
  const parts = [`curl -s -X ${method.toUpperCase()} '${location.origin}${target}'`];
  if (key.get()) parts.push(`-H "authorization: Bearer $LEXIFORM_API_KEY"`);
  if (text !== undefined) parts.push(`-H 'content-type: ${JSON_KIND}'`, `-d '${text.replace(/'/g, "'\\''")}'`);
  return parts.join(" \\\n  ");
}

/** Shows only what holds all words that are looked for. */
function search(operations) {
  const words = at("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const {method, path, operation, id} of operations) {
    const text = `${method} ${path} ${operation.summary ?? ""} ${operation.description ?? ""}`.toLowerCase();
    const fits = words.every(word => text.includes(word));
    found += fits;
    at(id).hidden = !fits;
    at(`link-${id}`).hidden = !fits;
  }
  for (const group of document.querySelectorAll("[data-tag]")) {
    group.hidden = ![...group.querySelectorAll("[data-operation], .operation")].some(element => !element.hidden);
  }
  at("nothing").hidden = found > 0;
}

async function begin() {
  let told;
  try {
    told = await ask("/openapi.json");
  } catch (error) {
    at("failure").textContent = error.message;
    at("failure").hidden = false;
    return;
  }
  const schemas = new SchemaView(told), operations = operationsOf(told.paths), tags = [...new Set(operations.map(one => one.tag))];
  at("title").textContent = `${told.info.title} API`;
  at("description").textContent = told.info.description ?? "";
  at("server").replaceChildren("Version ", told.info.version, ", served at ", make("code", {textContent: location.origin}));
  for (const tag of tags) {
    const own = operations.filter(one => one.tag === tag), list = tag.toLowerCase();
    at("links").append(make("div", {"data-tag": tag}, make("p", {className: "tag", id: `links-${list}`, textContent: tag}), make("ul", {"aria-labelledby": `links-${list}`},
      ...own.map(one => make("li", {id: `link-${one.id}`, "data-operation": one.id}, make("a", {href: `#${one.id}`}, badge(one.method), make("span", {textContent: one.path})))))));
    at("operations").append(make("div", {className: "group", "data-tag": tag}, make("h2", {textContent: tag}), ...own.map(one => section(one, schemas))));
  }
  at("search").oninput = () => search(operations);
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

keyButton(at("forget"));
begin();
