//! Lowers the white space between the tokens of JSON.

use crate::regex;
use crate::schema::forms::{GoalId, NormalForms};
use crate::schema::options::Whitespace;
use crate::schema::text::hir;
use lexiform_automata::error::{CompileError, Place, Problem};
use lexiform_automata::grammar::{CfgBuilder, ExprId, Part};
use lexiform_automata::limits::Limits;

/// The white space at each place.
#[derive(Clone, Copy)]
pub(super) struct Space {
    /// After an opening and before a closing bracket.
    pub(super) edge: ExprId,
    /// `,` and the white space after it.
    pub(super) comma: ExprId,
    /// `:` and the white space after it.
    pub(super) colon: ExprId,
    /// `true` if the white space may be empty at each place.
    pub(super) may_be_empty: bool,
}

/// The deepest indentation, in spaces or tabs.
const INDENT: u32 = 64;

/// The most spaces or tabs for each level of depth, if the depth bounds the indentation.
const COLUMNS: u32 = 8;

/// The white space of each rule.
pub(super) struct Spaces {
    /// The white space by depth, from 1 on. If there is only one entry, it applies to all depths.
    by_depth: Vec<Space>,
    /// For each goal, how many brackets may be open inside its arrays and objects, including their own.
    depths: Vec<u32>,
}

impl Spaces {
    /// Returns the white space of all goals.
    pub(super) fn new(
        form: &Whitespace,
        forms: &NormalForms,
        builder: &mut CfgBuilder,
        limits: &Limits,
    ) -> Result<Spaces, CompileError> {
        let depths = match form {
            Whitespace::Indented => depths(forms),
            _ => Vec::new(),
        };
        let deepest = depths.iter().copied().max().unwrap_or(0).max(1);
        let by_depth = (1..=deepest).map(|depth| Space::new(form, depth * COLUMNS, builder, limits));
        let by_depth = by_depth.collect::<Result<Vec<Space>, CompileError>>()?;
        Ok(Spaces { by_depth, depths })
    }

    /// Returns the white space in the arrays and objects of a goal.
    pub(super) fn of(&self, goal: GoalId) -> Space {
        let depth = self.depths.get(goal.index()).map_or(1, |&depth| depth.max(1));
        self.by_depth[depth as usize - 1]
    }
}

/// Returns the greatest depth at which each goal may occur, as far as the indentation grows with it, or 0 if
/// it never occurs.
fn depths(forms: &NormalForms) -> Vec<u32> {
    let mut depths = vec![0; forms.normals.len()];
    let mut open = vec![(forms.root, 1)];
    while let Some((goal, depth)) = open.pop() {
        let known = &mut depths[goal.index()];
        if *known < depth {
            *known = depth;
            let inner = (depth + 1).min(INDENT / COLUMNS);
            open.extend(forms.normals[goal.index()].parts().map(|part| (part, inner)));
        }
    }
    depths
}

impl Space {
    /// Returns the white space of a form, with an indentation of at most `indent` where the form does not
    /// specify it.
    fn new(
        form: &Whitespace,
        indent: u32,
        builder: &mut CfgBuilder,
        limits: &Limits,
    ) -> Result<Space, CompileError> {
        let mut may_be_empty = true;
        let (edge, comma, colon) = match form {
            Whitespace::Compact => {
                let none = builder.empty();
                (none, none, none)
            }
            Whitespace::Flexible | Whitespace::Indented => {
                let most = match form {
                    Whitespace::Indented => indent,
                    _ => INDENT,
                };
                let indent = hir::repeat(hir::class(&[(b' ', b' '), (b'\t', b'\t')]), 0, Some(most));
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
