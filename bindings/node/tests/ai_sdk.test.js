import assert from "node:assert/strict";
import { test } from "node:test";
import { MockLanguageModelV4 } from "ai/test";
import { Person, personByObject, personByText } from "../examples/ai_sdk.js";

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A model that answers with this text. */
const says = (text) =>
  new MockLanguageModelV4({
    doGenerate: { content: [{ type: "text", text }], finishReason: { unified: "stop", raw: "stop" }, usage, warnings: [] },
  });

const ANSWERS = [
  '{"name": "Ada", "age": 36}',
  "Here you are:\n```json\n{'name': 'Ada', 'age': 36,}\n```",
  '{"age": 36, "name": "Ada", "more": [1, 2',
];

for (const [name, ask] of [["generateObject", personByObject], ["generateText", personByText]]) {
  test(`${name}: answers are repaired and validated`, async () => {
    for (const answer of ANSWERS) {
      const model = says(answer);
      const person = await ask(model, "Ada Lovelace was 36.");
      assert.deepEqual({ name: person.name, age: person.age }, { name: "Ada", age: 36 }, answer);
      // The service was asked for the schema, so that one that enforces schemas does.
      const { responseFormat } = model.doGenerateCalls[0];
      assert.deepEqual(responseFormat.schema.required, ["name", "age"]);
    }
  });
}

test("an answer without any value of the schema stays an error", async () => {
  const far = "x".repeat(400_000);
  const isOfTheAnswer = (error) => error.name === "AI_NoObjectGeneratedError" && error.text === far;
  await assert.rejects(personByObject(says(far), "?"), isOfTheAnswer);
  await assert.rejects(personByText(says(far), "?"), isOfTheAnswer);
});

test("zod still knows its own values", () => {
  assert.ok(Person.safeParse({ name: "Ada", age: 36 }).success);
});
