//! The collections that are known, and how their records are recognised.

use serde_json::Value;

/// A collection, by the form of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    MaskBench,
    JsonSchemaBench,
    Suite,
    Cases,
    FunctionCalls,
    Gsm8k,
    LastLetter,
    ShuffledObjects,
    /// A file that is a JSON Schema itself.
    Schema,
}

/// What people must know about a collection.
pub(super) struct Facts {
    /// Its name in output for programs.
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) license: &'static str,
    /// Where people get it.
    pub(super) address: &'static str,
    /// What one record of it is, in the plural.
    pub(super) records: &'static str,
    /// The commands that it can be used with.
    pub(super) commands: &'static [&'static str],
}

/// The facts of each collection, in the order of [`Kind::ALL`].
static FACTS: [Facts; 9] = [
    Facts {
        id: "maskbench",
        name: "MaskBench",
        what: "the schemas of JSONSchemaBench with valid and invalid instances: about 10,000 schemas, 13,000 valid \
                       and 23,000 invalid instances; one JSON file for each schema, or one line",
        license: "none stated: measure with it, do not pass it on",
        address: "https://github.com/guidance-ai/jsonschemabench (folder maskbench/data)",
        records: "schemas with instances",
        commands: &["maskbench DATA"],
    },
    Facts {
        id: "jsonschemabench",
        name: "JSONSchemaBench",
        what: "about 10,000 schemas that people wrote, by source and size; rows with `json_schema` and `unique_id`. \
                       The Parquet files are not read: export the rows as JSON lines",
        license: "MIT according to its dataset card; the schemas come from many sources",
        address: "https://huggingface.co/datasets/epfl-dlab/JSONSchemaBench",
        records: "schemas",
        commands: &["generate --data DATA"],
    },
    Facts {
        id: "suite",
        name: "JSON Schema Test Suite",
        what: "the official tests of every keyword in every draft; a checkout with tests/ and remotes/",
        license: "MIT",
        address: "https://github.com/json-schema-org/JSON-Schema-Test-Suite",
        records: "schemas",
        commands: &["suite DATA --draft 2020-12"],
    },
    Facts {
        id: "cases",
        name: "Cases of your own",
        what: "grammars, expressions or schemas with texts to accept and to reject; JSON lines, or a folder for \
                       each grammar, as in grammars/ of this project",
        license: "yours",
        address: "https://github.com/ggml-org/llama.cpp (folder grammars) has grammars to begin with",
        records: "sources with texts",
        commands: &["cases DATA"],
    },
    Facts {
        id: "bfcl",
        name: "Berkeley Function-Calling Leaderboard",
        what: "questions with tools as JSON Schema, and the calls that are right",
        license: "Apache-2.0",
        address: "https://huggingface.co/datasets/gorilla-llm/Berkeley-Function-Calling-Leaderboard",
        records: "tasks",
        commands: &["generate --tasks DATA", "drafts --data DATA"],
    },
    Facts {
        id: "gsm8k",
        name: "GSM8K",
        what: "word problems of arithmetic, whose answers end with `#### NUMBER`",
        license: "MIT",
        address: "https://github.com/openai/grade-school-math (folder grade_school_math/data)",
        records: "tasks",
        commands: &["generate --tasks DATA"],
    },
    Facts {
        id: "last_letter",
        name: "Last Letter Concatenation",
        what: "questions for the last letters of names; records with `question` and `answer`",
        license: "none stated",
        address: "https://huggingface.co/datasets/ChilleD/LastLetterConcat",
        records: "tasks",
        commands: &["generate --tasks DATA"],
    },
    Facts {
        id: "shuffled_objects",
        name: "Tracking Shuffled Objects (BIG-bench)",
        what: "who holds what after exchanges; files with `examples` of `input` and `target_scores` or `target`",
        license: "Apache-2.0",
        address: "https://github.com/google/BIG-bench (folder \
                          bigbench/benchmark_tasks/tracking_shuffled_objects)",
        records: "tasks",
        commands: &["generate --tasks DATA"],
    },
    Facts {
        id: "schema",
        name: "Schemas of your own",
        what: "JSON files, each of which is a JSON Schema",
        license: "yours",
        address: "https://www.schemastore.org lists schemas of many programs",
        records: "schemas",
        commands: &["generate --data DATA"],
    },
];

impl Kind {
    /// All collections, in the order in which they are listed.
    pub(super) const ALL: [Kind; 9] = [
        Kind::MaskBench,
        Kind::JsonSchemaBench,
        Kind::Suite,
        Kind::Cases,
        Kind::FunctionCalls,
        Kind::Gsm8k,
        Kind::LastLetter,
        Kind::ShuffledObjects,
        Kind::Schema,
    ];

    pub(super) fn facts(self) -> &'static Facts {
        &FACTS[self as usize]
    }

    /// Recognises a record by its fields; `None` if it is of no known collection.
    pub(super) fn of(record: &Value) -> Option<Kind> {
        let has = |field: &str| record.get(field).is_some();
        let is_text = |field: &str| record[field].is_string();
        let has_texts = has("accept") || has("reject");
        Some(match () {
            () if has("schema") && record["tests"].is_array() => Kind::MaskBench,
            () if has("json_schema") => Kind::JsonSchemaBench,
            () if has_texts && (has("regex") || has("grammar") || has("schema")) => Kind::Cases,
            () if record["question"].is_array() && (has("function") || has("tools")) => Kind::FunctionCalls,
            () if record["examples"].is_array() && Self::is_example(&record["examples"][0]) => {
                Kind::ShuffledObjects
            }
            () if is_text("question") && is_text("answer") => match record["answer"].as_str() {
                Some(answer) if answer.contains("####") => Kind::Gsm8k,
                _ => Kind::LastLetter,
            },
            () if Self::is_schema(record) => Kind::Schema,
            () => return None,
        })
    }

    /// Returns `true` for an object that says that it is a schema, or has the keywords that nearly all have.
    fn is_schema(record: &Value) -> bool {
        let types = [
            "array", "boolean", "integer", "null", "number", "object", "string",
        ];
        let has_type = match &record["type"] {
            Value::String(name) => types.contains(&name.as_str()),
            _ => false,
        };
        let applies = ["anyOf", "oneOf", "allOf"]
            .iter()
            .any(|keyword| record[*keyword].is_array());
        record["$schema"].is_string() || has_type || applies || record["properties"].is_object()
    }

    fn is_example(example: &Value) -> bool {
        example["input"].is_string()
            && (example["target_scores"].is_object() || example.get("target").is_some())
    }

    /// Returns the number of cases in a record: the instances of a schema, the texts of a source, the tasks
    /// of a file.
    pub(super) fn cases(self, record: &Value) -> usize {
        let length = |field: &str| match &record[field] {
            Value::Array(items) => items.len(),
            Value::String(_) => 1,
            _ => 0,
        };
        match self {
            Kind::MaskBench => length("tests"),
            Kind::Cases => length("accept") + length("reject"),
            Kind::ShuffledObjects => length("examples"),
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_collection_has_its_own_facts() {
        let ids = Kind::ALL.map(|kind| kind.facts().id);
        let expected = [
            "maskbench",
            "jsonschemabench",
            "suite",
            "cases",
            "bfcl",
            "gsm8k",
            "last_letter",
            "shuffled_objects",
            "schema",
        ];
        assert_eq!(ids, expected);
        assert_eq!(Kind::ALL.map(|kind| kind as usize), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn records_are_recognised_by_their_fields() {
        let records = [
            (
                json!({"name": "a", "schema": {}, "tests": [{"valid": true, "data": 1}, {}]}),
                Some(Kind::MaskBench),
                2,
            ),
            (
                json!({"unique_id": "x", "json_schema": "{}"}),
                Some(Kind::JsonSchemaBench),
                1,
            ),
            (
                json!({"regex": "a", "accept": ["a", "b"], "reject": "c"}),
                Some(Kind::Cases),
                3,
            ),
            (
                json!({"question": [[{"role": "user"}]], "function": []}),
                Some(Kind::FunctionCalls),
                1,
            ),
            (
                json!({"question": "1+1?", "answer": "2\n#### 2"}),
                Some(Kind::Gsm8k),
                1,
            ),
            (
                json!({"question": "Ada Lovelace?", "answer": "ae"}),
                Some(Kind::LastLetter),
                1,
            ),
            (
                json!({"examples": [{"input": "x", "target_scores": {"a": 1}}]}),
                Some(Kind::ShuffledObjects),
                1,
            ),
            (json!({"type": "object"}), Some(Kind::Schema), 1),
            (json!({"type": "text", "items": 1}), None, 0),
            (json!([1]), None, 0),
            (json!(null), None, 0),
        ];
        for (record, kind, cases) in records {
            assert_eq!(Kind::of(&record), kind, "{record}");
            assert_eq!(kind.map_or(0, |kind| kind.cases(&record)), cases, "{record}");
        }
    }
}
