//! Stores under long traffic: neither their own count of bytes nor the memory of the process exceeds its
//! bound.
//!
//! `cargo xtask soak drafts` runs a million requests; a test run has time for some thousands.

use super::*;
use lexiform::vocab::TokenKind;

/// The environment variable with the number of requests.
const REQUESTS: &str = "LEXIFORM_DRAFT_REQUESTS";
/// The number of lines of the table.
const LINES: usize = 10;
/// The number of tokens of the vocabulary.
const WIDTH: u32 = 4096;

/// SplitMix64.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }

    /// Returns a number below `bound`; smaller ones are more frequent, as with words.
    fn skewed(&mut self, bound: u64) -> u64 {
        (0..3).map(|_| self.below(bound)).min().unwrap_or(0)
    }
}

/// Returns a tool call: the tokens of its fields, which are the same in every call, and values that differ.
/// Each token comes with the state of the grammar before it.
fn call(tool: u64, numbers: &mut RandomNumbers) -> Vec<(u64, u32)> {
    let mut call = Vec::new();
    for field in 0..4 {
        let of_field = |part: u64| ((tool * 64 + field * 8 + part) % u64::from(WIDTH)) as u32;
        for part in 0..4 {
            call.push((tool << 16 | field << 8 | part, of_field(part)));
        }
        for place in 0..1 + numbers.below(6) {
            // In a free string the state is the same everywhere.
            let state = tool << 16 | field << 8 | (4 + place.min(1));
            call.push((state, numbers.skewed(u64::from(WIDTH)) as u32));
        }
    }
    call
}

/// Returns the resident memory in bytes, where the system reports it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

/// Teaches an owner's stores a call, like a request that is drafted for, with a random prompt. Returns how
/// many tokens were drafted.
fn answer(stores: &mut Stores, owner: &Owner, call: &[(u64, u32)], numbers: &mut RandomNumbers) -> usize {
    let prompt: Vec<u32> = (0..16).map(|_| numbers.skewed(u64::from(WIDTH)) as u32).collect();
    let answer: Vec<u32> = call.iter().map(|&(_, token)| token).collect();
    let store = stores.of(owner).expect("it learns");
    let samples = stores.of_samples(
        &Request::new(Vec::new(), 1)
            .task(crate::request::Draw {
                answers: 2,
                ..crate::request::Draw::default()
            })
            .speculation(crate::request::Speculation::all()),
    );
    let mut drafted = 0;
    for (place, &(state, token)) in call.iter().enumerate() {
        let text = Text {
            prompt: &prompt,
            answer: &answer[..place],
        };
        let others = (1..6).map(|other| ((token + other * 7) % WIDTH, 0.05));
        let likely: Vec<(u32, f32)> = [(token, 0.6)].into_iter().chain(others).collect();
        let at = Context {
            text,
            path: &[],
            state: Some(state),
        };
        let seen = Observation {
            likely: &likely,
            allowed: &likely[..3],
            drawn: Some(token),
        };
        store.learn(&at, &seen, 1.0);
        samples.iter().for_each(|samples| samples.learn(&at, &seen, 1.0));
        if place % 8 == 0 {
            let mut draft: Draft<'_, Grammar> = Draft::new(None, &[], 8);
            store.offer(text, (None, 0.0), &mut draft);
            drafted += draft.nodes().len();
        }
    }
    store.record(&answer);
    stores.ended();
    drafted
}

#[test]
fn stores_stay_within_their_bytes_under_long_traffic() {
    let asked: Option<usize> = std::env::var(REQUESTS)
        .ok()
        .and_then(|number| number.parse().ok());
    let requests = asked.unwrap_or(4000);
    let config = DraftStores {
        bytes: if asked.is_some() { 8 << 20 } else { 1 << 18 },
        ..DraftStores::default()
    };
    let bound = config.bytes * config.owners;
    let vocabulary = Vocabulary::new(&[(TokenKind::Text, "a"), (TokenKind::Special, "$")], &[1]).unwrap();
    let mut stores = Stores::open(config, Drafting::Measured, &vocabulary).unwrap();
    let mut numbers = RandomNumbers(1);
    let mut table = Vec::new();
    let (mut drafted, mut most) = (0, 0);
    println!(
        "{:>9} {:>12} {:>12} {:>12} {:>9}",
        "requests", "counted", "bound", "resident", "drafted"
    );
    for number in 0..=requests {
        // More owners than have a store at a time. Some come often, so that their stores fill, and some
        // rarely, so that their stores are dropped; each has some tools.
        let often = 1 + numbers.skewed(96);
        let owner = numbers.skewed(often);
        let call = call(owner * 5 + numbers.skewed(5), &mut numbers);
        drafted += answer(&mut stores, &Some(owner.to_string().into()), &call, &mut numbers);
        if number.is_multiple_of(64) || number == requests {
            most = most.max(stores.bytes());
            assert!(most <= bound, "{most} bytes of {bound} after {number} requests");
        }
        if number.is_multiple_of((requests / LINES).max(1)) {
            let (counted, resident) = (stores.bytes(), resident());
            let shown = resident.map_or(String::from("unknown"), |bytes| bytes.to_string());
            println!("{number:>9} {counted:>12} {bound:>12} {shown:>12} {drafted:>9}");
            table.push(resident);
        }
    }
    assert!(
        drafted > requests && most > bound / 8,
        "{drafted} drafts, {most} bytes of {bound}"
    );
    assert_eq!(stores.given_up(), 0);
    // In a process that does nothing else, the resident memory is flat too. By a fifth of the requests all
    // stores exist.
    if asked.is_some()
        && let [_, _, Some(then), .., Some(now)] = table[..]
    {
        assert!(now <= then + then / 10, "{then} bytes resident, then {now}");
    }
}
