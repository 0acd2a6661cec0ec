// Exact token masks from JSON Schema, regular expressions and grammars.
//
//   Vocabulary ─► Compiler ─► Grammar ─► State, a value; Session, one sequence; fillBatch, many
//   schema and text ─► validate, repair
//   schema and profile ─► project, the schema of a provider ─► receive, the value of an answer

import native from "./native.js";

export { Compiler } from "./compiler.js";
export { LexiformError } from "./errors.js";
export { fillBatch, Grammar, Session, setThreads, State } from "./grammar.js";
export { repair, repairAsync, standardSchema, validate } from "./judge.js";
export { AnswerReader } from "./answers.js";
export { profiles, project, Projection, refusals } from "./project.js";
export { Vocabulary } from "./vocabulary.js";

export const version = native.version();
