import assert from "node:assert/strict";
import { test } from "node:test";
import { AnswerReader } from "lexiform";
import { z } from "zod";
import { says } from "./demo.js";

const tools = [{ type: "function", function: { name: "weather", parameters: z.object({ city: z.string() }) } }];

test("calls are read from every cut, with places in the text", () => {
  const text = '😀 é<tool_call>{"name":"weather","arguments":{"city":"Zürich 😀"}}</tool_call>';
  const read = (...pieces) => {
    const reader = new AnswerReader("qwen_3", { tools });
    return [...pieces.flatMap((piece) => reader.push(piece)), ...reader.finish()];
  };
  const values = (events) => events.filter(({ kind }) => kind !== "content" && kind !== "arguments");
  const whole = values(read(text));
  const shown = whole.map(({ kind, pointer, span }) => [kind, pointer, text.slice(...span)]);
  assert.deepEqual(shown, [
    ["call", undefined, "weather"],
    ["opened", "", "{"],
    ["key", "/city", '"city"'],
    ["value", "/city", '"Zürich 😀"'],
    ["call_end", undefined, "}</tool_call>"],
  ]);
  let cut = 0;
  for (const letter of text) {
    cut += letter.length;
    assert.deepEqual(values(read(text.slice(0, cut), text.slice(cut))), whole);
  }
});

test("arguments that are not JSON become JSON, and mistakes are said", () => {
  const reader = new AnswerReader("qwen_3_coder", { tools, thought: "none" });
  const events = reader.push("<function=weather><parameter=city>3</parameter></function>");
  assert.equal(events.find(({ kind }) => kind === "arguments").text, '{"city":"3"}');
  assert.throws(() => new AnswerReader("qwen"), says("unsupported", "qwen_3"));
  assert.throws(() => new AnswerReader("any", { thought: "maybe" }), says("call", "thought"));
  assert.throws(() => new AnswerReader("any", { tools: [{}] }), says("call", "name"));
  assert.throws(() => reader.push(3), says("call", "text"));
});
