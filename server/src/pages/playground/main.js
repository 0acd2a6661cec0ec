// The playground: the form on one side, the run that is shown on the other, and the link that holds the form.

import {Run} from "../answer/run.js";
import {View} from "../answer/view.js";
import {ask, keyButton, mayAsk} from "../api.js";
import {copyBy, make} from "../dom.js";
import {Editor} from "./editor.js";
import {DEFAULTS, EXAMPLES} from "./examples.js";
import {Form} from "./form.js";
import {History} from "./history.js";
import {fromHash, toHash} from "./link.js";
import {Lint} from "./lint.js";
import {Projections} from "./projections.js";
import {PromptView} from "./prompt.js";
import {freed} from "./request.js";
import {snippet} from "./snippets.js";
import {Tabs} from "./tabs.js";

const at = id => document.getElementById(id);

const SAVED_AFTER = 300;

const editor = new Editor(at("editor"));
const view = new View();
const form = new Form(editor, changed);
const lint = new Lint(editor, {verdict: at("verdict"), list: at("problems"), sample: at("sample")}, () => ({...form.state, model}));
const earlier = new History(at("earlier"), showAgain);
const asked = () => model && [form.state, model];
const reading = new PromptView({fold: at("reading"), text: at("prompt-text"), note: at("prompt-note"), writers: at("writers")}, asked);
const projectionParts = {panel: at("projections"), options: at("projection-options"), toward: at("toward"), note: at("projections-note"), list: at("projections-list")};
const projections = new Projections(editor, projectionParts, asked);
const tabs = new Tabs(at("tabs"), () => projections.now());
let model = "", running = null, saving = 0;

const say = text => { at("announcement").textContent = text; };

/** What follows from every change of the form. */
function changed(isSource) {
  if (isSource) {
    lint.later();
    projections.later();
  }
  showCode();
  reading.later();
  view.compare(form.state);
  clearTimeout(saving);
  saving = setTimeout(save, SAVED_AFTER);
}

async function save() {
  clearTimeout(saving);
  const hash = await toHash(form.state);
  if (hash === location.hash) return;
  try {
    history.replaceState(null, "", hash);
  } catch {
    // The browser takes no address as long as this source; then there is no link.
  }
}

function showCode() {
  const language = at("languages").querySelector(":checked").value;
  if (at("code").open) at("snippet").textContent = snippet(language, form.state, model || "MODEL");
}

/** Writes, or stops what is being written. */
async function write() {
  if (running) return running.abort();
  const mine = running = new AbortController();
  mayAsk();
  at("write").textContent = "Stop";
  // What is said of the request before is not true of this one, however long its answer takes.
  view.forgive();
  form.label();
  say("");
  earlier.hold(true);
  try {
    await named();
    if (!model) return;
    if (!(await lint.allows())) {
      lint.goToFirst();
      return say("The source has problems; nothing was sent.");
    }
    if (!mine.signal.aborted) await runs(form.state, mine.signal);
  } finally {
    running = null;
    earlier.hold(false);
    at("write").textContent = "Write";
  }
}

async function runs(state, signal) {
  const run = new Run(state, model);
  const free = state.compare && state.kind !== "none" ? new Run(freed(state), model) : null;
  const all = free ? [run, free] : [run];
  tabs.show("answer");
  view.begin(all);
  earlier.leave();
  // Where the answer stands below the form, it would come unseen.
  if (at("results").offsetLeft === at("request").offsetLeft) at("answer").scrollIntoView();
  say("Writing.");
  const written = await Promise.allSettled(all.map(one => one.write(signal, (sample, tokens) => view.heard(sample, tokens))));
  const failed = written.find(({status}) => status === "rejected")?.reason;
  view.done();
  if (run.samples.some(sample => sample.text)) earlier.add(all);
  if (failed) {
    const stopped = failed.name === "AbortError";
    if (!stopped) view.fail(failed.message);
    const refused = failed.param?.match(/^monitors\[(\d+)\]/);
    if (refused) form.goToMonitor(Number(refused[1]));
    return say(stopped ? "Stopped." : "");
  }
  say(`Done: ${run.samples.map(sample => sample.text).join("; ").slice(0, 300)}`);
  if (free) await view.judge(run, free);
}

/** Shows runs of before again. */
async function showAgain(all) {
  tabs.show("answer");
  view.begin(all);
  for (const sample of all.flatMap(run => run.samples)) view.heard(sample, sample.tokens);
  view.done();
  view.compare(form.state);
  if (all.length > 1) await view.judge(...all);
}

/** The names of the models, asked for once; the first is chosen. */
async function named() {
  if (model) return;
  try {
    const names = (await ask("/v1/models")).data.map(({id}) => id);
    model = names[0];
    at("model").replaceChildren(names.length > 1 ? choiceOf(names) : `model ${model}`);
    showCode();
  } catch (error) {
    view.begin([]);
    view.fail(error.message);
  }
}

/** A list to choose the model from. */
function choiceOf(names) {
  const choice = make("select", {"aria-label": "Model"}, names.map(name => make("option", {value: name, textContent: name})));
  choice.onchange = () => {
    model = choice.value;
    lint.now();
    showCode();
    reading.later();
    projections.now();
  };
  return choice;
}

async function begin() {
  form.fill((await fromHash(location.hash)) ?? {...DEFAULTS, ...EXAMPLES[0]});
  await named();
  lint.now();
  showCode();
  reading.later();
  projections.now();
}

at("request").addEventListener("submit", event => {
  event.preventDefault();
  write();
});
document.addEventListener("keydown", event => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  if (!running) at("request").requestSubmit();
});
at("code").addEventListener("toggle", showCode);
at("languages").addEventListener("change", showCode);
at("copy-prompt").onclick = event => copyBy(event.target, at("prompt-text").textContent);
at("copy-code").onclick = event => copyBy(event.target, at("snippet").textContent);
at("share").onclick = async event => {
  await save();
  copyBy(event.target, location.href);
};
window.addEventListener("hashchange", begin);
keyButton(at("forget"));
begin();
