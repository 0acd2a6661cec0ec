//! Attention over the paged cache.
//!
//! Everything that is the same for all layers is computed once per pass, in a [`Plan`]: which cache rows are
//! written, which of them each sequence reads, and which tokens attend to which. A layer then writes its keys
//! and values and attends.
//!
//! ```text
//!   cache of a layer   row ─► │ … │ 64 65 66 67 … 95 │ … │         rows of a sequence: block * size + offset
//!                                  └─ sequence A ─┘
//!   blocks in a row    keys are a view of the cache, nothing is copied
//!   blocks scattered   keys are gathered row by row (a shared prefix, a crowded cache)
//! ```
//!
//! The query heads that share a key head are placed along the query axis, so that attention has as many heads
//! as the cache: no key is repeated, and every kernel of torch can be used.
//!
//! Tokens of the text see a stretch of it; nodes of a tree see a stretch and some slots after it, see
//! [`tree`](crate::model::tree).
//!
//! On the CPU, the loops of [`look`] handle sequences that feed only a few tokens, and need neither views nor
//! masks. Where the loops cannot be used, [`together`] lets these sequences attend at once.

use super::cache::Cache;
use super::kernel::{self, ALIGNED};
use super::layout::{Layout, Scoring};
use super::look;
use super::together::{self, Group, Member};
use super::upload::Upload;
use crate::model::Feed;
use crate::model::tree::Sight;
use crate::torch::config::Heads;
use crate::torch::crew::Crew;
use crate::torch::loops::fused;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use tch::{Device, Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// The cache rows that a sequence reads.
enum Rows {
    /// A number of rows from the first one on: the first row and the number.
    Run(i64, i64),
    /// These rows.
    Scattered(Tensor),
}

/// The rows that one sequence's queries see.
struct View {
    rows: Rows,
    /// 0 or minus infinity for every (query, row), one copy for each query head of a key head; absent if a
    /// single query sees all rows.
    mask: Option<Tensor>,
}

/// The way in which a sequence attends.
enum AttentionWay {
    /// By the loops: its blocks, and the slots that its tokens see.
    Loops { table: Vec<u32>, sight: Sight },
    /// By torch: the views for layers without a window and for layers with one.
    Torch { whole: View, windowed: Option<View> },
}

/// One sequence's part of the pass.
struct SequencePart {
    /// The index of its first fed token among all fed tokens.
    first: i64,
    count: i64,
    way: AttentionWay,
}

/// The parts of a pass that are the same for all layers.
pub(crate) struct Plan {
    pub(crate) tokens: Tensor,
    pub(crate) positions: Tensor,
    /// The cache rows of the fed tokens.
    pub(crate) slots: Tensor,
    pub(crate) host_positions: Vec<i64>,
    host_slots: Vec<i64>,
    block_size: usize,
    window: usize,
    /// The fed tokens whose logits are wanted; `None` if all are.
    pub(crate) wanted: Option<Tensor>,
    groups: Vec<Group>,
    /// The sequences that attend alone.
    parts: Vec<SequencePart>,
    /// The index of each fed token's result among those of all groups and then all parts; absent if they are
    /// in order.
    picks: Option<Tensor>,
    heads: Heads,
    scoring: Scoring,
}

/// Returns the cache row of a slot.
fn row(feed: &Feed<'_>, slot: usize, block_size: usize) -> i64 {
    i64::from(feed.table[slot / block_size]) * block_size as i64 + (slot % block_size) as i64
}

/// The most tokens that a sequence may feed to attend by the loops, where these can be used and torch is
/// faster with more tokens: a token and its drafts, and the end of a prompt whose beginning is known.
pub(crate) const FEW_QUERIES: usize = 64;
/// The most tokens that a sequence may feed to attend together with others, where the loops cannot be used.
const FEW_TOGETHER: usize = 16;

/// The pieces of attention work for each thread of a crew, if there are fewer tokens.
const LOOKS: usize = 2;

impl Plan {
    pub(crate) fn new(feeds: &[Feed<'_>], layout: Layout) -> Result<Self> {
        let (mut tokens, mut positions, mut slots, mut wanted) = (vec![], vec![], vec![], vec![]);
        let (mut members, mut parts) = (Vec::new(), Vec::new());
        for feed in feeds {
            let (first, count) = (tokens.len(), feed.tokens.len());
            let end = feed.start + count;
            tokens.extend(feed.tokens.iter().map(|&token| i64::from(token)));
            let sight = Sight::of(feed);
            positions.extend(sight.positions().map(|position| position as i64));
            slots.extend((feed.start..end).map(|slot| row(feed, slot, layout.block_size)));
            wanted.extend((tokens.len() - feed.rows) as i64..tokens.len() as i64);
            match layout.looks {
                None if count <= FEW_TOGETHER => members.push(Member { feed, first, sight }),
                Some(most) if count <= most => {
                    let table = feed.table.to_vec();
                    parts.push(SequencePart::new(
                        first,
                        feed,
                        AttentionWay::Loops { table, sight },
                    ));
                }
                _ => parts.push(SequencePart::new(
                    first,
                    feed,
                    AttentionWay::torch(feed, &sight, layout)?,
                )),
            }
        }
        let mut drafts = Vec::new();
        let mut upload = Upload::default();
        for group in together::groups(members, layout.block_size) {
            match group.as_slice() {
                [Member { feed, first, sight }] => {
                    parts.push(SequencePart::new(
                        *first,
                        feed,
                        AttentionWay::torch(feed, sight, layout)?,
                    ));
                }
                members => drafts.push(together::Draft::new(members, tokens.len(), &layout, &mut upload)),
            }
        }
        let picks = picks(&drafts, &parts, tokens.len()).map(|picks| upload.push(picks));
        let (all, host_positions, host_slots) =
            (wanted.len() == tokens.len(), positions.clone(), slots.clone());
        let [tokens, positions, slots, wanted] =
            [tokens, positions, slots, wanted].map(|values| upload.push(values));
        let sent = upload.send(layout.place.device)?;
        Ok(Plan {
            tokens: sent.get(&tokens)?,
            positions: sent.get(&positions)?,
            slots: sent.get(&slots)?,
            host_positions,
            host_slots,
            wanted: if all { None } else { Some(sent.get(&wanted)?) },
            groups: drafts
                .iter()
                .map(|draft| draft.arrive(&sent, &layout))
                .collect::<Result<_>>()?,
            parts,
            picks: picks.map(|picks| sent.get(&picks)).transpose()?,
            heads: layout.heads,
            scoring: layout.scoring,
            block_size: layout.block_size,
            window: layout.window.map_or(usize::MAX, |window| window as usize),
        })
    }

    /// Writes a layer's keys and values (`[tokens, key heads * size]`) and lets the queries
    /// (`[tokens, query heads, size]`) attend to what they may see; returns `[tokens, query heads * size]`.
    pub(crate) fn attend(
        &self,
        cache: &mut Cache,
        queries: &Tensor,
        keys: &Tensor,
        values: &Tensor,
        windowed: bool,
    ) -> Result<Tensor> {
        let _ = cache.keys.f_index_copy_(0, &self.slots, keys)?;
        let _ = cache.values.f_index_copy_(0, &self.slots, values)?;
        let groups = self
            .groups
            .iter()
            .map(|group| group.attend(cache, queries, windowed));
        let parts = self
            .parts
            .iter()
            .map(|part| self.attend_by_torch(cache, queries, part, windowed));
        let mut rows = groups.chain(parts).collect::<Result<Vec<Tensor>>>()?;
        let rows = match rows.len() {
            1 => rows.remove(0),
            _ => Tensor::f_cat(&rows, 0)?,
        };
        match &self.picks {
            Some(picks) => rows.f_index_select(0, picks),
            None => Ok(rows),
        }
    }

    /// Does the same for rows `[queries | keys | values]` on the CPU, by the loops as far as possible.
    pub(crate) fn attend_fused(
        &self,
        crew: &Crew,
        cache: &mut Cache,
        rows: &Tensor,
        windowed: bool,
    ) -> Result<Tensor> {
        let Heads { queries, size, .. } = self.heads;
        let (tokens, width) = (rows.size()[0], queries * size);
        let (cached_keys, cached_values) = (&mut cache.keys, &mut cache.values);
        look::store(
            fused::floats(rows),
            self.heads,
            &self.host_slots,
            fused::floats_mut(cached_keys),
            fused::floats_mut(cached_values),
        );
        let mut out = Tensor::f_empty([tokens, width], (Kind::Float, Device::Cpu))?;
        for part in &self.parts {
            if matches!(part.way, AttentionWay::Torch { .. }) {
                let heads = rows.f_narrow(1, 0, width)?.f_view([tokens, queries, size])?;
                let attended = self.attend_by_torch(cache, &heads, part, windowed)?;
                out.f_narrow(0, part.first, part.count)?.f_copy_(&attended)?;
            }
        }
        self.look(
            crew,
            cache,
            fused::floats(rows),
            windowed,
            fused::floats_mut(&mut out),
        );
        Ok(out)
    }

    /// Computes attention for the tokens that attend by the loops, shared between threads by tokens and, if
    /// there are few tokens, by key heads.
    fn look(&self, crew: &Crew, cache: &Cache, rows: &[f32], windowed: bool, out: &mut [f32]) {
        let Heads { queries, keys, size } = self.heads;
        let (width, keys) = ((queries * size) as usize, keys as usize);
        let pieces = match crew.threads() {
            1 => 1,
            threads => (LOOKS * threads).div_ceil((out.len() / width).max(1)).min(keys),
        };
        let heads = keys.div_ceil(pieces);
        let of_parts: Vec<_> = self
            .parts
            .iter()
            .map(|part| self.looking(part, cache, rows, windowed))
            .collect();
        let mut rest = out.chunks_exact_mut(width);
        let mut looks = Vec::new();
        for (part, looking) in self.parts.iter().zip(&of_parts) {
            for (token, out) in rest.by_ref().take(part.count as usize).enumerate() {
                let Some(looking) = looking else { continue };
                for (number, out) in out.chunks_mut(heads * (width / keys)).enumerate() {
                    let key_heads = number * heads..(number * heads + heads).min(keys);
                    looks.push((looking, (token, key_heads), Mutex::new(out)));
                }
            }
        }
        crew.each(looks.len(), &|number| {
            let (looking, place, out) = &looks[number];
            let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
            look::look(looking, place.clone(), &mut out);
        });
    }

    /// Returns the queries of a part and what they see, if they attend by the loops.
    fn looking<'a>(
        &self,
        part: &'a SequencePart,
        cache: &'a Cache,
        rows: &'a [f32],
        windowed: bool,
    ) -> Option<look::Looking<'a>> {
        let AttentionWay::Loops { table, sight } = &part.way else {
            return None;
        };
        let Heads { queries, keys, size } = self.heads;
        let row_width = ((queries + 2 * keys) * size) as usize;
        Some(look::Looking {
            heads: self.heads,
            rows: &rows[part.first as usize * row_width..][..part.count as usize * row_width],
            sight,
            scoring: self.scoring,
            window: if windowed { self.window } else { usize::MAX },
            table,
            block_size: self.block_size,
            keys: fused::floats(&cache.keys),
            values: fused::floats(&cache.values),
        })
    }

    fn attend_by_torch(
        &self,
        cache: &Cache,
        queries: &Tensor,
        part: &SequencePart,
        windowed: bool,
    ) -> Result<Tensor> {
        let AttentionWay::Torch {
            whole,
            windowed: near,
        } = &part.way
        else {
            return Err(TchError::Convert(
                "a sequence planned for the loops came to torch".to_string(),
            ));
        };
        let view = near.as_ref().filter(|_| windowed).unwrap_or(whole);
        self.attend_one(
            cache,
            &queries.f_narrow(0, part.first, part.count)?,
            part.count,
            view,
        )
    }

    fn attend_one(&self, cache: &Cache, queries: &Tensor, count: i64, view: &View) -> Result<Tensor> {
        let Heads {
            queries: all,
            keys: groups,
            size,
        } = self.heads;
        let group = all / groups;
        let folded = match count {
            1 => queries.f_reshape([1, groups, group, size])?,
            _ => queries
                .f_view([count, groups, group, size])?
                .f_permute([1, 2, 0, 3])?
                .f_reshape([1, groups, group * count, size])?,
        };
        let (keys, values) = (
            self.read(&cache.keys, &view.rows)?,
            self.read(&cache.values, &view.rows)?,
        );
        let mask = view.mask.as_ref();
        let out = kernel::attention(&folded, &keys, &values, mask, self.scoring)?;
        match count {
            1 => out.f_reshape([1, all * size]),
            _ => out
                .f_view([groups, group, count, size])?
                .f_permute([2, 0, 1, 3])?
                .f_reshape([count, all * size]),
        }
    }

    /// Returns the rows of one sequence as `[1, key heads, rows, size]`.
    fn read(&self, cache: &Tensor, rows: &Rows) -> Result<Tensor> {
        let read = match rows {
            Rows::Run(first, count) => cache.f_narrow(0, *first, *count)?,
            Rows::Scattered(rows) => cache.f_index_select(0, rows)?,
        };
        read.f_view([1, -1, self.heads.keys, self.heads.size])?
            .f_transpose(1, 2)
    }
}

impl SequencePart {
    fn new(first: usize, feed: &Feed<'_>, way: AttentionWay) -> Self {
        SequencePart {
            first: first as i64,
            count: feed.tokens.len() as i64,
            way,
        }
    }
}

/// Returns the row of the result of each of `tokens` fed tokens, unless these are their own numbers.
fn picks(groups: &[together::Draft], parts: &[SequencePart], tokens: usize) -> Option<Vec<i64>> {
    let grouped = groups.iter().flat_map(|group| group.owners.iter().copied());
    let alone = parts.iter().flat_map(|part| part.first..part.first + part.count);
    let mut picks = vec![0; tokens];
    let mut rows = 0;
    for (row, owner) in grouped.chain(alone.map(|token| Some(token as usize))).enumerate() {
        if let Some(token) = owner {
            picks[token] = row as i64;
        }
        rows = row + 1;
    }
    let in_order = rows == tokens && picks.is_sorted();
    (!in_order).then_some(picks)
}

impl AttentionWay {
    fn torch(feed: &Feed<'_>, sight: &Sight, layout: Layout) -> Result<Self> {
        let end = (feed.start + feed.tokens.len()) as i64;
        let windowed = layout.window.filter(|&window| end > window);
        let windowed = windowed
            .map(|window| View::new(feed, sight, window as usize, layout))
            .transpose()?;
        Ok(AttentionWay::Torch {
            whole: View::new(feed, sight, usize::MAX, layout)?,
            windowed,
        })
    }
}

impl View {
    fn new(feed: &Feed<'_>, sight: &Sight, window: usize, layout: Layout) -> Result<Self> {
        let end = feed.start + feed.tokens.len();
        // No token sees further back than the first.
        let from = sight.seen(0, window).text.start;
        let mask = match feed.tokens.len() {
            1 => None,
            count => Some(mask(sight, count, from..end, window, layout)?),
        };
        Ok(View {
            rows: rows(feed, from..end, layout)?,
            mask,
        })
    }
}

fn rows(feed: &Feed<'_>, slots: Range<usize>, layout: Layout) -> Result<Rows> {
    let size = layout.block_size;
    let blocks = &feed.table[slots.start / size..slots.end.div_ceil(size)];
    if blocks.windows(2).all(|pair| pair[1] == pair[0] + 1) {
        return Ok(Rows::Run(row(feed, slots.start, size), slots.len() as i64));
    }
    let rows: Vec<i64> = slots.map(|slot| row(feed, slot, size)).collect();
    Ok(Rows::Scattered(
        Tensor::f_from_slice(&rows)?.f_to_device(layout.place.device)?,
    ))
}

/// Returns a mask: 0 where one of the `count` fed tokens sees one of these slots, minus infinity elsewhere.
fn mask(sight: &Sight, count: usize, slots: Range<usize>, window: usize, layout: Layout) -> Result<Tensor> {
    let (place, heads) = (layout.place, layout.heads);
    let (from, width) = (slots.start, slots.len());
    let aligned = width.next_multiple_of(ALIGNED as usize);
    let mut bias = vec![f32::NEG_INFINITY; count * aligned];
    for (number, bias) in bias.chunks_exact_mut(aligned).enumerate() {
        let seen = sight.seen(number, window);
        bias[seen.text.start - from..seen.text.end - from].fill(0.0);
        seen.branch.iter().for_each(|slot| bias[slot - from] = 0.0);
    }
    let bias = Tensor::f_from_slice(&bias)?
        .f_view([1, 1, count as i64, aligned as i64])?
        .f_to_device(place.device)?
        .f_to_kind(place.kind)?;
    bias.f_repeat([1, 1, heads.queries / heads.keys, 1])?
        .f_narrow(3, 0, width as i64)
}
