// Errors: one class, with the problems of a source or a call and their places.

import native from "./native.js";

/** The error of everything in this package: `problems` lists what is wrong, each with its kind and place. */
export class LexiformError extends Error {
  constructor(problems) {
    super(problems.map(({ place, message }) => (place === null ? message : `${place}: ${message}`)).join("\n"));
    this.name = "LexiformError";
    this.problems = problems;
  }
}

/** Returns a problem of a kind without a place. */
export function problem(kind, message) {
  return { kind, message, place: null, pointer: null, line: null, column: null };
}

/** Returns the error of a call whose arguments are wrong. */
export function callError(message) {
  return new LexiformError([problem("call", message)]);
}

const BEGINS = '{"problems":';

/** Returns the error that the native part means: its message is a list of problems, or that of Node-API. */
export function translated(error) {
  if (error instanceof LexiformError) return error;
  const message = String(error?.message ?? error);
  return new LexiformError(
    message.startsWith(BEGINS) ? JSON.parse(message).problems : [problem("call", message)],
  );
}

/** Does work of the native part. */
export function calling(work) {
  try {
    return work();
  } catch (error) {
    throw translated(error);
  }
}

/** Does work of the native part on another thread, which a signal aborts. */
export async function abortable(signal, start) {
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw callError("`signal` must be an AbortSignal");
  signal?.throwIfAborted();
  const abort = new native.Abort();
  const onAbort = () => abort.abort();
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    return await start(abort);
  } catch (error) {
    signal?.throwIfAborted();
    throw translated(error);
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}
