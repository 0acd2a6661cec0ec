//! The calls of an answer, each in one of the frames in which models write them, and the free text before
//! them.
//!
//! ```text
//!   answer ::= text
//!            | text ending                                 for a frame with an end of its own
//!            | text′ open call ( between call )* close      for each frame; text′ does not end in what would make it
//!   call   ::= head NAME middle INPUT tail                   the frame of another: no fence stands before an object
//! ```
//!
//! Free text contains no trigger of a frame, so a reader of an answer finds exactly the calls that were
//! written.

use lexiform::error::{CompileError, Place, Problem, ProblemKind};
use lexiform_automata::grammar::{ExprId, Part};
use lexiform_syntax::answer::{self, FRAMES, Frame, Piece};
use lexiform_syntax::regex;

use super::GrammarWriter;
use crate::grammars::language::Rejected;
use crate::wire::constraint::{Constraint, Source};
use crate::wire::tools::{Callable, Calls};

/// The maximum number of calls in one answer.
const CALLS: u32 = 32;

/// The input of each tool, as expressions that all frames share.
type Inputs<'c> = Vec<(&'c Callable, ExprId)>;

impl GrammarWriter<'_> {
    /// Returns the input of the only tool, and nothing else.
    pub(super) fn only_input(&mut self, calls: &Calls) -> Result<ExprId, Rejected> {
        match calls.tools.first() {
            Some(tool) => self.input(&tool.input),
            None => Ok(self.builder.never()),
        }
    }

    /// Returns one or more calls, in any of these frames.
    pub(super) fn calls(&mut self, calls: &Calls, frames: &[Frame]) -> Result<ExprId, Rejected> {
        let inputs = self.inputs(calls)?;
        let framed = |frame: &Frame| {
            let before = self.pieces(frame.before)?;
            let called = self.framed(frame, &inputs, calls.parallel)?;
            Ok(self.builder.seq(vec![before, called]))
        };
        let ways: Result<Vec<ExprId>, CompileError> = frames.iter().map(framed).collect();
        let ways = ways.map_err(|error| refused(calls, error))?;
        Ok(self.builder.choice(ways))
    }

    /// Returns free text that does not contain `without`, optionally followed by calls; and the calls alone.
    pub(super) fn text_or_calls(
        &mut self,
        calls: &Calls,
        frames: &[Frame],
        without: Option<&str>,
    ) -> Result<(ExprId, ExprId), Rejected> {
        let inputs = self.inputs(calls)?;
        let (names, mut triggers) = (calls.names(), Vec::new());
        for trigger in frames.iter().filter_map(|frame| frame.trigger(&names)) {
            if !triggers.contains(&trigger) {
                triggers.push(trigger);
            }
        }
        triggers.extend(without.map(|text| answer::pattern(&[Piece::Text(text)])));
        let behind = |frame: &Frame| {
            let text = self.text(&triggers, &frame.not_behind(FRAMES))?;
            let called = self.framed(frame, &inputs, calls.parallel)?;
            Ok((self.builder.seq(vec![text, called]), called))
        };
        let ways: Result<Vec<(ExprId, ExprId)>, CompileError> = frames.iter().map(behind).collect();
        let (mut ways, alone): (Vec<ExprId>, Vec<ExprId>) =
            ways.map_err(|error| refused(calls, error))?.into_iter().unzip();
        let text = self.text(&triggers, &[]).map_err(|error| refused(calls, error))?;
        ways.push(text);
        for frame in frames.iter().filter(|frame| !frame.ending.is_empty()) {
            let ending = self.pieces(frame.ending).map_err(|error| refused(calls, error))?;
            ways.push(self.builder.seq(vec![text, ending]));
        }
        Ok((self.builder.choice(ways), self.builder.choice(alone)))
    }

    fn inputs<'c>(&mut self, calls: &'c Calls) -> Result<Inputs<'c>, Rejected> {
        let input = |tool: &'c Callable| Ok((tool, self.input(&tool.input)?));
        calls.tools.iter().map(input).collect()
    }

    /// Returns any text in which no expression of `without` matches, and that does not end in one of
    /// `not_at_end`.
    fn text(&mut self, without: &[String], not_at_end: &[String]) -> Result<ExprId, CompileError> {
        let mut parts = self.expression("(?s:.*)")?;
        for (some, behind) in [(without, "(?s:.*)"), (not_at_end, "")] {
            if some.is_empty() {
                continue;
            }
            let with = self.expression(&format!("(?s:.*)(?:{}){behind}", some.join("|")))?;
            let [Part::Match(with)] = &with[..] else {
                // Only look-around turns an expression into several parts, and these have none.
                let message = "the texts that begin a call: they are not one expression";
                return Err(Problem::new(ProblemKind::Unsupported, Place::Whole, message).into());
            };
            parts.push(Part::Not(with.clone()));
        }
        Ok(self.regular(parts))
    }

    fn expression(&self, pattern: &str) -> Result<Vec<Part>, CompileError> {
        let regular = regex::rust(pattern, self.limits).map_err(|error| {
            // No user wrote this expression, so an error says what it consists of and names no place in it.
            let problem = error.into_problem();
            let message = format!("the texts that begin a call: {}", problem.message);
            Problem::new(problem.kind, Place::Whole, message)
        })?;
        Ok(regular.parts)
    }

    /// Returns one or more calls in one frame.
    fn framed(&mut self, frame: &Frame, inputs: &Inputs<'_>, parallel: bool) -> Result<ExprId, CompileError> {
        let head = self.pieces(frame.head)?;
        let closed = self.called(frame, inputs.iter().filter(|(tool, _)| !tool.is_custom()))?;
        let tail = self.pieces(frame.tail)?;
        let closed = self.builder.seq(vec![head, closed, tail]);
        let close = self.pieces(frame.close)?;
        let last = self.builder.seq(vec![closed, close]);
        let raw = self.called(frame, inputs.iter().filter(|(tool, _)| tool.is_custom()))?;
        let raw = self.builder.seq(vec![head, raw]);
        let last = self.builder.choice(vec![last, raw]);
        let open = self.pieces(frame.open)?;
        if !parallel {
            return Ok(self.builder.seq(vec![open, last]));
        }
        let between = self.pieces(frame.between)?;
        let before = self.builder.seq(vec![closed, between]);
        let earlier = self.builder.repeat(before, 0, Some(CALLS - 1));
        Ok(self.builder.seq(vec![open, earlier, last]))
    }

    /// Returns the name of one of these tools, and its input.
    fn called<'t>(
        &mut self,
        frame: &Frame,
        inputs: impl Iterator<Item = &'t (&'t Callable, ExprId)>,
    ) -> Result<ExprId, CompileError> {
        let mut ways = Vec::new();
        for (tool, input) in inputs.filter(|(tool, _)| frame.takes(tool.is_custom())) {
            let name = self.builder.bytes(&tool.name);
            let middle = self.pieces(frame.before_input(tool.is_custom()))?;
            ways.push(self.builder.seq(vec![name, middle, *input]));
        }
        Ok(self.builder.choice(ways))
    }

    /// Concatenates pieces: the pieces between two marks become one literal or one regular language.
    fn pieces(&mut self, pieces: &[Piece<'_>]) -> Result<ExprId, CompileError> {
        let is_mark = |piece: &Piece<'_>| matches!(piece, Piece::Mark(_));
        let mut parts = Vec::new();
        for run in pieces.chunk_by(|one, other| !is_mark(one) && !is_mark(other)) {
            parts.push(match run {
                [Piece::Mark(mark)] => self.builder.marked(mark),
                [Piece::Text(text)] => self.builder.bytes(text),
                run => {
                    let regular = self.expression(&answer::pattern(run))?;
                    self.regular(regular)
                }
            });
        }
        Ok(self.builder.seq(parts))
    }
}

/// Attributes an error of the frames themselves to the first tool.
fn refused(calls: &Calls, error: CompileError) -> Rejected {
    let mut inputs = calls.tools.iter().filter_map(|tool| tool.input.constraint());
    let nothing = || Constraint::new(Source::Regex(String::new()), "tools");
    Rejected {
        constraint: inputs.next().cloned().unwrap_or_else(nothing),
        error,
    }
}
