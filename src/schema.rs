//! JSON Schema: its compiler, and a short way to show a schema to a model.

pub mod sketch;
