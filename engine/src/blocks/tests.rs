//! Takeovers, forks, rewinds, evictions and the scopes of texts.

use super::*;

fn tokens(count: u32) -> Vec<u32> {
    (100..100 + count).collect()
}

fn filled(blocks: &mut Blocks, tokens: &[u32]) -> Table {
    let (mut table, _) = blocks.take_over(&Scope::default(), tokens);
    assert!(blocks.reserve(&mut table, 0, tokens.len()));
    blocks.commit(&mut table, tokens, tokens.len());
    table
}

#[test]
fn a_shared_beginning_is_taken_over() {
    let mut blocks = Blocks::new(8, 4);
    let first = filled(&mut blocks, &tokens(10));
    let (second, covered) = blocks.take_over(&Scope::default(), &tokens(12));
    assert_eq!(covered, 8);
    assert_eq!(second.blocks(), &first.blocks()[..2]);
    assert_eq!(blocks.used(), 3, "two blocks are shared");
    blocks.release(first);
    assert_eq!(blocks.used(), 2);
    blocks.release(second);
    assert_eq!((blocks.used(), blocks.kept()), (0, 2));
}

#[test]
fn the_last_token_is_always_left_to_feed() {
    let mut blocks = Blocks::new(8, 4);
    let table = filled(&mut blocks, &tokens(8));
    blocks.release(table);
    assert_eq!(blocks.take_over(&Scope::default(), &tokens(8)).1, 4);
    assert_eq!(blocks.take_over(&Scope::default(), &tokens(9)).1, 8);
}

#[test]
fn a_block_is_found_only_behind_the_same_beginning() {
    let mut blocks = Blocks::new(8, 2);
    let table = filled(&mut blocks, &[1, 2, 3, 4]);
    blocks.release(table);
    assert_eq!(blocks.take_over(&Scope::default(), &[9, 9, 3, 4, 5]).1, 0);
    assert_eq!(blocks.take_over(&Scope::default(), &[1, 2, 3, 4, 5]).1, 4);
}

/// Guards against a block that tells one owner what a text of another begins with.
#[test]
fn a_block_is_found_only_in_its_scope() {
    let scope = |owner: &str, salt: Option<&str>| Scope {
        owner: Some(owner.into()),
        salt: salt.map(Into::into),
    };
    let scopes = [
        Scope::default(),
        scope("one", None),
        scope("other", None),
        scope("one", Some("salt")),
        scope("one", Some("pepper")),
    ];
    let mut blocks = Blocks::new(32, 2);
    let text = [1, 2, 3, 4, 5];
    for within in &scopes {
        let (mut table, covered) = blocks.take_over(within, &text);
        assert_eq!(covered, 0, "{within:?}");
        assert!(blocks.reserve(&mut table, 0, text.len()));
        // Two texts of one pass wait for each other only within a scope.
        let beginning = blocks.beginning(&table, &text, 2);
        let others = scopes.iter().filter(|other| *other != within);
        for other in others {
            assert_ne!(blocks.beginning(&Table::of(other.clone()), &text, 2), beginning);
        }
        blocks.commit(&mut table, &text, text.len());
        let fork = blocks.fork(&table, 3);
        assert_eq!(fork.scope(), within);
        blocks.release(fork);
        blocks.release(table.take());
        assert_eq!((table.scope(), table.blocks().len()), (within, 0));
    }
    for within in &scopes {
        assert_eq!(blocks.take_over(within, &text).1, 4, "{within:?}");
    }
}

#[test]
fn the_block_unused_for_longest_goes_first_and_ends_before_beginnings() {
    let mut blocks = Blocks::new(4, 2);
    let old = filled(&mut blocks, &[1, 2, 3, 4]);
    blocks.release(old);
    let new = filled(&mut blocks, &[5, 6, 7, 8]);
    blocks.release(new);
    let (mut other, _) = blocks.take_over(&Scope::default(), &[9, 9, 9]);
    assert!(blocks.reserve(&mut other, 0, 2));
    assert_eq!(
        blocks.take_over(&Scope::default(), &[1, 2, 3, 4, 0]).1,
        2,
        "the end of the older text was given up"
    );
    assert_eq!(blocks.take_over(&Scope::default(), &[5, 6, 7, 8, 0]).1, 4);
}

#[test]
fn growing_beyond_the_cache_changes_nothing() {
    let mut blocks = Blocks::new(2, 4);
    let mut table = Table::default();
    assert!(!blocks.reserve(&mut table, 0, 9));
    assert_eq!((blocks.used(), table.blocks().len()), (0, 0));
    assert!(blocks.reserve(&mut table, 0, 8));
}

#[test]
fn two_growing_sequences_stay_in_one_piece_each() {
    let mut blocks = Blocks::new(32, 4);
    let (mut a, mut b) = (Table::default(), Table::default());
    for positions in 1..32 {
        for table in [&mut a, &mut b] {
            assert!(blocks.reserve(table, positions - 1, positions));
        }
    }
    for table in [a, b] {
        assert!(
            table.blocks().windows(2).all(|pair| pair[1] == pair[0] + 1),
            "{:?}",
            table.blocks()
        );
    }
}

/// Guards against a large cache in which every client takes memory that none has used before.
#[test]
fn texts_one_after_the_other_are_in_the_same_blocks() {
    let mut blocks = Blocks::new(100_000, 4);
    let mut written = BTreeSet::new();
    for number in 0..200 {
        let mut tables = [Table::default(), Table::default(), Table::default()];
        for (client, table) in tables.iter_mut().enumerate() {
            let length = 4 * (1 + (number * 7 + client * 13) % 40);
            assert!(blocks.reserve(table, 0, length));
            written.extend(table.blocks().iter().copied());
        }
        tables.into_iter().for_each(|table| blocks.release(table));
    }
    assert!(
        written.iter().all(|&block| block < 3 * (40 + ROOM)),
        "{written:?}"
    );
}

#[test]
fn a_fork_reads_the_same_blocks_until_it_writes() {
    let mut blocks = Blocks::new(8, 4);
    let mut first = filled(&mut blocks, &tokens(10));
    let mut second = blocks.fork(&first, 9);
    assert_eq!(second.blocks(), first.blocks());
    assert_eq!(blocks.used(), 3);
    assert!(blocks.reserve(&mut second, 9, 10));
    let copies = blocks.take_copies();
    assert_eq!(copies, [[(first.blocks()[2], second.blocks()[2])]]);
    assert_ne!(first.blocks()[2], second.blocks()[2]);
    // No other table reads the last block of the first any more.
    assert!(blocks.reserve(&mut first, 10, 11) && blocks.take_copies().is_empty());
    blocks.release(first);
    blocks.release(second);
    assert_eq!(blocks.used(), 0);
}

/// A remembered block can be taken over at any time, so no sequence may write to it again.
#[test]
fn a_rewind_gives_blocks_back_and_leaves_what_is_remembered() {
    let mut blocks = Blocks::new(8, 4);
    let mut table = filled(&mut blocks, &tokens(12));
    blocks.rewind(&mut table, 6);
    assert_eq!(blocks.used(), 2);
    let held = table.blocks().to_vec();
    let mut other = tokens(6);
    other.extend([7, 7]);
    assert!(blocks.reserve(&mut table, 6, 8));
    assert_eq!(blocks.take_copies(), [[(held[1], table.blocks()[1])]]);
    blocks.commit(&mut table, &other, 8);
    let (again, covered) = blocks.take_over(&Scope::default(), &tokens(13));
    assert_eq!((covered, &again.blocks()[..2]), (12, &held[..]));
    other.push(0);
    assert_eq!(
        blocks.take_over(&Scope::default(), &other).0.blocks(),
        table.blocks()
    );
}

/// Guards against a text that gets the blocks of an ended one while a pass still writes to them.
#[test]
fn what_is_let_go_under_a_pass_is_free_when_it_is_over() {
    let mut blocks = Blocks::new(4, 2);
    let mut table = filled(&mut blocks, &[1, 2, 3, 4]);
    assert!(blocks.reserve(&mut table, 4, 5));
    blocks.hold();
    blocks.release(table);
    assert_eq!((blocks.used(), blocks.kept()), (3, 0));
    let (mut other, covered) = blocks.take_over(&Scope::default(), &[1, 2, 3, 4, 5]);
    assert_eq!(covered, 4, "what is remembered can be read");
    assert!(!blocks.reserve(&mut other, 4, 9), "but not what was let go");
    blocks.land();
    assert_eq!(blocks.used(), 2);
    assert!(blocks.reserve(&mut other, 4, 8));
    blocks.release(other);
    assert_eq!((blocks.used(), blocks.kept()), (0, 2));
}

/// A block that is released before its copy was made may be the destination of the next copy.
#[test]
fn copies_that_meet_are_made_in_rounds() {
    let mut blocks = Blocks::new(8, 4);
    blocks.copies = vec![(0, 1), (0, 2), (1, 3), (5, 3), (6, 7)];
    let rounds = blocks.take_copies();
    assert_eq!(rounds, [vec![(0, 1), (0, 2)], vec![(1, 3)], vec![(5, 3), (6, 7)]]);
    assert!(blocks.take_copies().is_empty());
}

/// Random forks, rewinds and texts: every block holds what its readers wrote, and no block is leaked at
/// the end.
#[test]
fn no_reader_sees_what_another_wrote_and_no_block_is_lost() {
    let mut blocks = Blocks::new(64, 3);
    // The content that a model would have in its blocks.
    let mut cache = vec![0_u32; 64 * 3];
    let mut texts: Vec<(Table, Vec<u32>)> = vec![(Table::default(), Vec::new())];
    let mut chance = 1_u64;
    let mut draw = |below: usize| {
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) as usize % below
    };
    for round in 0..4_000 {
        let index = draw(texts.len());
        match draw(4) {
            0 if texts.len() < 6 => {
                let (of, text) = &texts[index];
                let at = draw(text.len() + 1);
                let fork = (blocks.fork(of, at), text[..at].to_vec());
                texts.push(fork);
            }
            1 => {
                let (table, text) = &mut texts[index];
                text.truncate(draw(text.len() + 1));
                blocks.rewind(table, text.len());
            }
            2 if texts.len() > 1 => blocks.release(texts.swap_remove(index).0),
            _ if texts[index].1.len() < 24 => {
                let (table, text) = &mut texts[index];
                let from = text.len();
                text.extend((0..1 + draw(5)).map(|_| 1 + draw(3) as u32));
                assert!(blocks.reserve(table, from, text.len()));
                for (from, to) in blocks.take_copies().into_iter().flatten() {
                    let from = from as usize * 3;
                    cache.copy_within(from..from + 3, to as usize * 3);
                }
                for (position, &token) in text.iter().enumerate().skip(from) {
                    cache[table.blocks()[position / 3] as usize * 3 + position % 3] = token;
                }
                blocks.commit(table, text, text.len());
            }
            _ => (),
        }
        for (table, text) in &texts {
            let slot = |position: usize| table.blocks()[position / 3] as usize * 3 + position % 3;
            let read: Vec<u32> = (0..text.len()).map(|position| cache[slot(position)]).collect();
            assert_eq!(&read, text, "round {round}");
        }
    }
    texts.into_iter().for_each(|(table, _)| blocks.release(table));
    assert_eq!(blocks.used(), 0);
}
