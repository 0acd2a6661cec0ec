//! Fuzz targets for every reader of Lexiform: the parts that both programs share, and the targets of the
//! library.
//!
//! ```text
//!   bytes ─┬─────────────────────────────► readers ─► compile ─► walk: masks against steps, ends, budgets
//!          ├─ shapes ─ a hostile source ─►   ″
//!          ├─ answers ─ a format, a cut ─► read whole and in two pieces
//!          ├─ oracle ─ a small language ─► compile ─► every mask against the slow judges of tests/masks/oracle
//!          ├─ judge ── a small schema ───► compile ─► texts against the `jsonschema` crate
//!          └─ projections ─ a schema ───► all profiles ─► what is written against the profile, and drawn values
//! ```
//!
//! Each run is limited in time, memory and stack (`drive`), and what breaks a limit is a finding like a
//! panic.

pub mod answers;
pub mod clock;
pub mod drive;
pub mod judge;
pub mod meter;
pub mod oracle;
pub mod projections;
pub mod readers;
pub mod shapes;
pub mod walk;

use drive::Target;

/// The targets that need nothing but the library.
pub const LIBRARY: [Target; 16] = [
    Target::plain("schema", readers::schema),
    Target::plain("regex", readers::regex),
    Target::plain("ecma", readers::ecma),
    Target::plain("ebnf", readers::ebnf),
    Target::plain("notations", readers::notations),
    Target::plain("tags", readers::tags),
    Target::plain("answers", answers::answers),
    Target::plain("tokenizer", readers::tokenizer),
    Target::plain("tiktoken", readers::tiktoken),
    Target::shaped("schema_shapes", shaped_schema, shapes::schema),
    Target::shaped("ebnf_shapes", shaped_ebnf, shapes::ebnf),
    Target::shaped("regex_shapes", shaped_regex, shapes::regex),
    Target::plain("oracle", oracle::run),
    Target::shaped("judge", judge::run, judge::shown),
    Target::plain("project", projections::project),
    Target::shaped("project_shapes", projections::shaped, judge::shown),
];

fn shaped_schema(input: &[u8]) {
    readers::schema(shapes::schema(input).as_bytes());
}

fn shaped_ebnf(input: &[u8]) {
    readers::ebnf(shapes::ebnf(input).as_bytes());
}

/// The same pattern in both dialects.
fn shaped_regex(input: &[u8]) {
    let pattern = shapes::regex(input);
    readers::regex(pattern.as_bytes());
    readers::ecma(pattern.as_bytes());
}
