// Places in a source: where a JSON pointer, a line and column, or a rule stands in the text, and where a text that is being
// written stands in its JSON value.

/** Reads JSON from left to right, however much of it there is, and tells of the places of its values. Never throws. */
class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
    /** The containers that are open: the pointer of each, whether it is an object, the number of its items, its key. */
    this.open = [];
    /** Where each value stands, with its key: from, to. */
    this.found = new Map();
  }

  /** The pointer of the value that comes next. */
  next() {
    const top = this.open.at(-1);
    if (!top) return "";
    return `${top.pointer}/${top.isObject ? top.key ?? "" : top.count}`;
  }

  string() {
    const begin = this.at;
    for (this.at++; this.at < this.text.length; this.at++) {
      if (this.text[this.at] === "\\") this.at++;
      else if (this.text[this.at] === '"') { this.at++; return [begin, true]; }
    }
    this.at = this.text.length;
    return [begin, false];
  }

  note(pointer, from, to) {
    if (!this.found.has(pointer)) this.found.set(pointer, [from, to]);
  }

  read() {
    while (this.at < this.text.length) this.step();
    return this;
  }

  step() {
    const letter = this.text[this.at], top = this.open.at(-1);
    if (/\s/.test(letter)) this.at++;
    else if (letter === '"') this.quoted(top);
    else if (letter === "{" || letter === "[") {
      const pointer = this.next();
      this.open.push({pointer, isObject: letter === "{", count: 0, key: null, from: top?.keyAt ?? this.at});
      this.at++;
    } else if (letter === "}" || letter === "]") {
      const closed = this.open.pop();
      this.at++;
      if (closed) this.note(closed.pointer, closed.from, this.at);
    } else if (letter === ",") {
      this.at++;
      if (top) Object.assign(top, {count: top.count + 1, key: null, keyAt: undefined});
    } else if (letter === ":") this.at++;
    else this.bare(top);
  }

  quoted(top) {
    const isKey = top?.isObject && top.key === null;
    const pointer = isKey ? null : this.next();
    const [begin, isWhole] = this.string();
    if (!isKey) return this.note(pointer, top?.keyAt ?? begin, this.at);
    if (!isWhole) return;
    let name;
    try { name = JSON.parse(this.text.slice(begin, this.at)); } catch { name = this.text.slice(begin + 1, this.at - 1); }
    Object.assign(top, {key: name.replace(/~/g, "~0").replace(/\//g, "~1"), keyAt: begin});
  }

  bare(top) {
    const begin = this.at;
    while (this.at < this.text.length && !/[\s,:{}[\]"]/.test(this.text[this.at])) this.at++;
    this.note(this.next(), top?.keyAt ?? begin, this.at);
  }
}

/** The offset of a line and a column, both counted from 1; columns count characters, not units of UTF-16. */
function offsetOf(text, line, column) {
  let at = 0;
  for (let passed = 1; passed < line; passed++) {
    const end = text.indexOf("\n", at);
    if (end < 0) return text.length;
    at = end + 1;
  }
  for (let passed = 1; passed < column && at < text.length && text[at] !== "\n"; passed++) at += text.codePointAt(at) > 0xffff ? 2 : 1;
  return at;
}

/** What stands at an offset: to the end of the word, or one character. */
function wordAt(text, from) {
  const word = /^(?:\w+|[^\s])/.exec(text.slice(from, from + 80));
  return [from, Math.min(text.length, from + (word ? word[0].length : 0))];
}

/** The places of many problems of one source. */
export class Places {
  constructor(text, isJson) {
    this.text = text;
    this.isJson = isJson;
  }

  /** From where to where what a diagnostic is about stands, or `null` where that is not known. */
  of(path) {
    const position = /^line (\d+), column (\d+)$/.exec(path);
    if (position) return wordAt(this.text, offsetOf(this.text, Number(position[1]), Number(position[2])));
    const rule = /^rule (.+)$/.exec(path);
    if (rule) return this.rule(rule[1]);
    return this.isJson ? this.pointer(path.replace(/^#/, "")) : null;
  }

  rule(name) {
    const words = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const found = new RegExp(`^[ \\t]*<?${words}>?[ \\t]*(?:::=|:|=)`, "m").exec(this.text);
    if (!found) return null;
    const from = found.index + found[0].indexOf(name);
    return [from, from + name.length];
  }

  /** The place of a pointer, or of the nearest value around it that is there. */
  pointer(pointer) {
    this.known ??= new Reader(this.text).read().found;
    for (let at = pointer; ; at = at.slice(0, at.lastIndexOf("/"))) {
      const found = this.known.get(at);
      if (found) return found;
      if (at === "") return null;
    }
  }
}

/** The lines of a text, to be asked about many offsets. */
export class Lines {
  constructor(text) {
    this.starts = [0];
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) this.starts.push(at + 1);
  }

  get count() { return this.starts.length; }

  /** The line of an offset, counted from 1. */
  of(offset) {
    let [low, high] = [0, this.starts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.starts[middle] <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  }
}

/** The text of the value of a pointer in a JSON text, or nothing if it has none. */
export function sliceOf(text, pointer) {
  const place = new Reader(text).read().found.get(pointer);
  return place && text.slice(...place).replace(/^"(?:[^"\\]|\\.)*"\s*:\s*/, "");
}

/** A JSON text with a line for each member and item, in which nothing else is changed. */
export function indented(text) {
  let depth = 0;
  const line = () => "\n" + "  ".repeat(depth);
  return text.replace(/"(?:[^"\\]|\\.)*"|\s+|[{[]\s*[}\]]|[{}[\],:]/g, part => {
    if (part[0] === '"') return part;
    if (/^\s/.test(part)) return "";
    if (/^[{[]\s*[}\]]$/.test(part)) return part[0] + part.at(-1);
    if (part === "{" || part === "[") return depth++, part + line();
    if (part === "}" || part === "]") return depth--, line() + part;
    return part === "," ? part + line() : part + " ";
  });
}

/** The pointer of the value that is being written at the end of the beginning of a JSON text; a key stands for its value. */
export function pointerAfter(text) {
  const reader = new Reader(text).read(), top = reader.open.at(-1);
  if (!top) return "";
  return top.isObject && top.key === null ? top.pointer : reader.next();
}

/** The place in a schema that a pointer into a value leads to, as far as properties, items and references of one file say so. */
export function schemaPlace(schema, pointer) {
  let at = schema, place = "#";
  for (const part of ["", ...pointer.split("/").slice(1)].entries()) {
    const name = part[1].replace(/~1/g, "/").replace(/~0/g, "~");
    if (part[0] > 0) {
      const step = stepOf(at, name);
      if (!step) return place;
      [at, place] = [step[1], `${place}/${step[0]}`];
    }
    for (let hops = 0; hops < 8 && typeof at?.$ref === "string" && at.$ref.startsWith("#"); hops++) {
      place = at.$ref;
      at = place.split("/").slice(1).reduce((inner, key) => inner?.[key.replace(/~1/g, "/").replace(/~0/g, "~")], schema);
    }
  }
  return place;
}

function stepOf(schema, name) {
  if (schema?.properties && Object.hasOwn(schema.properties, name)) {
    return [`properties/${name.replace(/~/g, "~0").replace(/\//g, "~1")}`, schema.properties[name]];
  }
  if (Array.isArray(schema?.prefixItems) && schema.prefixItems[name]) return [`prefixItems/${name}`, schema.prefixItems[name]];
  if (schema?.items && /^\d+$/.test(name)) return ["items", schema.items];
  if (schema?.additionalProperties instanceof Object) return ["additionalProperties", schema.additionalProperties];
  return null;
}
