// Schemas of the document as tables of fields. What lies inside a field is opened where it is asked for, so that a schema that
// holds itself has an end.

import {make} from "../dom.js";

export class SchemaView {
  constructor(document_) { this.document = document_; }

  /** A schema with its reference followed and its `allOf` put together. */
  resolved(schema) {
    let at = schema ?? {};
    for (let hops = 0; hops < 16 && at.$ref; hops++) at = at.$ref.split("/").slice(1).reduce((inner, name) => inner?.[name], this.document) ?? {};
    if (!at.allOf) return at;
    const parts = at.allOf.map(part => this.resolved(part));
    return parts.reduce((all, part) => ({...all, ...part, properties: {...all.properties, ...part.properties},
      required: [...(all.required ?? []), ...(part.required ?? [])]}), {...at, allOf: undefined});
  }

  /** What kind of value a schema is about, in a few words. */
  kind(schema) {
    const {type, enum: words, const: only, items, anyOf, oneOf} = schema;
    if (only !== undefined) return JSON.stringify(only);
    if (words) return words.filter(word => word !== null).map(word => JSON.stringify(word)).join(" | ");
    const types = [type].flat().filter(name => name && name !== "null");
    if (types.includes("array") && items) return `array of ${this.kind(this.resolved(items))}`;
    if (types.length) return types.join(" | ");
    const either = anyOf ?? oneOf;
    if (either) return [...new Set(either.map(part => this.kind(this.resolved(part))))].join(" | ");
    return schema.properties ? "object" : "any value";
  }

  /** The bounds of a value, in a few words. */
  bounds({minimum, maximum, minItems, maxItems, minLength, maxLength, default: usual}) {
    const range = (low, high, what) => low === undefined && high === undefined ? null
      : low === undefined ? `at most ${high}${what}` : high === undefined ? `at least ${low}${what}` : `${low} to ${high}${what}`;
    return [range(minimum, maximum, ""), range(minItems, maxItems, " items"), range(minLength, maxLength, " characters"),
      usual === undefined ? null : `by default ${JSON.stringify(usual)}`].filter(Boolean).join(", ");
  }

  /** What there is to open in a schema: its own fields, or those of its items. */
  inside(schema) {
    if (schema.properties && Object.keys(schema.properties).length) return schema;
    if (schema.items) return this.inside(this.resolved(schema.items));
    const either = (schema.anyOf ?? schema.oneOf ?? []).map(part => this.resolved(part)).filter(part => part.properties);
    return either.length === 1 ? this.inside(either[0]) : null;
  }

  /** The fields of a schema as a list, those that must be there first. */
  fields(schema) {
    const own = this.resolved(schema), required = new Set(own.required ?? []);
    const names = Object.keys(own.properties ?? {});
    const ordered = [...names.filter(name => required.has(name)), ...names.filter(name => !required.has(name))];
    if (!ordered.length) return make("p", {className: "soft", textContent: own.description ?? this.kind(own)});
    return make("ul", {className: "fields"}, ...ordered.map(name => this.field(name, this.resolved(own.properties[name]), required.has(name))));
  }

  field(name, schema, isRequired) {
    const bounds = this.bounds(schema), inside = this.inside(schema);
    const head = make("div", {className: "head"}, make("code", {className: "name", textContent: name}),
      make("span", {className: "kind", textContent: this.kind(schema)}),
      isRequired ? make("span", {className: "required", textContent: "required"}) : null,
      bounds ? make("span", {className: "soft", textContent: bounds}) : null);
    const more = inside && make("details", {}, make("summary", {textContent: `Fields of ${name}`}));
    if (more) more.addEventListener("toggle", () => more.open && more.children.length === 1 && more.append(this.fields(inside)));
    return make("li", {}, head, schema.description ? make("p", {textContent: schema.description}) : null, more);
  }
}
