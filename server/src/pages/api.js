// The way of both pages to the server that they came from: requests with the key of this tab, errors, streams of events.

import {make} from "./dom.js";

const KEY = "lexiform-key";

/** An answer that is not a success, with what the server said about it. */
export class Refused extends Error {
  constructor(status, error) {
    super(error?.message ?? `The server answered ${status}.`);
    this.status = status;
    this.code = error?.code ?? null;
    this.param = error?.param ?? null;
    this.diagnostics = error?.lexiform?.diagnostics ?? [];
  }
}

/** The key that was given in this tab. It is kept until the tab is closed, and nowhere else. */
export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: text => (text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY)),
};

function headers(more = {}) {
  return key.get() ? {...more, authorization: `Bearer ${key.get()}`} : more;
}

/** A request with the key. Where the server wants one and has none, or another one, the user is asked, and it is sent again. */
export async function send(path, init = {}) {
  for (;;) {
    const answer = await fetch(path, {...init, headers: headers(init.headers)});
    if (answer.status !== 401 || !(await askForKey())) return answer;
  }
}

/** Sends this JSON text, or gets the path without one, and gives the answer. Throws `Refused`. */
export async function request(path, body, signal) {
  const init = body === undefined ? {signal} : {method: "POST", signal, body, headers: {"content-type": "application/json"}};
  const answer = await send(path, init);
  if (!answer.ok) {
    const told = await answer.json().catch(() => null);
    throw new Refused(answer.status, told?.error);
  }
  return answer;
}

/** The same, and reads the JSON of the answer. */
export async function ask(path, body, signal) {
  const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  return (await request(path, text, signal)).json();
}

/** The JSON of each event of a stream. An event that tells of an error is thrown. */
export async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    held += value;
    const frames = held.split("\n\n");
    held = frames.pop();
    for (const frame of frames) {
      const data = frame.split("\n").find(line => line.startsWith("data: {"));
      if (!data) continue;
      const event = JSON.parse(data.slice(6));
      if (event.error) throw new Refused(200, event.error);
      yield event;
    }
  }
}

let asking = null, wasDeclined = false;

/** Lets the user be asked for the key again who did not want to give one before. */
export function mayAsk() { wasDeclined = false; }

/** Asks for the key, once however many requests wait for it; whether there is one now. */
function askForKey() {
  if (wasDeclined) return Promise.resolve(false);
  asking ??= showKeyDialog().finally(() => { asking = null; });
  return asking;
}

function showKeyDialog() {
  const wrong = key.get() !== "";
  const input = make("input", {type: "password", id: "key-text", autocomplete: "off", required: true, value: ""});
  const cancel = make("button", {type: "button", textContent: "Cancel"});
  const form = make("form", {method: "dialog"},
    make("h2", {id: "key-title", textContent: "This server asks for an API key"}),
    make("p", {className: wrong ? "bad" : "soft", textContent: wrong
      ? "The key of this tab was refused. Enter another one."
      : "It is kept in this tab only and forgotten when the tab is closed."}),
    make("label", {"for": "key-text", textContent: "API key"}), input,
    make("div", {className: "row"}, cancel, make("button", {className: "primary", textContent: "Use this key"})));
  const dialog = make("dialog", {"aria-labelledby": "key-title"}, form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise(resolve => {
    cancel.onclick = () => dialog.close("");
    form.onsubmit = event => {
      event.preventDefault();
      key.set(input.value.trim());
      dialog.close("given");
    };
    dialog.onclose = () => {
      dialog.remove();
      wasDeclined = dialog.returnValue !== "given";
      document.dispatchEvent(new Event("lexiform:key"));
      resolve(dialog.returnValue === "given");
    };
  });
}

/** Makes a button show that there is a key in this tab, and forget it when it is pressed. */
export function keyButton(button) {
  const show = () => { button.hidden = !key.get(); };
  button.onclick = () => { key.set(""); show(); };
  document.addEventListener("lexiform:key", show);
  show();
}
