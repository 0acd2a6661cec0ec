// Values of the AI SDK that a schema validates, from answers that are repaired first: of any model, also of services
// that enforce no schema.

import { generateObject, generateText, Output, wrapLanguageModel } from "ai";
import { repairMiddleware, repairText, schema } from "lexiform/ai";
import { z } from "zod";

export const Person = z.object({ name: z.string(), age: z.int().min(0) });

/** Returns a person by `generateObject`, which repairs a text that does not parse or does not match. */
export async function personByObject(model, prompt) {
  const { object } = await generateObject({
    model,
    prompt,
    schema: schema(Person),
    repairText: repairText(Person),
  });
  return object;
}

/** Returns a person by `generateText` with an output, whose answers a middleware repairs. */
export async function personByText(model, prompt) {
  const { output } = await generateText({
    model: wrapLanguageModel({ model, middleware: repairMiddleware() }),
    prompt,
    output: Output.object({ schema: schema(Person) }),
  });
  return output;
}
