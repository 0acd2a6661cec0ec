// One request that was sent, and what has come back: nothing here changes when the form does.

import {events, request} from "../api.js";
import {bodyOf, monitorsOf} from "../playground/request.js";

/** A text of an answer as far as it is written. */
class Sample {
  constructor(run, index) {
    Object.assign(this, {run, index, tokens: [], content: "", calls: [], finish: null, told: null});
  }

  take(choice) {
    const fresh = choice.lexiform_tokens ?? [];
    this.tokens.push(...fresh);
    this.content += choice.delta?.content ?? "";
    for (const call of choice.delta?.tool_calls ?? []) this.called(call);
    if (choice.finish_reason) {
      this.finish = choice.finish_reason;
      this.told = choice.lexiform ?? {};
    }
    return fresh;
  }

  called({index, function: own, custom}) {
    const call = (this.calls[index] ??= {name: "", input: ""});
    call.name += (own ?? custom)?.name ?? "";
    call.input += own?.arguments ?? custom?.input ?? "";
  }

  /** The text as a client reads it. */
  get text() {
    return this.calls.length ? this.calls.map(call => `${call.name}(${call.input})`).join("\n") : this.content;
  }

  /** The pass that wrote this token: the place of its first token and the drafts that it had, or null where none are told. */
  passOf(place) {
    for (let first = place; first >= 0; first--) {
      const drafts = this.tokens[first].drafts;
      // A pass writes the drafts that it keeps, and one token more.
      if (drafts) return place <= first + drafts.filter(({fate}) => fate === "kept").length ? {first, drafts} : null;
    }
    return null;
  }

  /** The text of the tokens before this one. */
  before(place) {
    return this.tokens.slice(0, place).map(token => token.text).join("");
  }
}

/** A request with what it was made of. */
export class Run {
  constructor(state, model) {
    this.state = state;
    this.model = model;
    this.samples = Array.from({length: state.samples}, (_, index) => new Sample(this, index));
    this.enforced = null;
    /** How many monitors were asked beside the constraint. */
    this.monitors = monitorsOf(state).length;
    this.milliseconds = null;
  }

  /** Sends the request and calls `heard(sample, tokens)` whenever something comes. Throws what the service says. */
  async write(signal, heard) {
    const begun = performance.now();
    const answer = await request("/v1/chat/completions", bodyOf(this.state, this.model), signal);
    this.enforced = answer.headers.get("x-lexiform-enforced");
    for await (const event of events(answer)) {
      for (const choice of event.choices ?? []) heard(this.samples[choice.index], this.samples[choice.index].take(choice));
    }
    this.milliseconds = performance.now() - begun;
  }
}
