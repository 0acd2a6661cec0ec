/**
 * Exact token masks from JSON Schema, regular expressions and grammars.
 *
 * A {@link Compiler} makes a {@link Grammar} for the tokens of a {@link Vocabulary}. A {@link State} says where one
 * sequence stands; a {@link Session} holds the tokens of one. {@link validate} and {@link repair} need a schema and a
 * text, and no tokens.
 */

/** The kind of a token. The bytes of a special token are its name. */
export type TokenKind = "text" | "special" | "mark" | "unused";

/** The kind of a problem: of a source, or "call" for wrong arguments and "internal" for mistakes of the package. */
export type ProblemKind =
  | "syntax"
  | "invalid"
  | "unsupported"
  | "narrowed"
  | "closed"
  | "reference"
  | "unsatisfiable"
  | "limit"
  | "cancelled"
  | "busy"
  | "call"
  | "internal";

/** One problem of a source or a call, with its place. */
export interface Problem {
  readonly kind: ProblemKind;
  readonly message: string;
  /** The place in words: "#/properties/age", "line 1, column 2", "rule item" or "source". */
  readonly place: string | null;
  /** The JSON pointer of the place, if it is one. */
  readonly pointer: string | null;
  /** The line of the place, from 1, if it is in a text. */
  readonly line: number | null;
  /** The column of the place in characters, from 1, if it is in a text. */
  readonly column: number | null;
}

/** The error of everything in this package. */
export class LexiformError extends Error {
  constructor(problems: readonly Problem[]);
  /** What is wrong; all problems of a source at once. */
  readonly problems: readonly Problem[];
}

/** A JSON Schema that a library can state: of zod and others of the Standard JSON Schema. */
export interface StandardJsonSchema<T = unknown> {
  readonly "~standard": {
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
    readonly jsonSchema: { readonly input: (options: { target: "draft-2020-12" }) => Record<string, unknown> };
  };
}

/** A schema: JSON Schema as a text, an object or a boolean, or an object of a library that can say what it is. */
export type Schema<T = unknown> =
  | string
  | boolean
  | StandardJsonSchema<T>
  | { toJSONSchema(): unknown }
  | { toJsonSchema(): unknown }
  | { readonly jsonSchema: unknown }
  | { readonly [keyword: string]: unknown };

/** The tokens of a model as bytes. */
export class Vocabulary {
  /** Creates the vocabulary of these tokens by id. `eos` are the tokens that end a sequence. */
  constructor(tokens: readonly (string | Uint8Array)[], options: { eos: Tokens; kinds?: readonly TokenKind[] });
  /** Creates the vocabulary of a `tokenizer.json`. `rows` is the number of rows of the model's output. */
  static fromTokenizerJson(json: string | Uint8Array, options: { eos: Tokens; rows?: number }): Vocabulary;
  /** The number of tokens. */
  readonly length: number;
  /** The number of 32-bit words of one row of a mask. */
  readonly words: number;
  /** The tokens that end a sequence. */
  readonly eos: number[];
  /** Returns the bytes of a token, or the name of a special one; empty outside the vocabulary. */
  bytes(token: number): Buffer;
  /** Returns the kind of a token. */
  kind(token: number): TokenKind;
  /** Returns the special token or mark of this name. */
  special(name: string): number | null;
  /**
   * Returns how many tokens of a prompt are kept, and the bytes of the others: as few are removed as possible, such
   * that no token could begin in the rest and end after the prompt. A grammar with these bytes as `prefix` continues.
   */
  heal(prompt: Tokens): { kept: number; removed: Buffer };
}

/** Tokens by id. */
export type Tokens =
  | readonly number[]
  | readonly bigint[]
  | Uint32Array
  | Int32Array
  | BigInt64Array
  | BigUint64Array;

/** A source of a grammar: an object with one of these. */
export type Source =
  | { readonly jsonSchema: Schema }
  /** Matches from edge to edge. A `RegExp` may have the flags d, g and u. */
  | { readonly regex: string | RegExp }
  /** A grammar in the EBNF of Lexiform. */
  | { readonly ebnf: string }
  /** A grammar in the notation that the options name, or in one that is recognised. */
  | { readonly grammar: string }
  /** A structural tag, as JSON or as an object. */
  | { readonly structuralTag: string | { readonly [field: string]: unknown } }
  /** The texts of which one is written. */
  | { readonly choice: readonly string[] }
  /** Everything that a model can write. */
  | { readonly any: true };

/** Options of schemas. */
export interface SchemaOptions {
  whitespace?: "indented" | "flexible" | "compact";
  /** The white space between two tokens, as a regular expression; instead of `whitespace`. */
  whitespacePattern?: string;
  keyOrder?: "schema" | "any";
  /** Whether an object that lists `properties` and mentions no others may have them. */
  additionalProperties?: "closed" | "open";
  numbers?: "double" | "any";
  escapes?: "minimal" | "canonical" | "any";
  draft?: "4" | "6" | "7" | "2019-09" | "2020-12";
  formats?: "assert" | "annotate";
  /** The documents that references may name, by URI. */
  documents?: Readonly<Record<string, Schema>>;
  /** Refuses keywords that have no effect but were meant to have one, such as misspelled ones. */
  strict?: boolean;
  /** Also refuses unknown formats, and keywords that allow less than they say. */
  exact?: boolean;
  /** The most milliseconds that the work may take. */
  timeout?: number;
}

/** Options of a compile. An option that the source does not have is an error. */
export interface CompileOptions extends SchemaOptions {
  /** The dialect of regular expressions; "ecma" by default. */
  dialect?: "ecma" | "python" | "rust";
  /** The notation of a grammar: "lark", "gbnf", "ebnf" and so on. */
  notation?: string;
  /** The rule that derives whole texts, if it is not that of the notation. */
  start?: string;
  /** The sources of the libraries that a grammar may import. */
  imports?: Readonly<Record<string, string>>;
  /** Bytes that precede every text, such as those that `Vocabulary.heal` removes. */
  prefix?: string | Uint8Array;
}

/** The limits of a compile and of a mask. */
export interface Limits {
  sourceBytes?: number;
  nesting?: number;
  exprs?: number;
  repeat?: number;
  regularStates?: number;
  regularBytes?: number;
  ruleStates?: number;
  grammarBytes?: number;
  maskWork?: number;
  distanceWork?: number;
  fuel?: number;
  compileBytes?: number;
}

/** Compiles grammars for one vocabulary. */
export class Compiler {
  /** Creates a compiler. With `primed`, the default, it compiles the parts of JSON in advance. */
  constructor(vocabulary: Vocabulary, options?: { primed?: boolean; limits?: Limits });
  /** Compiles a source for generation: closed objects, and numbers as doubles. */
  compile(source: Source, options?: CompileOptions): Grammar;
  /** Compiles on another thread. When the signal aborts, the compile ends, and the promise with its reason. */
  compileAsync(source: Source, options?: CompileOptions & { signal?: AbortSignal }): Promise<Grammar>;
}

/** The position of a sequence in its grammar: a value. Keep an old one to go back, use one twice to fork. */
export class State {
  private constructor();
  /** Returns `true` if the other state has the same future. */
  equals(other: State): boolean;
}

/** Options of a mask. */
export interface MaskOptions {
  /** Allows only tokens after which the text can be completed within this many tokens. */
  budget?: number;
  /** The tokens that end the sequence, instead of those of the vocabulary. */
  ends?: Tokens;
}

/** A compiled grammar over one vocabulary. */
export class Grammar {
  private constructor();
  /** Returns the state in which every sequence begins. */
  start(): State;
  /** Returns the state after a token, or `null` if the token may not come next. */
  step(state: State, token: number, options?: { ends?: Tokens }): State | null;
  /** Returns the state after a text or bytes, or `null` if no text of the language continues with them. */
  stepBytes(state: State, text: string | Uint8Array): State | null;
  /** Returns the state after each of these tokens, up to the first one that may not come. */
  walk(state: State, path: Tokens, options?: { ends?: Tokens }): State[];
  /** Writes a mask into a row of an array: bit `t % 32` of word `t / 32` says whether token `t` may come next. */
  fill(state: State, mask: Uint32Array, options?: MaskOptions & { row?: number }): void;
  /** Does what `fill` does, and returns the array: by default a new one. */
  mask(state: State, mask?: Uint32Array, options?: MaskOptions & { row?: number }): Uint32Array;
  /** Returns the tokens that may come next, in ascending order. */
  tokens(state: State, options?: MaskOptions): number[];
  /** Returns `true` if the text so far is complete. */
  isAccepting(state: State): boolean;
  /** Returns `true` if a token that ends the sequence was taken. */
  isFinished(state: State): boolean;
  /** Returns the bytes that every completion continues with; empty if there is a choice, or if the text may end. */
  forced(state: State): Buffer;
  /** Returns the fewest tokens that complete the sequence, its end among them; `null` if none do. */
  minCompletion(state: State): number | null;
  /** Explains what may come next and why: at most `most` ways, 16 by default. */
  explain(state: State, most?: number): Explanation;
  /** Reports how each assertion of the schema is enforced, in its order. */
  report(): Assertion[];
  /** Judges whether a text is exactly one of the language. */
  validate(text: string): Verdict;
  /** Returns the nearest valid text; for a schema, one that keeps the values of the given text. */
  repair(text: string, options?: RepairOptions): Repair;
  /** Repairs on another thread. */
  repairAsync(text: string, options?: RepairOptions & { signal?: AbortSignal }): Promise<Repair>;
  /** The findings of the compile: keywords that allow less than they say, or that have no effect. */
  readonly findings: Problem[];
  /** The special tokens and marks that may occur in texts of the language. */
  readonly specials: number[];
  /** The approximate number of bytes of the masks and states found so far. */
  readonly memory: number;
  /** The vocabulary of the masks. */
  readonly vocabulary: Vocabulary;
  /** The number of 32-bit words of one row of a mask. */
  readonly words: number;
}

/** The tokens of one sequence so far, and the state of its grammar after them. */
export class Session {
  /** Creates a sequence at its beginning, or in a state of the grammar. */
  constructor(grammar: Grammar, options?: { state?: State; ends?: Tokens });
  /** Accepts a token or several, all or none, and returns `true` if they were accepted. */
  accept(tokens: number | Tokens): boolean;
  /** Returns how many of these tokens could be accepted one after the other. Accepts none. */
  validate(tokens: Tokens): number;
  /** Removes the last `count` tokens, which may include an end. */
  rollback(count: number): void;
  /** Removes all tokens. */
  reset(): void;
  /** Writes the mask of the tokens that may come next into a row of an array. */
  fill(mask: Uint32Array, options?: { row?: number; budget?: number }): void;
  /** Does what `fill` does, and returns the array: by default a new one. */
  mask(mask?: Uint32Array, options?: { row?: number; budget?: number }): Uint32Array;
  /** Returns an independent copy. */
  fork(): Session;
  /** `true` if a token that ends the sequence was accepted. */
  readonly terminated: boolean;
  /** `true` if the text so far is complete, so that the sequence may end. */
  readonly accepting: boolean;
  /** The state of the sequence. */
  readonly state: State;
  /** The accepted tokens. */
  readonly tokens: number[];
}

/** A row of a batch: of a state or of a session, and the number of the row that its mask is written to. */
export type BatchRow =
  | { grammar: Grammar; state: State; row: number; budget?: number; ends?: Tokens }
  | { session: Session; row: number; budget?: number };

/**
 * Writes the masks of many sequences into the rows of one array, on the threads of the package. Returns the numbers
 * of the rows whose masks would cost more than the limits of their grammars allow; these rows are cleared.
 */
export function fillBatch(rows: readonly BatchRow[], mask: Uint32Array): number[];

/** Sets how many threads `fillBatch` may use; the default is the number of cores, at most eight. */
export function setThreads(threads: number): void;

/** What may come next, and why. */
export interface Explanation {
  readonly mayEnd: boolean;
  readonly forced: Buffer;
  readonly ways: readonly Way[];
  /** The number of readings of the text so far. */
  readonly readings: number;
}

/** One possible continuation of a text. */
export interface Way {
  readonly expected: "text" | "bytes" | "word" | "key" | "special";
  /** The fixed text, the shortest completion of the word or key, or the name of the special token. */
  readonly text?: Buffer;
  /** `true` if part of a word or key is already written. */
  readonly begun: boolean;
  /** The bytes that may come first, as ranges with both ends included. */
  readonly bytes: readonly (readonly number[])[];
  /** The rules that are being read, from the inside out. */
  readonly rules: readonly string[];
}

/** One assertion of a schema, and how it is enforced. */
export interface Assertion {
  readonly pointer: string;
  readonly keyword: string;
  readonly enforced: "exact" | "spelled" | "closed" | "narrower";
  readonly note: string | null;
}

/** Where and why a text does not belong. */
export interface Misfit {
  readonly kind: "unexpected" | "ends_early" | "duplicate_key" | "undecided";
  readonly message: string;
  /** The JSON pointer of the innermost value of the text that contains the place; `null` if the text is no JSON. */
  readonly pointer: string | null;
  /** The place in bytes of UTF-8. */
  readonly offset: number;
  /** The place as an index of the string. */
  readonly start: number;
  readonly line: number;
  readonly column: number;
  /** What may come there, in words. */
  readonly expected: string | null;
}

/** Whether a text belongs, and if not, where and why. */
export type Verdict =
  | { readonly valid: true; readonly problem: null }
  | { readonly valid: false; readonly problem: Misfit };

/** Whether a value is valid, and if not, where and why in its text. */
export type Validation<T> =
  | { readonly valid: true; readonly value: T; readonly problem: null }
  | { readonly valid: false; readonly problem: Misfit };

/**
 * Judges by a schema a JSON text (a string or bytes), or any other value. The order of keys, white space and
 * spellings do not count, and objects are as open as the schema says.
 */
export function validate<T = unknown>(schema: Schema<T>, value: unknown, options?: SchemaOptions): Validation<T>;

/** The costs and limits of a repair. Each cost is from 1 to 1000. */
export interface RepairOptions {
  insert?: number;
  delete?: number;
  substitute?: number;
  /** The most pairs of a state and a place that are visited. */
  nodes?: number;
  /** The most milliseconds that the repair may take. */
  timeout?: number;
}

/** A valid text at the lowest cost from a given one. */
export interface Repair {
  readonly text: string;
  readonly cost: number;
  /** The edits, in the order of the text. */
  readonly edits: readonly Edit[];
  /** The changes of the values of a JSON text; empty if the text was repaired by characters. */
  readonly changes: readonly Change[];
}

/** A place where a text was changed. */
export interface Edit {
  /** The place in bytes of UTF-8. */
  readonly offset: number;
  /** The place as an index of the string. */
  readonly start: number;
  readonly line: number;
  readonly column: number;
  readonly removed: string;
  readonly inserted: string;
}

/** A change of a value of a text that was repaired as JSON. */
export interface Change {
  readonly kind: "around" | "reordered" | "dropped" | "added" | "respelled";
  readonly pointer: string;
  readonly text: string;
}

/** Returns the valid JSON text that keeps the values of a text: out of fences and prose, with other quotes, cut off. */
export function repair(schema: Schema, text: string, options?: SchemaOptions & RepairOptions): Repair;

/** Repairs on another thread. */
export function repairAsync(
  schema: Schema,
  text: string,
  options?: SchemaOptions & RepairOptions & { signal?: AbortSignal },
): Promise<Repair>;

/** A schema that other libraries validate with: Standard Schema, and its JSON Schema. */
export interface StandardSchema<T = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
    readonly validate: (value: unknown) => StandardResult<T>;
    readonly jsonSchema: {
      readonly input: (options: { target: string }) => Record<string, unknown>;
      readonly output: (options: { target: string }) => Record<string, unknown>;
    };
  };
}

/** The result of a Standard Schema. */
export type StandardResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly PropertyKey[] }[] };

/** Returns a schema as one of the Standard Schema, which validates with {@link validate}. */
export function standardSchema<T = unknown>(schema: Schema<T>, options?: SchemaOptions): StandardSchema<T>;

/** A constraint that a target cannot have. */
export interface Loss {
  readonly pointer: string;
  readonly effect: "wider" | "narrower";
  readonly message: string;
}

/** A part of a schema that is written in another shape, which {@link Projection.restore} takes back. */
export interface Recoding {
  readonly pointer: string;
  readonly message: string;
}

/** A profile: its name, or one of your own. */
export type Profile =
  | "openai-strict"
  | "anthropic"
  | "gemini"
  | "llama.cpp"
  | "xgrammar"
  | "outlines"
  | Record<string, unknown>;

/** A schema as a target takes it. */
export class Projection<T = unknown> {
  constructor(schema: Schema<T>, profile: Profile, options?: { toward?: "wider" | "narrower" });
  /** The schema that the target takes. */
  readonly schema: Record<string, unknown>;
  /** A schema of the values that answers are restored to. */
  readonly restoredSchema: unknown;
  /** Whether the target takes the schema as it is. */
  readonly unchanged: boolean;
  /** How the restored answers relate to the schema. */
  readonly relation: "equal" | "wider" | "narrower" | "neither";
  /** Whether the algebra of schemas has proven the relation. */
  readonly proven: boolean;
  readonly losses: readonly Loss[];
  readonly recodings: readonly Recoding[];
  /** Returns the value that an answer stands for. It is not validated. */
  restore(answer: unknown): unknown;
  /**
   * Returns the value of the schema that the text of an answer stands for, or the nearest one. Where there is none, the
   * message of the error asks the model for another answer.
   */
  receive(answer: string): T;
}

/** Projects a schema to the part of JSON Schema that a provider or engine takes. */
export function project<T = unknown>(
  schema: Schema<T>,
  profile: Profile,
  options?: { toward?: "wider" | "narrower" },
): Projection<T>;

/** Returns everything in a schema that a target does not take, with its place. */
export function refusals(schema: Schema, profile: Profile): Problem[];

/** Returns the names of the profiles that come with the library. */
export function profiles(): string[];

/** Something that happens in an answer. `span` has indices of the text: the first, and the one after the last. */
export type AnswerEvent = { readonly call: number | null; readonly span: readonly [number, number] } & (
  | { readonly kind: "reasoning" | "content" | "arguments"; readonly text: string }
  | { readonly kind: "call"; readonly name: string }
  | { readonly kind: "call_end" }
  | { readonly kind: "opened"; readonly pointer: string; readonly is_object: boolean }
  | { readonly kind: "key"; readonly pointer: string }
  | { readonly kind: "value"; readonly pointer: string; readonly text: string }
);

/** A tool as chats have it, or its function alone. */
export type Tool =
  | { readonly function: { readonly name: string; readonly parameters?: Schema } }
  | { readonly name: string; readonly parameters?: Schema };

/**
 * Reads the thoughts, the content and the calls of one answer, constrained or not. The events do not depend on how the text
 * is cut; a text may not be cut within a surrogate pair.
 */
export class AnswerReader {
  /** `format` is the name of a format of models, such as `"qwen_3"`, or `"any"`. */
  constructor(
    format: string,
    options?: { tools?: readonly Tool[]; thought?: "none" | "possible" | "begun"; jsonContent?: boolean },
  );
  /** Reads more text. What may begin a mark waits for what comes next. */
  push(text: string): AnswerEvent[];
  /** Ends the answer: the events of what was held back. */
  finish(): AnswerEvent[];
}

/** The version of the package. */
export const version: string;
