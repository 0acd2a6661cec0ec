//! Mixtures of experts: the launches of a layer in whose second half each token uses a few networks, and the
//! lists that they share.
//!
//! ```text
//!   x ─ norm ─► normed ─┬─ [router] ─► scores ─ route ─► lists
//!                       └─ experts_up ─► gated ─ experts_down ─► products ─ sum_experts ─► x        all after route read the lists
//! ```
//!
//! A *pair* is a token with one of its experts. Pairs are sorted by expert, and the pairs of an expert are
//! processed in chunks of 16, for each of which its weights are read once. The card writes the lists and
//! reads them: the host knows only the largest number of pairs.

use super::node::{Node, Place};
use super::products::{After, Before, Linear};
use super::shapes::{Norm, int, node};
use super::step::Step;

/// The most experts of a layer: each lane of the router holds 16 scores.
pub const MOST_EXPERTS: usize = 512;
/// The most experts of a token: each takes one lane of the router.
pub const MOST_CHOSEN: usize = 32;
/// The number of pairs for which an expert's weights are read once.
const CHUNK: usize = 16;
/// The number of pairs that the sorting block processes at once.
const TILE_PAIRS: usize = 1024;
/// The rows and columns of a stage of a product, padded to avoid bank conflicts, and the number of stages.
const STAGE_ROWS: usize = 32;
const PITCH: usize = 512 + 8;
const STAGES: usize = 4;
/// The sums of a row of a warp, padded to avoid bank conflicts.
const SUMS: usize = 20;

/// The experts of a model, the same in all layers that have experts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mixture {
    /// The number of experts.
    pub experts: usize,
    /// The number of experts that a token uses.
    pub chosen: usize,
    /// The inner width of an expert, after its gate.
    pub inner: usize,
    /// `true` if the shares of a token's experts sum to one.
    pub is_normalised: bool,
    /// For each layer, `true` if it has experts.
    pub layers: Vec<bool>,
}

/// An intermediate result of a layer with experts, in bf16 unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Room {
    /// `[tokens, experts]`: the scores of the router.
    Scores,
    /// `f32` `[tokens, chosen]`: the share of each expert of a token, by descending score.
    Shares,
    /// The lists of `i32` that assign pairs to experts.
    Lists,
    /// `[pairs, inner]`: the gated outputs of experts.
    Gated,
    /// `[pairs, hidden]`: the outputs of experts.
    Products,
}

/// A list of `i32` that assigns pairs to experts, in the order in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// `[tokens, chosen]`: experts by descending score.
    Choices,
    /// `[tokens, chosen]`: the place of each pair among all pairs.
    Places,
    /// `[pairs]`: the token of each pair.
    Owners,
    /// `[experts + 1]`: the first pair of each expert.
    Firsts,
    /// `[experts + 1]`: the number of chunks before each expert.
    Chunks,
    /// `[chunks]`: the expert of each chunk.
    ExpertsOf,
}

impl Mixture {
    /// Returns the largest length of each list, for a pass of `tokens` tokens.
    pub fn lists(&self, tokens: usize) -> [(List, usize); 6] {
        let pairs = tokens * self.chosen;
        // The last chunk of an expert may have only one pair; the others are full.
        let chunks = pairs / CHUNK + self.experts.min(pairs);
        [
            (List::Choices, pairs),
            (List::Places, pairs),
            (List::Owners, pairs),
            (List::Firsts, self.experts + 1),
            (List::Chunks, self.experts + 1),
            (List::ExpertsOf, chunks),
        ]
    }

    /// Returns `true` if this layer has experts.
    pub fn is_in(&self, layer: usize) -> bool {
        self.layers.get(layer) == Some(&true)
    }

    /// Returns the sizes that no kernel supports, for experts between rows of `hidden` numbers: the name of
    /// each, its value, and the supported values.
    pub(super) fn lacking(&self, hidden: usize) -> Vec<(&'static str, usize, &'static str)> {
        let is_tiled = |width: usize| width > 0 && width.is_multiple_of(16);
        let most_chosen = MOST_CHOSEN.min(self.experts);
        let sizes = [
            (
                (1..=MOST_EXPERTS).contains(&self.experts),
                ("experts", self.experts, "up to 512"),
            ),
            (
                (1..=most_chosen).contains(&self.chosen),
                ("experts of a token", self.chosen, "up to 32"),
            ),
            (
                is_tiled(self.inner),
                ("inner of experts", self.inner, "a multiple of 16"),
            ),
            (
                is_tiled(hidden),
                ("hidden before experts", hidden, "a multiple of 16"),
            ),
        ];
        let sizes = sizes.into_iter().filter(|&(is_taken, _)| !is_taken);
        sizes.map(|(_, size)| size).collect()
    }

    /// Returns the bytes of each intermediate result of a pass of `tokens` tokens between rows of `hidden`
    /// numbers.
    pub fn rooms(&self, tokens: usize, hidden: usize) -> [(Room, usize); 5] {
        let (pairs, lists) = (tokens * self.chosen, self.lists(tokens).into_iter());
        [
            (Room::Scores, tokens * self.experts * 2),
            (Room::Shares, pairs * 4),
            (Room::Lists, 4 * lists.map(|(_, numbers)| numbers).sum::<usize>()),
            (Room::Gated, pairs * self.inner * 2),
            (Room::Products, pairs * hidden * 2),
        ]
    }
}

/// Returns the bytes of shared memory of a block of a product: stages of weights and vectors, the sums of
/// eight warps, and four numbers and two barriers for each stage.
fn shared_bytes() -> usize {
    STAGES * (STAGE_ROWS + CHUNK) * PITCH * 2 + 8 * STAGE_ROWS * SUMS * 4 + STAGES * (16 + 16)
}

/// The experts of a layer, with their inputs and outputs.
#[derive(Clone, Copy, Debug)]
pub struct Routed<'a, B> {
    /// The sizes of the experts.
    pub mixture: &'a Mixture,
    /// The norm before, whose output the router and the experts read.
    pub norm: Before<B>,
    /// `[experts, hidden]`.
    pub router: Place<B>,
    /// `[experts, 2 · inner, hidden]`: for each expert the gates, then the values that they gate.
    pub ups: Place<B>,
    /// `[experts, hidden, inner]`.
    pub downs: Place<B>,
    /// `i32` `[tokens]`; below 0 for rows of padding, which use no expert.
    pub slots: Place<B>,
    /// `i32` `[1]`, 0.
    pub arrived: Place<B>,
    /// `[tokens, hidden]`, to which the result is added.
    pub x: Place<B>,
    /// The places of the intermediate results.
    pub room: fn(Room) -> Place<B>,
    /// A multiple of 16.
    pub hidden: usize,
    /// The number of tokens of the pass.
    pub tokens: usize,
    /// The number of multiprocessors of the card. If it is 0, the library computes the router's product, and
    /// one block computes those of the experts.
    pub multiprocessors: usize,
}

impl<B: Copy> Routed<'_, B> {
    /// Returns the steps that compute the experts. The norm is a separate launch, as both the router and the
    /// experts read it.
    pub fn steps(&self) -> Vec<Step<B>> {
        let norm = Norm {
            x: self.x,
            scale: self.norm.scale,
            out: self.norm.out,
            rows: None,
            width: self.hidden,
            count: self.tokens,
            eps: self.norm.eps,
        };
        let router = Linear {
            weights: self.router,
            rounded: None,
            x: self.norm.out,
            before: None,
            out: (self.room)(Room::Scores),
            rows: self.mixture.experts,
            columns: self.hidden,
            vectors: self.tokens,
            after: After::Plain,
        };
        let mut steps = vec![Step::Launch(norm.node())];
        steps.extend(router.steps(self.multiprocessors));
        steps.extend(self.nodes().map(Step::Launch));
        steps
    }

    /// Returns the launches after the router.
    pub fn nodes(&self) -> [Node<B>; 4] {
        let (hidden, inner) = (self.hidden, self.mixture.inner);
        let [gated, products] = [Room::Gated, Room::Products].map(self.room);
        let (up, down) = ((self.ups, self.norm.out, gated), (self.downs, gated, products));
        [
            self.route(),
            self.product(
                "experts_up",
                up,
                Some(self.list(List::Owners)),
                [2 * inner, hidden],
            ),
            self.product("experts_down", down, None, [hidden, inner]),
            self.sum(),
        ]
    }

    fn list(&self, list: List) -> Place<B> {
        let before = self.mixture.lists(self.tokens).into_iter();
        let before = before.take_while(|&(other, _)| other != list);
        let lists = (self.room)(Room::Lists);
        Place {
            offset: lists.offset + 4 * before.map(|(_, numbers)| numbers).sum::<usize>(),
            ..lists
        }
    }

    fn route(&self) -> Node<B> {
        let mixture = self.mixture;
        let arguments = vec![
            (self.room)(Room::Scores).into(),
            self.slots.into(),
            self.list(List::Choices).into(),
            (self.room)(Room::Shares).into(),
            self.list(List::Places).into(),
            self.list(List::Owners).into(),
            self.list(List::Firsts).into(),
            self.list(List::Chunks).into(),
            self.list(List::ExpertsOf).into(),
            self.arrived.into(),
            int(self.tokens),
            int(mixture.experts),
            int(mixture.chosen),
            int(usize::from(mixture.is_normalised)),
        ];
        let shared = 4 * (TILE_PAIRS + MOST_EXPERTS + 1);
        node("route_tokens", [self.tokens.div_ceil(8), 1, 1], shared, arguments)
    }

    fn product(
        &self,
        name: &str,
        (weights, x, out): (Place<B>, Place<B>, Place<B>),
        owners: Option<Place<B>>,
        [rows, columns]: [usize; 2],
    ) -> Node<B> {
        let arguments = vec![
            weights.into(),
            x.into(),
            owners.into(),
            self.list(List::Firsts).into(),
            self.list(List::Chunks).into(),
            self.list(List::ExpertsOf).into(),
            out.into(),
            int(self.mixture.experts),
            int(rows),
            int(columns),
        ];
        node(
            name,
            [self.multiprocessors.max(1), 1, 1],
            shared_bytes(),
            arguments,
        )
    }

    fn sum(&self) -> Node<B> {
        let arguments = vec![
            (self.room)(Room::Products).into(),
            (self.room)(Room::Shares).into(),
            self.list(List::Places).into(),
            self.x.into(),
            int(self.hidden),
            int(self.mixture.chosen),
        ];
        let grid = [self.hidden.div_ceil(2048), self.tokens, 1];
        node("sum_experts", grid, 0, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::MOST_SHARED;
    use crate::shapes::tests::most_shared;

    fn mixture(experts: usize, chosen: usize) -> Mixture {
        Mixture {
            experts,
            chosen,
            inner: 768,
            is_normalised: true,
            layers: vec![true],
        }
    }

    #[test]
    fn launches_ask_for_no_more_shared_memory_than_the_table_says() {
        let most = most_shared();
        let mixture = mixture(MOST_EXPERTS, 8);
        let at = Place::start(());
        let routed = Routed {
            mixture: &mixture,
            norm: Before {
                scale: at,
                out: at,
                wanted: None,
                eps: 1e-6,
            },
            router: at,
            ups: at,
            downs: at,
            slots: at,
            arrived: at,
            x: at,
            room: |_| Place::start(()),
            hidden: 2048,
            tokens: 64,
            multiprocessors: 132,
        };
        for node in routed.nodes() {
            let most = most[node.kernel.name];
            assert!(node.shared <= most, "{}: {}", node.kernel.name, node.shared);
            assert!(most as usize <= MOST_SHARED);
        }
    }

    /// There is room for the chunks of all experts, whatever the tokens choose.
    #[test]
    fn there_is_room_for_the_chunks_of_any_choice() {
        for (experts, chosen, tokens) in [(8, 2, 1), (8, 2, 100), (128, 8, 3), (5, 5, 77), (512, 1, 4000)] {
            let lists = mixture(experts, chosen).lists(tokens);
            let room = lists[lists.len() - 1].1;
            let mut pairs = tokens * chosen;
            // The largest number of chunks: one pair for each expert while there are pairs, whole chunks for
            // the rest.
            let mut chunks = 0;
            for left in (0..experts).rev() {
                // The pairs that the other experts cannot take.
                let own = pairs.saturating_sub(left * tokens).max(usize::from(pairs > 0));
                let own = if left == 0 { pairs } else { own.min(tokens) };
                chunks += own.div_ceil(CHUNK);
                pairs -= own;
            }
            assert!(
                chunks <= room,
                "{experts}, {chosen}, {tokens}: {chunks} and {room}"
            );
        }
    }
}
