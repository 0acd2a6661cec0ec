// The request of the form as code: for a shell, for Python and for JavaScript, with the official clients.

import {objectOf, parted, written} from "./request.js";

const KEY = "LEXIFORM_API_KEY";

function curl(state, model, origin) {
  const body = written(objectOf(state, model), state, 2).replace(/'/g, "'\\''");
  return `curl -s ${origin}/v1/chat/completions \\
  -H 'content-type: application/json' \\
  -H "authorization: Bearer $${KEY}" \\
  -d '${body}'`;
}

/** A JSON text as Python: the same but for three words, outside of strings. */
const asPython = text => text.replace(/"(?:[^"\\]|\\.)*"|\btrue\b|\bfalse\b|\bnull\b/g,
  part => ({true: "True", false: "False", null: "None"})[part] ?? part);

/** The fields of an object one a line, each written by `line`. */
function lines(object, state, line) {
  return Object.entries(object).map(([name, value]) => line(name, written(value, state, 4).replace(/\n/g, "\n    ")));
}

function python(state, model, origin) {
  const [known, own] = parted(objectOf(state, model));
  const fields = lines(known, state, (name, value) => `    ${name}=${asPython(value)},`);
  if (Object.keys(own).length) fields.push(...lines({own}, state, (_, value) => `    extra_body=${asPython(value)},`));
  return `import os

import openai

client = openai.OpenAI(base_url="${origin}/v1", api_key=os.environ.get("${KEY}", "none"))
answer = client.chat.completions.create(
${fields.join("\n")}
)
for choice in answer.choices:
    print(${state.kind === "tools" ? "choice.message.tool_calls or choice.message.content" : "choice.message.content"})`;
}

function javascript(state, model, origin) {
  const body = written(objectOf(state, model), state, 2).replace(/\n/g, "\n");
  return `import OpenAI from "openai";

const client = new OpenAI({baseURL: "${origin}/v1", apiKey: process.env.${KEY} ?? "none"});
const answer = await client.chat.completions.create(${body});
for (const choice of answer.choices) {
  console.log(${state.kind === "tools" ? "choice.message.tool_calls ?? choice.message.content" : "choice.message.content"});
}`;
}

const LANGUAGES = {curl, python, javascript};

/** The request of this state in a language, as somebody would send it to this server. */
export const snippet = (language, state, model) => LANGUAGES[language](state, model, location.origin);
