//! The meaning of sources: JSON Schema, regular expressions, grammar texts and structural tags, compared with
//! judges of other projects and of our own.

mod answers;
mod arguments;
mod convert;
mod corpora;
mod ebnf_roundtrip;
mod extract;
mod generation;
mod grammars;
mod lark;
mod maskbench_remaining;
mod notations;
mod project;
mod random;
mod ratchet;
mod regex_data;
mod regex_python;
mod regular_run;
mod schema_bad_input;
mod schema_judge;
mod schema_suite;
mod schemas;
mod spellings;
mod tags;
