// An answer of a model of transformers.js that obeys a schema.
//
//   import { AutoModelForCausalLM, AutoTokenizer } from "@huggingface/transformers";
//   const model = await AutoModelForCausalLM.from_pretrained(ID, { dtype: "q4" });
//   const tokenizer = await AutoTokenizer.from_pretrained(ID);
//   const tokenizerJson = await (await fetch(`https://huggingface.co/${ID}/resolve/main/tokenizer.json`)).text();
//   console.log(await answer({ model, tokenizer, tokenizerJson }, Person, "Maria Keller is 34 years old."));

import { Compiler, validate, Vocabulary } from "lexiform";
import { logitsProcessor } from "lexiform/transformers";

const MAX_NEW_TOKENS = 60;

/** Returns the value that a model writes under a schema. */
export async function answer({ model, tokenizer, tokenizerJson }, schema, prompt) {
  const { eos_token_id: eos, vocab_size: rows } = model.config;
  const vocabulary = Vocabulary.fromTokenizerJson(tokenizerJson, { eos: [eos].flat(), rows });
  const grammar = new Compiler(vocabulary).compile({ jsonSchema: schema });
  const inputs = await tokenizer(prompt);
  const output = await model.generate({
    ...inputs,
    max_new_tokens: MAX_NEW_TOKENS,
    logits_processor: [logitsProcessor(grammar, { maxNewTokens: MAX_NEW_TOKENS })],
  });
  const [written] = output.slice(null, [inputs.input_ids.dims.at(-1), null]).tolist();
  return validate(schema, tokenizer.decode(written, { skip_special_tokens: true })).value;
}
