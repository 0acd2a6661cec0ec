// Grammars and the sequences in them: steps, masks, forced text, sessions and batches.

import { apart, asJson, bytes, known, named, text, tokens } from "./arguments.js";
import { abortable, callError, calling, translated } from "./errors.js";
import native from "./native.js";
import { Vocabulary } from "./vocabulary.js";

export const { State } = native;

let nativeOf;
let rowOf;

/** A compiled grammar over one vocabulary. */
export class Grammar {
  #native;
  #words;

  static {
    nativeOf = (grammar) => (grammar instanceof Grammar ? grammar.#native : undefined);
  }

  constructor(inner) {
    if (!(inner instanceof native.Grammar)) throw callError("grammars are made by a Compiler");
    this.#native = inner;
    this.#words = inner.words;
  }

  start() {
    return this.#native.start();
  }

  step(state, token, options) {
    try {
      return this.#native.step(state, token, endsOf(options));
    } catch (error) {
      throw translated(error);
    }
  }

  stepBytes(state, written) {
    return calling(() => this.#native.stepBytes(state, bytes(written, "a text")));
  }

  walk(state, path, options) {
    return calling(() => this.#native.walk(state, tokens(path, "a path"), endsOf(options)));
  }

  fill(state, mask, options) {
    const { row = 0, budget, ends } = known(options, ["row", "budget", "ends"]);
    try {
      this.#native.fill(state, mask, row, budget, endTokens(ends));
    } catch (error) {
      throw translated(error);
    }
  }

  mask(state, mask = new Uint32Array(this.#words), options) {
    this.fill(state, mask, options);
    return mask;
  }

  tokens(state, options) {
    const { budget, ends } = known(options, ["budget", "ends"]);
    return calling(() => this.#native.tokens(state, budget, endTokens(ends)));
  }

  isAccepting(state) {
    return calling(() => this.#native.isAccepting(state));
  }

  isFinished(state) {
    return calling(() => this.#native.isFinished(state));
  }

  forced(state) {
    return calling(() => this.#native.forced(state));
  }

  minCompletion(state) {
    return calling(() => this.#native.minCompletion(state));
  }

  explain(state, most = 16) {
    return calling(() => this.#native.explain(state, most));
  }

  report() {
    return calling(() => JSON.parse(this.#native.report()));
  }

  validate(written) {
    const problem = calling(() => JSON.parse(this.#native.validate(text(written, "a text"))));
    return problem === null ? { valid: true, problem: null } : { valid: false, problem };
  }

  repair(written, options) {
    const [rest] = apart(options, []);
    return calling(() => JSON.parse(this.#native.repair(text(written, "a text"), asJson(rest))));
  }

  async repairAsync(written, options) {
    const [rest, { signal }] = apart(options, ["signal"]);
    const [given, named] = [text(written, "a text"), asJson(rest)];
    return JSON.parse(await abortable(signal, (abort) => this.#native.repairAsync(given, named, abort)));
  }

  get findings() {
    return JSON.parse(this.#native.findings);
  }

  get specials() {
    return this.#native.specials;
  }

  get memory() {
    return this.#native.memory;
  }

  get vocabulary() {
    return new Vocabulary(this.#native.vocabulary);
  }

  get words() {
    return this.#words;
  }
}

/** The tokens of one sequence so far, and the state of its grammar after them. */
export class Session {
  #native;
  #words;

  static {
    rowOf = (session, budget) => (session instanceof Session ? session.#native.row(budget) : undefined);
  }

  constructor(grammar, options) {
    if (grammar instanceof native.Session) {
      [this.#native, this.#words] = [grammar, options];
      return;
    }
    const { state, ends } = known(options, ["state", "ends"]);
    const inner = grammarOf(grammar);
    this.#native = calling(() => new native.Session(inner, state, endTokens(ends)));
    this.#words = grammar.words;
  }

  accept(path) {
    return calling(() => this.#native.accept(typeof path === "number" ? [path] : tokens(path, "a path")));
  }

  validate(path) {
    return calling(() => this.#native.validate(tokens(path, "a path")));
  }

  rollback(count) {
    calling(() => this.#native.rollback(count));
  }

  reset() {
    this.#native.reset();
  }

  fill(mask, options) {
    const { row = 0, budget } = known(options, ["row", "budget"]);
    calling(() => this.#native.fill(mask, row, budget));
  }

  mask(mask = new Uint32Array(this.#words), options) {
    this.fill(mask, options);
    return mask;
  }

  fork() {
    return new Session(this.#native.fork(), this.#words);
  }

  get terminated() {
    return this.#native.terminated;
  }

  get accepting() {
    return this.#native.accepting;
  }

  get state() {
    return this.#native.state;
  }

  get tokens() {
    return this.#native.tokens;
  }
}

/** Writes the masks of many sequences into the rows of one array, on the threads of the package. */
export function fillBatch(rows, mask) {
  if (!Array.isArray(rows)) throw callError(`the rows must be an array, not ${named(rows)}`);
  const given = rows.map((row) => known(row, ["grammar", "state", "session", "row", "budget", "ends"]));
  return calling(() => native.fillBatch(given.map(nativeRow), given.map(({ row }) => row), mask));
}

/** Sets how many threads `fillBatch` may use. */
export function setThreads(threads) {
  calling(() => native.setThreads(threads));
}

function nativeRow({ grammar, state, session, budget, ends }) {
  if (session === undefined) return grammarOf(grammar).row(state, budget, endTokens(ends));
  if (grammar !== undefined || state !== undefined || ends !== undefined) {
    throw callError("a row is of a session, or of a grammar and a state");
  }
  const row = rowOf(session, budget);
  if (row === undefined) throw callError(`a Session is needed, not ${named(session)}`);
  return row;
}

function grammarOf(grammar) {
  const found = nativeOf(grammar);
  if (found === undefined) throw callError(`a Grammar is needed, not ${named(grammar)}`);
  return found;
}

function endsOf(options) {
  return options === undefined ? undefined : endTokens(known(options, ["ends"]).ends);
}

function endTokens(ends) {
  return ends === undefined ? undefined : tokens(ends, "`ends`");
}
