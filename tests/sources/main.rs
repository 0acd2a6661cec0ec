//! What sources mean: JSON Schema, regular expressions, grammar texts and structural tags, against judges of
//! others and of our own.

mod ebnf_roundtrip;
mod extract;
mod generation;
mod grammars;
mod maskbench_remaining;
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
