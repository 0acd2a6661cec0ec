// The official client for Node and the Vercel AI SDK, unchanged, against a served model.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, Output, streamText, tool } from "ai";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const url = `${process.env.LEXIFORM_URL ?? "http://127.0.0.1:8000"}/v1`;
const client = new OpenAI({ baseURL: url, apiKey: "none", maxRetries: 0 });
const model = (await client.models.list()).data[0].id;
const text = "Maria Keller is 34 years old and lives in Vienna.";
const Person = z.object({ name: z.string(), age: z.int(), city: z.string() });
const messages = [{ role: "user", content: text }];

function check(person) {
  Person.parse(person);
  if (model === "demo") assert.deepEqual(person, { name: "Maria Keller", age: 34, city: "Vienna" });
}

test("openai: a chat is parsed", async () => {
  const format = zodResponseFormat(Person, "person");
  const completion = await client.chat.completions.parse({ model, messages, temperature: 0, response_format: format });
  check(completion.choices[0].message.parsed);
});

test("openai: a response is parsed", async () => {
  const format = zodTextFormat(Person, "person");
  const response = await client.responses.parse({ model, input: text, temperature: 0, text: { format } });
  check(response.output_parsed);
});

test("openai: streams add up", async () => {
  const stream = client.chat.completions.stream({ model, messages, temperature: 0, response_format: zodResponseFormat(Person, "person") });
  check((await stream.finalChatCompletion()).choices[0].message.parsed);
  const events = client.responses.stream({ model, input: text, temperature: 0, text: { format: zodTextFormat(Person, "person") } });
  check((await events.finalResponse()).output_parsed);
});

test("openai: a decision is made", async () => {
  const body = { model, input: text, questions: [{ type: "predicate", instructions: "Is this about a person?" }] };
  const decision = await client.post("/decisions", { body });
  assert.ok(decision.answers[0].probability >= 0 && decision.answers[0].probability <= 1);
});

test("openai: errors have their class and their code", async () => {
  const wrong = client.chat.completions.create({ model: "other", messages });
  await assert.rejects(wrong, (error) => error instanceof OpenAI.NotFoundError && error.code === "model_not_found");
  const cut = client.chat.completions.create({ model, messages, temperature: 9 });
  await assert.rejects(cut, (error) => error instanceof OpenAI.BadRequestError && error.requestID !== null);
});

const provider = createOpenAI({ baseURL: url, apiKey: "none" });

for (const [name, served] of [["responses", provider(model)], ["chat", provider.chat(model)]]) {
  test(`ai: an object over ${name}`, async () => {
    const { output } = await generateText({ model: served, prompt: text, temperature: 0, maxRetries: 0, output: Output.object({ schema: Person }) });
    check(output);
  });

  test(`ai: a streamed object over ${name}`, async () => {
    const result = streamText({ model: served, prompt: text, temperature: 0, maxRetries: 0, output: Output.object({ schema: Person }) });
    let last;
    for await (const partial of result.partialOutputStream) last = partial;
    check(last);
  });

  test(`ai: a demanded tool over ${name}`, async () => {
    const save = tool({ description: "saves a person", inputSchema: Person });
    const { toolCalls } = await generateText({ model: served, prompt: text, temperature: 0, maxRetries: 0, tools: { save }, toolChoice: "required" });
    assert.equal(toolCalls[0].toolName, "save");
    check(toolCalls[0].input);
  });
}
