// Answers of models: thoughts, content, calls of tools and the values of their arguments, read while they are written.

import { known, named, text } from "./arguments.js";
import { callError, calling } from "./errors.js";
import native from "./native.js";
import { schemaText } from "./schema.js";

/** Reads the events of one answer. */
export class AnswerReader {
  #native;

  constructor(format, options) {
    const { tools = [], thought = "possible", jsonContent = false } = known(options, ["tools", "thought", "jsonContent"]);
    const pairs = tools.map((tool) => {
      const { name, parameters = {} } = tool.function ?? tool;
      if (typeof name !== "string") throw callError(`a tool has a name, not ${named(name)}`);
      return [name, JSON.parse(schemaText(parameters))];
    });
    this.#native = calling(() => new native.AnswerReader(text(format, "the format"), JSON.stringify(pairs), thought, jsonContent));
  }

  push(more) {
    return JSON.parse(calling(() => this.#native.push(text(more, "the text"))));
  }

  finish() {
    return JSON.parse(calling(() => this.#native.finish()));
  }
}
