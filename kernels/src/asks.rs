//! The input of the kernels of `draw.cu` for the draws of a pass, packed so that one copy transfers all of
//! it.
//!
//! ```text
//!   asks │ tokens │ biases │ masks         an ask says where its tokens, biases and mask are
//! ```
//!
//! The tokens of a history are transferred themselves, 4 bytes each, and the card counts them: building a
//! table of counts on the host would read every token. Drafts of one text share its tokens.

use super::shapes::{ASKED_BYTES, MOST_DRAW_WIDTH};
use lexiform_law::{Allowed, ByRank, History, Place, Purpose, Seeded, Warper};

/// The number of tokens of a block, and of bits of a word of a mask.
pub const BLOCK: usize = 32;
/// The bits of the flags of an ask.
const GREEDY: u32 = 1;
const CUT: u32 = 2;
const PENALISED: u32 = 4;

/// A draw requested from a row of a pass.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The number of the row in its pass.
    pub row: usize,
    /// The tokens that may come next.
    pub allowed: Allowed<'a>,
    /// The changes of the row, and the filters that cut it.
    pub warper: &'a Warper,
    /// The tokens before the row, if the warper reads them.
    pub history: History<'a>,
    /// The source of randomness.
    pub seeded: Seeded,
    /// The place of this draw in the sequence.
    pub place: Place,
}

/// Returns `true` if the kernels support this draw from a row of `width` logits: the choice of a token by
/// rank, among all tokens of the mask or among those that filters by rank keep.
pub fn serves(ask: &Ask<'_>, width: usize) -> bool {
    let is_token = ask.place.purpose == Purpose::Token && ask.place.round == 0;
    let is_known = is_token || ask.warper.is_greedy();
    is_known && ask.warper.by_rank().is_some() && (1..=MOST_DRAW_WIDTH).contains(&width)
}

/// The asks of a pass, as bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sent {
    /// The packed bytes.
    pub bytes: Vec<u8>,
    /// The number of asks.
    pub asks: usize,
    /// The offsets at which tokens, biases and masks begin.
    pub offsets: [usize; 3],
    /// The number of asks whose rows have changed logits.
    pub changed: usize,
    /// `true` if filters cut some of the rows.
    pub is_cut: bool,
}

impl Sent {
    /// Packs the draws of these asks, which the kernels must support, from rows of `width` logits.
    pub fn new(asks: &[Ask<'_>], width: usize) -> Self {
        let mut lists = Lists::default();
        let mut bytes = Vec::with_capacity(asks.len() * ASKED_BYTES);
        let blocks = width.div_ceil(BLOCK);
        for ask in asks {
            let before = bytes.len();
            lists.put(ask, blocks, &mut bytes);
            debug_assert_eq!(bytes.len() - before, ASKED_BYTES);
        }
        let mut add = |list: Vec<u32>| {
            let at = bytes.len();
            bytes.extend(list.into_iter().flat_map(u32::to_le_bytes));
            bytes.resize(bytes.len().next_multiple_of(16), 0);
            at
        };
        let offsets = [lists.tokens, lists.biases, lists.masks].map(&mut add);
        Sent {
            bytes,
            asks: asks.len(),
            offsets,
            changed: lists.changed as usize,
            is_cut: lists.is_cut,
        }
    }
}

/// The lists that asks refer to.
#[derive(Default)]
struct Lists {
    tokens: Vec<u32>,
    /// Tokens, each with the bits of the value that is added to its logit.
    biases: Vec<u32>,
    masks: Vec<u32>,
    mask_count: i32,
    changed: i32,
    is_cut: bool,
    /// The most recently listed text.
    text: Option<ListedText>,
}

/// A text whose tokens are in the list.
#[derive(Clone, Copy)]
struct ListedText {
    /// The addresses and lengths of its prompt and its answer in memory.
    held: [(*const u32, usize); 2],
    /// The positions in the list at which they begin, and at which the answer ends.
    listed: [u32; 3],
}

impl Lists {
    /// Adds an ask, in the order of the fields of `Asked` in `draw.cu`.
    fn put(&mut self, ask: &Ask<'_>, blocks: usize, bytes: &mut Vec<u8>) {
        let (warper, warping) = (ask.warper, ask.warper.warping());
        let filters = warper.by_rank().unwrap_or_default();
        let mask = self.mask(ask.allowed, blocks);
        let changed = self.changed(warper.changes_logits());
        for number in [warper.scale(), filters.top_p, filters.min_p] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(ask.seeded.seed().to_le_bytes());
        let mut word = |word: u32| bytes.extend(word.to_le_bytes());
        let place = [ask.place.position, ask.place.attempt, ask.seeded.sequence()];
        place.into_iter().for_each(&mut word);
        word(ask.row as u32);
        word(mask as u32);
        word(changed as u32);
        word(filters.top_k.unwrap_or(0));
        word(self.flags(ask, &filters));
        let penalties = [
            warping.repetition_penalty,
            warping.frequency_penalty,
            warping.presence_penalty,
        ];
        penalties.map(f32::to_bits).into_iter().for_each(&mut word);
        let history = match warper.penalises() {
            true => self.history(&ask.history),
            false => [0; 5],
        };
        history.into_iter().for_each(&mut word);
        self.bias(&warping.bias).into_iter().for_each(&mut word);
    }

    fn flags(&mut self, ask: &Ask<'_>, filters: &ByRank) -> u32 {
        let is_cut = !filters.keeps_all();
        self.is_cut |= is_cut;
        let flags = [
            (ask.warper.is_greedy(), GREEDY),
            (is_cut, CUT),
            (ask.warper.penalises(), PENALISED),
        ];
        let set = flags.into_iter().filter(|&(is_set, _)| is_set);
        set.fold(0, |flags, (_, bit)| flags | bit)
    }

    /// Returns the number of a mask; below 0 if everything is allowed.
    fn mask(&mut self, allowed: Allowed<'_>, blocks: usize) -> i32 {
        let Allowed::Words(words) = allowed else {
            return -1;
        };
        let end = self.masks.len() + blocks;
        self.masks.extend(words.iter().take(blocks));
        self.masks.resize(end, 0);
        self.mask_count += 1;
        self.mask_count - 1
    }

    /// Returns the number of a changed row; below 0 if it is not changed.
    fn changed(&mut self, is_changed: bool) -> i32 {
        if !is_changed {
            return -1;
        }
        self.changed += 1;
        self.changed - 1
    }

    /// Returns the positions of the prompt, the answer and its end, and the draft and its end.
    fn history(&mut self, history: &History<'_>) -> [u32; 5] {
        let held = [history.prompt, history.answer].map(|tokens| (tokens.as_ptr(), tokens.len()));
        let text = match self.text {
            Some(text) if text.held == held => text,
            _ => {
                let prompt = self.tokens.len() as u32;
                self.tokens.extend_from_slice(history.prompt);
                let answer = self.tokens.len() as u32;
                self.tokens.extend_from_slice(history.answer);
                let listed = [prompt, answer, self.tokens.len() as u32];
                ListedText { held, listed }
            }
        };
        self.text = Some(text);
        let draft = self.tokens.len() as u32;
        self.tokens.extend_from_slice(history.draft);
        let [prompt, answer, end] = text.listed;
        [prompt, answer, end, draft, self.tokens.len() as u32]
    }

    /// Returns the positions at which the biases of a request begin and end. Biases of one token follow each
    /// other in their order.
    fn bias(&mut self, biases: &[(u32, f32)]) -> [u32; 2] {
        let mut biases = biases.to_vec();
        biases.sort_by_key(|&(token, _)| token);
        let first = self.biases.len() as u32 / 2;
        let entries = biases
            .into_iter()
            .flat_map(|(token, bias)| [token, bias.to_bits()]);
        self.biases.extend(entries);
        [first, self.biases.len() as u32 / 2]
    }
}
