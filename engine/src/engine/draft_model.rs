//! A small model that drafts for the big one.
//!
//! It reads the same tokens into a cache of its own and draws from its own rows, inside the same mask and warping. With
//! which random numbers depends on how the request wants drafts verified ([`Verification`]):
//!
//! * by the residual rule: with numbers of their own, and the row is kept with the token until it is verified. From then
//!   on the token *must* be verified, whatever it is: to drop it because it ends the text, or because its grammar is slow
//!   to say what follows, would make such tokens rarer than the law says. So it stays as the last of the draft, with
//!   nothing behind it.
//! * by drawing once: with the very numbers that the big model's draws will use, so that where the two models agree about
//!   a row, they draw the same token even at a high temperature.
//!
//! Its cache is a convenience. A sequence that finds no room in it goes without drafts; nobody is preempted for one.

use crate::blocks::{Blocks, Table};
use crate::config::EngineConfig;
use crate::engine::errand::Errands;
use crate::error::EngineError;
use crate::grammar::masks::Bounds;
use crate::model::logits::{Logits, Row};
use crate::model::{Feed, Model};
use crate::request::Verification;
use crate::sampling::crew;
use crate::sampling::{Columns, verification};
use crate::sequence::Sequence;
use crate::speculation::draft::{Draft, Source};
use lexiform::draft::Proposal;
use lexiform::law::{Allowed, History, Part, Place, Purpose, Row as _, Seeded};
use lexiform::vocab::Vocabulary;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A sequence that drafts and, unless this is about what follows the drafts it has, one more draft for it.
type Drawn = (usize, Option<Draft>);

/// A sequence that drafts, and what may come after its drafts.
struct Active {
    index: usize,
    bounds: Option<Bounds>,
}

/// What the small model has read of a sequence. Of the text only how much: a text is long, and a step adds little to it.
#[derive(Default)]
struct Track {
    table: Table,
    /// How many tokens of the sequence's text have their keys and values in the cache.
    text: usize,
    /// The drafts that were read behind them, which may have been rejected since.
    tail: Vec<u32>,
}

/// The small model and its cache.
pub(crate) struct DraftModel {
    model: Box<dyn Model>,
    blocks: Blocks,
    tracks: HashMap<u64, Track>,
    columns: Columns,
    vocabulary: Arc<Vocabulary>,
    max_feed: usize,
    draw_threads: usize,
}

impl DraftModel {
    pub(crate) fn new(
        mut model: Box<dyn Model>,
        vocabulary: Arc<Vocabulary>,
        config: &EngineConfig,
    ) -> Result<Self, EngineError> {
        model.create_cache(config.blocks, config.block_size)?;
        let columns = Columns::new(&vocabulary, model.vocab_size());
        model.leave_out(&columns.left_out(model.vocab_size()));
        Ok(DraftModel {
            blocks: Blocks::new(config.blocks, config.block_size),
            tracks: HashMap::new(),
            columns,
            max_feed: config.max_step_tokens,
            draw_threads: config.draw_threads,
            vocabulary,
            model,
        })
    }

    /// Forgets sequences that are gone.
    pub(crate) fn retain(&mut self, alive: impl Fn(u64) -> bool) {
        let gone = self.tracks.extract_if(|&id, _| !alive(id));
        for (_, track) in gone {
            self.blocks.release(track.table);
        }
    }

    /// Empties the cache, which may hold anything after a panic.
    pub(crate) fn reset(&mut self, config: &EngineConfig) {
        self.tracks.clear();
        self.blocks = Blocks::new(config.blocks, config.block_size);
    }

    /// Lengthens the drafts of these sequences, all of them by one token a pass. A sequence whose mask is not there within
    /// the grace drafts no further. Says how many passes that took.
    pub(crate) fn propose(
        &mut self,
        sequences: &mut [&mut Sequence],
        errands: &Errands,
        grace: Duration,
    ) -> Result<usize, EngineError> {
        let mut rounds = 0;
        let mut active: Vec<usize> = (0..sequences.len()).collect();
        active.retain(|&index| self.prepare(&mut *sequences[index]));
        let first: Vec<Drawn> = active.into_iter().map(|index| (index, None)).collect();
        let mut active = self.read(sequences, &first, errands, grace);
        while !active.is_empty() {
            let numbers: Vec<usize> = active.iter().map(|active| active.index).collect();
            let (logits, rows) = self.forward(sequences, &numbers)?;
            let drawn = self.draw(sequences, &active, logits, rows);
            active = self.read(sequences, &drawn, errands, grace);
            rounds += 1;
            active.retain(|active| self.prepare(&mut *sequences[active.index]));
        }
        Ok(rounds)
    }

    /// Drafts the tokens that were drawn where they are worth feeding; those sequences, with what may come next. Without a
    /// token this asks for the mask alone. Sampled tokens are drafted in any case; see the module.
    fn read(
        &self,
        sequences: &mut [&mut Sequence],
        drawn: &[Drawn],
        errands: &Errands,
        grace: Duration,
    ) -> Vec<Active> {
        let work = |(index, draft): &Drawn| {
            let (mut outlook, vocabulary) = (errands.outlook(sequences[*index]), self.vocabulary.clone());
            let draft = draft.clone();
            let work = move || {
                let is_new = draft.is_some();
                if let Some(draft) = draft
                    && !outlook.extend(draft, &vocabulary)?
                {
                    return Ok(None);
                }
                let bounds = outlook.bounds(outlook.drafts.len())?;
                Ok(Some((outlook.drafts.pop().filter(|_| is_new), bounds)))
            };
            (sequences[*index].request.owner.clone(), work)
        };
        // Without a grammar there is nothing that could take long.
        let has_grammar = |(index, _): &&Drawn| sequences[*index].request.grammar.is_some();
        let (slow, quick): (Vec<&Drawn>, Vec<&Drawn>) = drawn.iter().partition(has_grammar);
        let mut found: Vec<_> = quick.iter().map(|drawn| work(drawn).1().ok()).collect();
        found.extend(errands.together(slow.iter().map(|drawn| work(drawn)).collect(), grace));
        let mut going = Vec::new();
        for ((index, drawn), found) in quick.into_iter().chain(slow).zip(found) {
            let sequence = &mut *sequences[*index];
            match found {
                Some(Some((draft, bounds))) => {
                    sequence.drafts.extend(draft);
                    going.push(Active {
                        index: *index,
                        bounds,
                    });
                    continue;
                }
                Some(None) => (),
                None => sequence.put_on_parole(),
            }
            let is_sampled = |draft: &&Draft| matches!(draft.proposal, Proposal::Sampled(_));
            sequence.drafts.extend(drawn.iter().filter(is_sampled).cloned());
        }
        // Feeds and rows are in the order of the sequences.
        going.sort_by_key(|active| active.index);
        going
    }

    /// Draws one more draft for each of these sequences that has a row, on several threads if there is much to draw from.
    fn draw(
        &self,
        sequences: &mut [&mut Sequence],
        active: &[Active],
        mut logits: Logits,
        rows: Vec<Option<usize>>,
    ) -> Vec<Drawn> {
        for row in logits.rows_mut() {
            self.columns.clean(row);
        }
        let threads = crew::threads(self.draw_threads, logits.numbers());
        let mut rows = active.iter().zip(rows).peekable();
        let mut tasks = Vec::new();
        for (index, sequence) in sequences.iter_mut().enumerate() {
            let Some((active, row)) = rows.next_if(|(active, _)| active.index == index) else {
                continue;
            };
            let row = row.map(|row| self.columns.of(&logits, row));
            tasks.extend(row.map(|row| (index, sequence, row, &active.bounds)));
        }
        let drawn = crew::each(tasks, threads, |(index, sequence, row, bounds)| {
            let allowed = match (bounds, &sequence.request.grammar) {
                (Some(bounds), _) => Allowed::Words(bounds.mask.words()),
                (None, None) => Allowed::All,
                (None, Some(_)) => return None,
            };
            Some((index, Some(draw(sequence, row, allowed)?)))
        });
        drawn.into_iter().flatten().collect()
    }

    /// Whether the sequence can draft one more token: there is room for it in the draft and in the cache.
    fn prepare(&mut self, sequence: &mut Sequence) -> bool {
        let length = sequence.tokens.len() + sequence.drafts.len();
        if sequence.drafts.len() >= sequence.room().min(sequence.reach)
            || sequence.drafts.last().is_some_and(|last| last.is_last)
            || length > self.model.max_positions()
        {
            return false;
        }
        let track = self.tracks.entry(sequence.id).or_default();
        if track.table.blocks().is_empty() {
            let (table, text) = self.blocks.take_over(&sequence.tokens);
            *track = Track {
                table,
                text,
                tail: Vec::new(),
            };
            sequence.unchanged = sequence.tokens.len();
        }
        track.meet(sequence);
        let read = track.read();
        let end = length.min(read + self.max_feed);
        self.blocks.reserve(&mut track.table, read, end)
    }

    /// Feeds what is new of each sequence; the number of the row of each that was read to its end.
    fn forward(
        &mut self,
        sequences: &[&mut Sequence],
        active: &[usize],
    ) -> Result<(Logits, Vec<Option<usize>>), EngineError> {
        let fed: Vec<Vec<u32>> = active
            .iter()
            .map(|&index| {
                let from = self.tracks[&sequences[index].id].read();
                text_from(sequences[index], from).take(self.max_feed).collect()
            })
            .collect();
        let feeds = active.iter().zip(&fed).map(|(&index, tokens)| {
            let (sequence, track) = (&sequences[index], &self.tracks[&sequences[index].id]);
            let end = track.read() + tokens.len();
            Feed {
                tokens,
                start: track.read(),
                table: track.table.blocks(),
                rows: usize::from(end == sequence.tokens.len() + sequence.drafts.len()),
                parents: None,
                scale: sequence.warper.scale(),
            }
        });
        let feeds: Vec<Feed<'_>> = feeds.collect();
        if feeds.is_empty() {
            return Ok((Logits::default(), Vec::new()));
        }
        for round in self.blocks.take_copies() {
            self.model.copy_blocks(&round)?;
        }
        let logits = self.model.forward(&feeds)?;
        let mut number = 0;
        let mut rows = Vec::new();
        let ends: Vec<(usize, usize)> = feeds
            .iter()
            .map(|feed| (feed.start + feed.tokens.len(), feed.rows))
            .collect();
        for (&index, (end, wanted)) in active.iter().zip(ends) {
            rows.push((wanted == 1).then_some(number));
            number += wanted;
            let sequence = &sequences[index];
            if let Some(track) = self.tracks.get_mut(&sequence.id) {
                track.reach(end, sequence);
                // Drafts may be rejected; only what is certain is remembered for others.
                self.blocks.commit(&mut track.table, &sequence.tokens, track.text);
            }
        }
        Ok((logits, rows))
    }
}

impl Track {
    /// How many tokens were read.
    fn read(&self) -> usize {
        self.text + self.tail.len()
    }

    /// Keeps of what was read what the sequence still has, and without its last token: that is fed again if need be, since
    /// its row is what this is about.
    fn meet(&mut self, sequence: &mut Sequence) {
        let mut read = self.text.min(sequence.unchanged);
        if read == self.text {
            let pairs = self.tail.iter().zip(text_from(sequence, read));
            read += pairs.take_while(|&(&read, token)| read == token).count();
        }
        let length = sequence.tokens.len() + sequence.drafts.len();
        self.reach(read.min(length - 1), sequence);
        sequence.unchanged = sequence.tokens.len();
    }

    /// So many tokens of the sequence and of its drafts were read.
    fn reach(&mut self, end: usize, sequence: &Sequence) {
        self.text = end.min(sequence.tokens.len());
        self.tail.clear();
        self.tail
            .extend(text_from(sequence, self.text).take(end - self.text));
    }
}

/// The tokens of the text and of the drafts from a place on, without those before it.
fn text_from(sequence: &Sequence, from: usize) -> impl Iterator<Item = u32> {
    let text = sequence.tokens.get(from..).unwrap_or_default();
    let drafts = sequence.drafts.iter().map(|draft| draft.token);
    let drafts = drafts.skip(from.saturating_sub(sequence.tokens.len()));
    text.iter().copied().chain(drafts)
}

/// Draws the next draft: as the big model will draw it, or with numbers of its own.
fn draw(sequence: &Sequence, row: Row<'_>, allowed: Allowed<'_>) -> Option<Draft> {
    let drafted: Vec<u32> = sequence.drafts.iter().map(|draft| draft.token).collect();
    let (prompt, answer) = sequence.tokens.split_at(sequence.request.prompt.len());
    let history = History {
        prompt,
        answer,
        draft: &drafted,
    };
    let place = sequence.walk.place();
    let place = Place {
        position: place.position + drafted.len() as u32,
        ..place
    };
    let mut chooser = Seeded::new(sequence.request.sampling.seed, sequence.stream());
    let row = sequence.warper.row_of(row.logits, row.measured, history).ok()?;
    let (token, proposal) = match verification(sequence) {
        Verification::DrawOnce => (row.part(allowed).draw(place, &mut chooser)?, Proposal::Point),
        Verification::Residual => {
            // A later pass that drafts for this position again has numbers of its own. What is drafted again because it
            // was never verified is the same token.
            let place = place.to(Purpose::Draft).round(sequence.drafted as u32);
            let token = row.part(allowed).draw(place, &mut chooser)?;
            (token, Proposal::Sampled(Arc::new(row.into_owned())))
        }
    };
    Some(Draft {
        parent: sequence.drafts.len().checked_sub(1),
        token,
        source: Source::Model,
        state: None,
        proposal,
        is_last: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fairness::room::Room;
    use crate::request::law;
    use crate::request::{Request, Speculation};
    use lexiform::vocab::TokenKind;

    fn sequence(prompt: Vec<u32>) -> Sequence {
        let vocabulary = Vocabulary::new(&[(TokenKind::Text, "a"), (TokenKind::Special, "$")], &[1]);
        let request = Request {
            speculation: Speculation::all(),
            ..Request::new(prompt, 99)
        };
        let warper = law::warper(&request).expect("it is plain");
        let walk = law::local_walk(&request, &warper, &vocabulary.expect("two tokens"));
        let place = Arc::new(Room::new(9)).take(&None, 1).expect("an empty room");
        Sequence::new(0, request, (warper, walk), place)
    }

    fn draft(sequence: &mut Sequence, tokens: &[u32]) {
        for &token in tokens {
            sequence.drafts.push(Draft {
                token,
                parent: sequence.drafts.len().checked_sub(1),
                source: Source::Model,
                state: None,
                proposal: Proposal::Point,
                is_last: false,
            });
        }
    }

    /// Guards against copies of the whole text, and against forgetting where it was rewound: what is remembered are drafts, and
    /// what is known to be read is what a comparison of all tokens finds.
    #[test]
    fn a_track_holds_drafts_alone_and_knows_what_was_read() {
        let mut sequence = sequence((0..5000).collect());
        let (mut track, mut read) = (Track::default(), Vec::new());
        let turns: [(usize, &[u32], &[u32]); 7] = [
            // Back to so many tokens of the answer, tokens drawn, tokens drafted.
            (9, &[7], &[1, 2, 3]),
            (9, &[1, 2, 4], &[5, 6]),
            (9, &[5, 6, 7], &[]),
            (2, &[9, 9, 9, 9], &[1]),
            (9, &[1, 2], &[3, 4]),
            (0, &[8, 1], &[2]),
            (9, &[], &[4]),
        ];
        for (back, drawn, drafted) in turns {
            sequence.drafts.clear();
            if back < sequence.generated().len() {
                sequence.truncate(back);
            }
            drawn.iter().for_each(|&token| sequence.push(token));
            draft(&mut sequence, drafted);
            track.meet(&mut sequence);
            let now: Vec<u32> = text_from(&sequence, 0).collect();
            let same = now
                .iter()
                .zip(&read)
                .take_while(|(now, read)| now == read)
                .count();
            assert_eq!(track.read(), same.min(now.len() - 1), "{now:?}");
            track.reach(now.len(), &sequence);
            assert_eq!((track.read(), track.tail.len()), (now.len(), drafted.len()));
            read = now;
        }
    }
}
