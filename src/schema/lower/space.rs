//! White space between the tokens of JSON.

use crate::error::{CompileError, Place, Problem};
use crate::grammar::{CfgBuilder, ExprId, Part};
use crate::limits::Limits;
use crate::regex;
use crate::schema::options::Whitespace;
use crate::schema::text::hir;

/// What may stand at each place.
#[derive(Clone, Copy)]
pub(super) struct Space {
    /// After an opening and before a closing bracket.
    pub(super) edge: ExprId,
    /// `,` and what may follow it.
    pub(super) comma: ExprId,
    /// `:` and what may follow it.
    pub(super) colon: ExprId,
    /// Whether there may be none, in each place.
    pub(super) may_be_empty: bool,
}

/// The deepest indentation of the flexible form, in spaces or tabs.
const INDENT: u32 = 64;

impl Space {
    pub(super) fn new(
        form: &Whitespace,
        builder: &mut CfgBuilder,
        limits: &Limits,
    ) -> Result<Space, CompileError> {
        let mut may_be_empty = true;
        let (edge, comma, colon) = match form {
            Whitespace::Compact => {
                let none = builder.empty();
                (none, none, none)
            }
            Whitespace::Flexible => {
                let indent = hir::repeat(hir::class(&[(b' ', b' '), (b'\t', b'\t')]), 0, Some(INDENT));
                let line = hir::concat([hir::text("\n"), indent]);
                let edge = builder.hir(hir::any([hir::text(" "), line]));
                let space = builder.bytes(" ");
                let (edge, space) = (builder.optional(edge), builder.optional(space));
                (edge, edge, space)
            }
            Whitespace::Pattern(pattern) => {
                let regular = regex::rust(pattern, limits).map_err(|error| {
                    Problem::new(error.kind, Place::Whole, format!("whitespace pattern: {error}"))
                })?;
                may_be_empty = regular.parts.iter().all(|part| match part {
                    Part::Match(hir) => hir.properties().minimum_len() == Some(0),
                    Part::Units { min, .. } => *min == 0,
                    Part::Not(_) => false,
                });
                let id = builder.add_regular(regular);
                let space = builder.regular(id);
                (space, space, space)
            }
        };
        let (comma_sign, colon_sign) = (builder.bytes(","), builder.bytes(":"));
        let comma = builder.seq([comma_sign, comma]);
        let colon = builder.seq([colon_sign, colon]);
        Ok(Space {
            edge,
            comma,
            colon,
            may_be_empty,
        })
    }
}
