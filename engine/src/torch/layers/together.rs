//! Attention of many sequences at once.
//!
//! Decoding consists of sequences that feed a few tokens each. One after the other, every layer would start
//! some ten small operations for each of them, and a GPU would be idle most of the time: 64 sequences on 16
//! layers are ten thousand operations. So sequences of similar length attend together, padded to the longest
//! of them:
//!
//! ```text
//!   queries   [sequences, fed tokens, …]   a short feed repeats its first token; those rows are dropped
//!   keys      [sequences, blocks * size]   a short table repeats its first block; no query sees it
//! ```
//!
//! The keys are gathered, which costs a copy. Lengths of one group differ at most by a factor of two, so
//! padding at most doubles the work.
//!
//! Which tokens see which follows from positions. If a sequence feeds a tree, two numbers are not enough: its
//! nodes see the text, and in addition a few slots that are listed one by one.

use super::cache::Cache;
use super::kernel::{self, ALIGNED};
use super::layout::{Layout, Scoring};
use super::upload::{Sent, Span, Upload};
use crate::model::Feed;
use crate::model::tree::Sight;
use crate::torch::config::Heads;
use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// A sequence of a pass.
pub(crate) struct Member<'a> {
    pub(crate) feed: &'a Feed<'a>,
    /// The index of its first fed token among all fed tokens.
    pub(crate) first: usize,
    pub(crate) sight: Sight,
}

impl Member<'_> {
    fn count(&self) -> usize {
        self.feed.tokens.len()
    }

    fn end(&self) -> usize {
        self.feed.start + self.count()
    }

    /// Returns the fed token at this place among `count` of a group: a short feed repeats its first token.
    fn fed(&self, number: usize) -> usize {
        if number < self.count() { number } else { 0 }
    }
}

/// Returns the queries of a group, `count` for each sequence: the member, and the number of its fed token.
fn queries<'m, 'a>(members: &'m [Member<'a>], count: usize) -> impl Iterator<Item = (&'m Member<'a>, usize)> {
    let each = move |member: &'m Member<'a>| (0..count).map(move |number| (member, member.fed(number)));
    members.iter().flat_map(each)
}

/// Returns one number for each query of a group.
fn padded(members: &[Member<'_>], count: usize, value: impl Fn(&Member<'_>, usize) -> usize) -> Vec<i64> {
    queries(members, count)
        .map(|(member, number)| value(member, number) as i64)
        .collect()
}

/// Sequences that attend together, before their numbers are sent to the device.
pub(crate) struct Draft {
    sequences: i64,
    count: i64,
    /// The fed tokens of the queries, padded; absent if these are all fed tokens in order.
    queries: Option<Span>,
    /// The position of each query.
    positions: Span,
    /// The last slot of the text that each query sees; absent if it is the position.
    limits: Option<Span>,
    whole: Blocks,
    windowed: Option<Blocks>,
    /// The fed token of each row of the result; `None` for padding.
    pub(crate) owners: Vec<Option<usize>>,
}

/// The blocks that each sequence reads, padded, and the position at which they begin.
struct Blocks {
    each: i64,
    tables: Span,
    begins: Span,
    /// The columns that each query sees beyond the text, with their number per query; absent if there are no
    /// trees.
    branches: Option<(i64, Span)>,
}

/// Groups sequences by length: by the number of blocks that they need, rounded up to a power of two.
pub(crate) fn groups<'a>(members: Vec<Member<'a>>, block_size: usize) -> Vec<Vec<Member<'a>>> {
    let mut groups: Vec<(usize, Vec<Member<'a>>)> = Vec::new();
    for member in members {
        // Below some blocks, a longer table costs less than another group.
        let blocks = member.end().div_ceil(block_size).next_power_of_two().max(8);
        match groups.iter_mut().find(|(size, _)| *size == blocks) {
            Some((_, group)) => group.push(member),
            None => groups.push((blocks, vec![member])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

impl Draft {
    /// Creates the numbers of a group; `tokens` are fed in the whole pass.
    pub(crate) fn new(members: &[Member<'_>], tokens: usize, layout: &Layout, upload: &mut Upload) -> Self {
        let count = members.iter().map(Member::count).max().unwrap_or(0);
        let owner = |member: &Member<'_>, number| (number < member.count()).then_some(member.first + number);
        let owners = members
            .iter()
            .flat_map(|member| (0..count).map(move |number| owner(member, number)));
        let fed = padded(members, count, |member, number| member.first + number);
        let positions = |member: &Member<'_>, number| member.sight.seen(number, usize::MAX).len() - 1;
        let limits = |member: &Member<'_>, number| member.sight.seen(number, usize::MAX).text.end - 1;
        let has_trees = members.iter().any(|member| member.sight.is_tree());
        let needs_window = |&window: &i64| members.iter().any(|member| member.end() as i64 > window);
        let mut see = |window| Blocks::new((members, count), layout.block_size, window, upload);
        let whole = see(None);
        let windowed = layout.window.filter(needs_window).map(|window| see(Some(window)));
        let in_order = fed.iter().copied().eq(0..tokens as i64);
        Draft {
            sequences: members.len() as i64,
            count: count as i64,
            queries: (!in_order).then(|| upload.push(fed)),
            positions: upload.push(padded(members, count, positions)),
            limits: has_trees.then(|| upload.push(padded(members, count, limits))),
            whole,
            windowed,
            owners: owners.collect(),
        }
    }

    pub(crate) fn arrive(&self, sent: &Sent, layout: &Layout) -> Result<Group> {
        let see = |blocks: &Blocks, window| self.seen(blocks, window, sent, layout);
        let windowed = self.windowed.as_ref();
        Ok(Group {
            sequences: self.sequences,
            count: self.count,
            heads: layout.heads,
            scoring: layout.scoring,
            queries: self
                .queries
                .as_ref()
                .map(|queries| sent.get(queries))
                .transpose()?,
            whole: see(&self.whole, None)?,
            windowed: windowed.map(|blocks| see(blocks, layout.window)).transpose()?,
        })
    }

    /// Computes which cache rows are read, and which are seen by each query, on the device from blocks and
    /// positions.
    fn seen(
        &self,
        blocks: &Blocks,
        window: Option<i64>,
        sent: &Sent,
        layout: &Layout,
    ) -> Result<VisibleRows> {
        let (size, long) = (layout.block_size as i64, (Kind::Int64, layout.place.device));
        let length = blocks.each * size;
        let rows = sent
            .get(&blocks.tables)?
            .f_view([-1, 1])?
            .f_mul_scalar(size)?
            .f_add(&Tensor::f_arange(size, long)?)?
            .f_view([-1])?;
        let begins = sent.get(&blocks.begins)?.f_view([self.sequences, 1, 1])?;
        let at = begins.f_add(&Tensor::f_arange(length, long)?)?;
        let per_query = |span| sent.get(span)?.f_view([self.sequences, self.count, 1]);
        let positions = per_query(&self.positions)?;
        let limits = self.limits.as_ref().map(per_query).transpose()?;
        let mut hidden = at.f_gt_tensor(limits.as_ref().unwrap_or(&positions))?;
        if let Some(window) = window {
            let oldest = positions.f_sub_scalar(window)?;
            hidden = hidden.f_logical_or(&at.f_le_tensor(&oldest)?)?;
        }
        if let Some((depth, branches)) = &blocks.branches {
            let columns = sent.get(branches)?.f_view([self.sequences, self.count, *depth])?;
            hidden = hidden.f_scatter_value(2, &columns, 0)?;
        }
        let shape = [self.sequences, 1, self.count, length];
        let mask = Tensor::f_zeros(shape, (layout.place.kind, layout.place.device))?
            .f_masked_fill_(&hidden.f_unsqueeze(1)?, f64::NEG_INFINITY)?
            .f_repeat([1, 1, layout.heads.queries / layout.heads.keys, 1])?;
        Ok(VisibleRows { rows, mask })
    }
}

impl Blocks {
    fn new(
        (members, count): (&[Member<'_>], usize),
        size: usize,
        window: Option<i64>,
        upload: &mut Upload,
    ) -> Self {
        let window = window.map_or(usize::MAX, |window| window as usize);
        let from = |member: &Member<'_>| (member.feed.start + 1).saturating_sub(window) / size;
        let own = |member: &Member<'_>| member.feed.table[from(member)..member.end().div_ceil(size)].to_vec();
        let tables: Vec<Vec<u32>> = members.iter().map(own).collect();
        let longest = tables.iter().map(Vec::len).max().unwrap_or(0);
        let each = longest.next_multiple_of((ALIGNED as usize / size).max(1));
        let padded = tables.iter().flat_map(|table| {
            let rest = std::iter::repeat_n(&table[0], each - table.len());
            table.iter().chain(rest).map(|&block| i64::from(block))
        });
        let branches = branches(members, count, window, |member| from(member) * size);
        Blocks {
            each: each as i64,
            tables: upload.push(padded.collect()),
            begins: upload.push(
                members
                    .iter()
                    .map(|member| (from(member) * size) as i64)
                    .collect(),
            ),
            branches: branches.map(|(depth, columns)| (depth, upload.push(columns))),
        }
    }
}

/// Returns the columns of the nodes that each query of a group sees, as many as the deepest one has: the
/// others repeat their own column, which they see anyway.
fn branches(
    members: &[Member<'_>],
    count: usize,
    window: usize,
    begin: impl Fn(&Member<'_>) -> usize,
) -> Option<(i64, Vec<i64>)> {
    if !members.iter().any(|member| member.sight.is_tree()) {
        return None;
    }
    let branch = |(member, number): (&Member<'_>, usize)| -> Vec<i64> {
        let seen = member.sight.seen(number, window);
        let slots = seen.branch.iter().copied().chain([member.feed.start + number]);
        slots.map(|slot| (slot - begin(member)) as i64).collect()
    };
    let branches: Vec<Vec<i64>> = queries(members, count).map(branch).collect();
    let depth = branches.iter().map(Vec::len).max().unwrap_or(0);
    let padded = branches.iter().flat_map(|branch| {
        let own = branch.last().copied().unwrap_or(0);
        let rest = std::iter::repeat_n(own, depth - branch.len());
        branch.iter().copied().chain(rest)
    });
    Some((depth as i64, padded.collect()))
}

/// The rows of the cache that are read, and 0 or minus infinity for every query and row.
struct VisibleRows {
    rows: Tensor,
    mask: Tensor,
}

/// Sequences that attend together, on the device.
pub(crate) struct Group {
    sequences: i64,
    count: i64,
    heads: Heads,
    scoring: Scoring,
    queries: Option<Tensor>,
    whole: VisibleRows,
    windowed: Option<VisibleRows>,
}

impl Group {
    /// Attends for the queries of these sequences among those of all (`[tokens, query heads, size]`). Returns
    /// a row of all heads for each, padding included.
    pub(crate) fn attend(&self, cache: &Cache, queries: &Tensor, windowed: bool) -> Result<Tensor> {
        let Heads {
            queries: all,
            keys,
            size,
        } = self.heads;
        let (sequences, count, group) = (self.sequences, self.count, all / keys);
        let seen = self.windowed.as_ref().filter(|_| windowed).unwrap_or(&self.whole);
        let own = self
            .queries
            .as_ref()
            .map(|own| queries.f_index_select(0, own))
            .transpose()?;
        let folded = own
            .as_ref()
            .unwrap_or(queries)
            .f_view([sequences, count, keys, group, size])?
            .f_permute([0, 2, 3, 1, 4])?
            .f_reshape([sequences, keys, group * count, size])?;
        let read = |cache: &Tensor| {
            cache
                .f_index_select(0, &seen.rows)?
                .f_view([sequences, -1, keys, size])?
                .f_transpose(1, 2)
        };
        let (keys_read, values) = (read(&cache.keys)?, read(&cache.values)?);
        kernel::attention(&folded, &keys_read, &values, Some(&seen.mask), self.scoring)?
            .f_view([sequences, keys, group, count, size])?
            .f_permute([0, 3, 1, 2, 4])?
            .f_reshape([sequences * count, all * size])
    }
}
