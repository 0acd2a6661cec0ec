// The examples of the playground: each is a request that the demo model answers well, and shows one thing.

const json = value => JSON.stringify(value, null, 2);

const object = (properties, required = Object.keys(properties)) =>
  ({type: "object", properties, required, additionalProperties: false});

const PERSON = object({name: {type: "string"}, age: {type: "integer", minimum: 0, maximum: 150}, city: {type: "string"}});

const TICKET = object({
  customer: {type: "string"},
  email: {type: "string", format: "email"},
  date: {type: "string", format: "date"},
  priority: {enum: ["low", "medium", "high"]},
  summary: {type: "string", maxLength: 60},
});

const PEOPLE = object({people: {type: "array", minItems: 1, items: object({name: {type: "string"}, phone: {type: "string"}})}});

const REVIEW = object({author: {type: "string"}, mood: {enum: ["positive", "negative", "neutral"]}, stars: {type: "integer", minimum: 1, maximum: 5}});

const EVENT = object({event: {type: "string"}, date: {type: "string", format: "date"}, start: {type: "string", format: "time"}});

const TOOLS = [{type: "function", function: {name: "place_order", description: "Order an item.",
  parameters: object({item: {type: "string"}, count: {type: "integer"}})}}];

const CONTACTS = `root   ::= "{\\"people\\":[" person ("," person)* "]}"
person ::= "{\\"name\\":\\"" name "\\",\\"phone\\":\\"" phone "\\"}"
name   ::= word (" " word)*
word   ::= [A-Z] [a-z]+
phone  ::= [0-9]{3} "-" [0-9]{4}`;

// The same in the notations of other tools.
const CONTACTS_LARK = `start: "{\\"people\\":[" person ("," person)* "]}"
person: "{\\"name\\":\\"" NAME "\\",\\"phone\\":\\"" PHONE "\\"}"
NAME: /[A-Z][a-z]+( [A-Z][a-z]+)*/
PHONE: DIGIT~3 "-" DIGIT~4
%import common.DIGIT`;

const PHONE_ABNF = `phone = "(" 3DIGIT ") " 3DIGIT "-" 4DIGIT`;

const DATE_PEST = `date  = @{ "20" ~ ASCII_DIGIT{2} ~ "-" ~ month ~ "-" ~ day }
month = @{ "0" ~ '1'..'9' | "1" ~ '0'..'2' }
day   = @{ "0" ~ '1'..'9' | ('1'..'2') ~ ASCII_DIGIT | "3" ~ '0'..'1' }`;

const LIST = `root  ::= "[" item ("," item)* "]"
item  ::= digit+
digit ::= [0-9]`;

/** What a request holds before anything is chosen. */
export const DEFAULTS = {kind: "schema", source: "", prompt: "", temperature: 0, length: 200, seed: 1, samples: 1, law: "local", search: "none",
  choice: "required", monitors: "", compare: false, confidence: false};

export const EXAMPLES = [
  {name: "Person", kind: "schema", source: json(PERSON), prompt: "Maria Keller is 34 years old and lives in Vienna."},
  {name: "Support ticket", kind: "schema", source: json(TICKET), confidence: true,
    prompt: "Problem: the map does not load. Reported by Dr. Ingrid Romero on 2024-01-15. This has high priority. The customer can be reached at ingrid70@example.org."},
  {name: "List of people", kind: "schema", source: json(PEOPLE), prompt: "Pablo Zimmermann: 924-1045. Victor Prior: 272-9158."},
  {name: "With and without", kind: "schema", source: json(REVIEW), compare: true,
    prompt: "Ada Chasa writes: It is a purple teapot, what should I say. 3 out of 5."},
  {name: "Several samples", kind: "schema", source: json(EVENT), temperature: 1, samples: 3, prompt: "Let's have a picnic."},
  {name: "Date", kind: "regex", source: "20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])", prompt: "Salma Chio was born on 28 October 2006."},
  {name: "Phone number", kind: "regex", source: "\\([0-9]{3}\\) [0-9]{3}-[0-9]{4}", prompt: "Call Flolli Vargas at (743) 104-1961."},
  {name: "Contacts", kind: "ebnf", source: CONTACTS, prompt: "Pablo Zimmermann: 924-1045. Victor Prior: 272-9158."},
  {name: "Contacts in Lark", kind: "ebnf", source: CONTACTS_LARK, prompt: "Pablo Zimmermann: 924-1045. Victor Prior: 272-9158."},
  {name: "Phone number in ABNF", kind: "ebnf", source: PHONE_ABNF, prompt: "Call Flolli Vargas at (743) 104-1961."},
  {name: "Date in pest", kind: "ebnf", source: DATE_PEST, prompt: "Salma Chio was born on 28 October 2006."},
  {name: "Short of tokens", kind: "ebnf", source: LIST, temperature: 1, length: 16, prompt: "19, 20, 21, 22"},
  {name: "Monitors", kind: "regex", source: "(Maria|Anna|Martha) [A-Z][a-z]+", monitors: "[A-Za-z]+ Keller\n(Maria|Martha).*", temperature: 1, seed: 7,
    prompt: "Maria Keller is 34 years old and lives in Vienna."},
  {name: "Tool call", kind: "tools", source: json(TOOLS), prompt: "Order 4 x steel knife."},
];

/** The first example of a kind, or nothing but the kind. */
export const firstOf = kind => EXAMPLES.find(example => example.kind === kind) ?? {kind};
