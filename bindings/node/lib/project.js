// Schemas as providers and engines take them, and the values of their answers.

import { json, known, named, text } from "./arguments.js";
import { callError, calling } from "./errors.js";
import native from "./native.js";
import { schemaText } from "./schema.js";

/** A schema as a target takes it. */
export class Projection {
  #native;
  #report;

  constructor(schema, profile, options) {
    const { toward = "wider" } = known(options, ["toward"]);
    if (toward !== "wider" && toward !== "narrower") {
      throw callError(`\`toward\` is "wider" or "narrower", not ${named(toward)}`);
    }
    this.#native = calling(() => new native.Projection(schemaText(schema), profileText(profile), toward === "narrower"));
    this.#report = JSON.parse(calling(() => this.#native.report()));
  }

  get schema() {
    return this.#report.schema;
  }

  get restoredSchema() {
    return this.#report.restoredSchema;
  }

  get unchanged() {
    return this.#report.unchanged;
  }

  get relation() {
    return this.#report.relation;
  }

  get proven() {
    return this.#report.proven;
  }

  get losses() {
    return this.#report.losses;
  }

  get recodings() {
    return this.#report.recodings;
  }

  restore(answer) {
    return calling(() => JSON.parse(this.#native.restore(json(answer, "the answer"))));
  }

  receive(answer) {
    return calling(() => JSON.parse(this.#native.receive(text(answer, "the answer"))));
  }
}

/** Projects a schema to a profile: a name, or a profile of one's own. */
export function project(schema, profile, options) {
  return new Projection(schema, profile, options);
}

/** Returns everything in a schema that a target does not take. */
export function refusals(schema, profile) {
  return calling(() => JSON.parse(native.schemaRefusals(schemaText(schema), profileText(profile))));
}

/** Returns the names of the profiles that come with the library. */
export function profiles() {
  return native.profileNames();
}

function profileText(profile) {
  return typeof profile === "string" ? profile : json(profile, "the profile");
}
