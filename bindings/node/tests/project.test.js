import assert from "node:assert/strict";
import { test } from "node:test";
import { profiles, project, refusals } from "lexiform";
import { z } from "zod";
import { says } from "./demo.js";

const Person = z.object({ name: z.string(), age: z.int().min(0).max(150).optional() });

test("a schema is projected, and answers are received as its values", () => {
  const projection = project(Person, "openai-strict");
  assert.deepEqual([projection.relation, projection.proven, projection.unchanged], ["equal", true, false]);
  assert.deepEqual(projection.schema.required, ["name", "age"]);
  assert.deepEqual(projection.restore({ name: "Ada", age: null }), { name: "Ada" });
  assert.deepEqual(projection.receive('{"name": "Ada", "age": 36}'), { name: "Ada", age: 36 });
  assert.throws(() => projection.receive("no JSON"), says("invalid", "Answer again"));
});

test("losses have places, and the side of losses can be chosen", () => {
  const schema = { type: "object", properties: { n: { type: "integer", minimum: 0 } } };
  const [loss] = project(schema, "anthropic").losses;
  assert.deepEqual([loss.pointer, loss.effect], ["/properties/n/minimum", "wider"]);
  assert.equal(project(schema, "anthropic", { toward: "narrower" }).relation, "narrower");
  assert.deepEqual(refusals(schema, "anthropic").map(({ pointer }) => pointer), ["/additionalProperties", "/properties/n/minimum"]);
});

test("every profile can be chosen, and mistakes are said", () => {
  for (const name of profiles()) assert.ok(project(Person, name).schema);
  assert.throws(() => project(Person, "open-ai"), says("call", "there is no profile"));
  assert.throws(() => project(Person, { name: "mine" }), says("invalid", "missing field `title`"));
  assert.throws(() => project(Person, "gemini", { toward: "wide" }), says("call", "toward"));
});
