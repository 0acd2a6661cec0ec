//! Compares shapes with all trees of their size.

use super::*;
use crate::draft::{Candidate, Context, NodeId, Origin};

/// Tokens 0 to 2; nothing may follow a 2.
struct Digits;

impl Constraint for Digits {
    type State = u32;

    fn step(&self, last: u32, token: u32) -> Option<u32> {
        (last != 2).then_some(token)
    }

    fn step_bytes(&self, _last: u32, _bytes: &[u8]) -> Option<u32> {
        None
    }

    fn forced(&self, _last: u32) -> Vec<u8> {
        Vec::new()
    }

    fn key(&self, last: u32) -> u64 {
        last.into()
    }

    fn is_accepting(&self, _last: u32) -> bool {
        false
    }
}

/// A predictor whose chances depend on the place; it also offers a token that the constraint never allows.
struct Random(u64);

impl Random {
    fn chances(&self, path: &[u32]) -> Vec<Candidate> {
        let mut hash = self.0;
        for token in path {
            hash = (hash ^ u64::from(token + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 29;
        }
        let weights: Vec<f32> = (0..3)
            .map(|token| 1.0 + (hash >> (8 * token) & 0xff) as f32)
            .collect();
        let all: f32 = weights.iter().sum::<f32>() * 1.1;
        let mut found: Vec<Candidate> = (0..3)
            .zip(weights)
            .map(|(token, weight)| Candidate {
                token,
                chance: weight / all,
                origin: Origin::NGram,
            })
            .collect();
        found.sort_by(|one, other| other.chance.total_cmp(&one.chance));
        found
    }
}

impl Predictor for Random {
    fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>) {
        found.extend(self.chances(at.path));
    }

    fn bytes(&self) -> usize {
        0
    }
}

fn grown(
    shape: &impl Shape<Digits, ()>,
    predictor: &dyn Predictor,
    room: usize,
) -> Vec<(Option<NodeId>, u32)> {
    let mut draft: Draft<'_, Digits, ()> = Draft::new(Some((&Digits, 0)), &[], room);
    shape.grow(predictor, Text::default(), None, &mut draft);
    assert!(draft.nodes().len() <= room);
    draft
        .nodes()
        .iter()
        .map(|node| (node.parent, node.token))
        .collect()
}

/// Returns the expected accepted tokens of a tree: the sum of its path products.
fn expected(predictor: &Random, nodes: &[(Option<NodeId>, u32)]) -> f32 {
    let mut sum = 0.0;
    for node in 0..nodes.len() {
        let mut path: Vec<u32> = std::iter::successors(Some(node), |&node| nodes[node].0)
            .map(|node| nodes[node].1)
            .collect();
        path.reverse();
        let chance = (0..path.len()).map(|at| {
            let candidates = predictor.chances(&path[..at]);
            let found = candidates.iter().find(|candidate| candidate.token == path[at]);
            found.map_or(0.0, |candidate| candidate.chance)
        });
        sum += chance.product::<f32>();
    }
    sum
}

/// Returns the largest expectation of any tree of `room` nodes: paths are added in every order.
fn best(predictor: &Random, nodes: &mut Vec<(Option<NodeId>, u32)>, room: usize) -> f32 {
    if room == 0 {
        return expected(predictor, nodes);
    }
    let mut most = 0.0_f32;
    for parent in std::iter::once(None).chain((0..nodes.len()).map(Some)) {
        let is_open = parent.is_none_or(|parent| nodes[parent].1 != 2);
        for token in (0..3).filter(|_| is_open) {
            if !nodes.contains(&(parent, token)) {
                nodes.push((parent, token));
                most = most.max(best(predictor, nodes, room - 1));
                nodes.pop();
            }
        }
    }
    most
}

#[test]
fn best_first_grows_the_best_of_all_trees() {
    for seed in 1..20 {
        let predictor = Random(seed);
        for room in 1..5 {
            let nodes = grown(&BestFirst { least: 0.0 }, &predictor, room);
            assert_eq!(nodes.len(), room);
            let most = best(&predictor, &mut Vec::new(), room);
            assert!((expected(&predictor, &nodes) - most).abs() < 1e-5);
        }
    }
}

#[test]
fn unlikely_paths_are_left_out() {
    let predictor = Random(3);
    let nodes = grown(&BestFirst { least: 0.2 }, &predictor, 100);
    assert!(!nodes.is_empty() && nodes.len() < 10, "{}", nodes.len());
    let chain = Chain {
        stop: Stop::Unlikely(0.05),
    };
    let nodes = grown(&chain, &predictor, 100);
    assert!(expected(&predictor, &nodes[..1]) > 0.05 && nodes.len() < 8);
}

#[test]
fn opt_tree_of_one_layer_is_the_layer_and_wider_ones_gain() {
    for seed in 1..20 {
        let predictor = Random(seed);
        let shape = |width, least_gain| OptTree { width, least_gain };
        assert_eq!(
            grown(&shape(3, 0.9), &predictor, 10).len(),
            3,
            "the second gains less"
        );
        let gain = |width| expected(&predictor, &grown(&shape(width, 0.1), &predictor, 40));
        assert!(gain(1) < gain(3));
    }
}

/// A predictor that is nearly sure of token 0, and offers another beside it.
struct Sure;

impl Predictor for Sure {
    fn predict(&self, _at: &Context<'_>, found: &mut Vec<Candidate>) {
        found.extend([(0, 0.99), (1, 0.01)].map(|(token, chance)| Candidate {
            token,
            chance,
            origin: Origin::NGram,
        }));
    }

    fn bytes(&self) -> usize {
        0
    }
}

#[test]
fn an_opt_tree_is_as_deep_as_the_chances_are_good() {
    let shape = OptTree {
        width: 8,
        least_gain: 0.0,
    };
    let nodes = grown(&shape, &Sure, 8);
    let chain: Vec<_> = (0..8_usize).map(|at| (at.checked_sub(1), 0)).collect();
    assert_eq!(nodes, chain);
}

#[test]
fn an_opt_tree_whose_layers_are_not_cut_is_as_good_as_the_best_tree() {
    let mut deeper = 0;
    for seed in 1..40 {
        let predictor = Random(seed);
        for room in [1, 3, 6, 12] {
            let shape = OptTree {
                width: room,
                least_gain: 0.0,
            };
            let nodes = grown(&shape, &predictor, room);
            let best = grown(&BestFirst { least: 0.0 }, &predictor, room);
            assert_eq!(nodes.len(), best.len());
            let (gained, most) = (expected(&predictor, &nodes), expected(&predictor, &best));
            assert!((gained - most).abs() < 1e-5, "{gained} of {most}");
            deeper +=
                usize::from(room > 3 && nodes.iter().filter(|(parent, _)| parent.is_none()).count() < 3);
        }
    }
    assert!(deeper > 0, "some tree leaves a token of the first layer out");
}

#[test]
fn an_opt_tree_extends_what_is_there_and_ends_with_the_text() {
    let mut draft: Draft<'_, Digits, ()> = Draft::new(Some((&Digits, 0)), &[0], 5);
    let below = draft.offer_likely(None, 1, Origin::NGram, 0.5);
    let shape = OptTree {
        width: 5,
        least_gain: 0.0,
    };
    shape.grow(&Sure, Text::default(), below, &mut draft);
    let nodes = draft.nodes().iter().map(|node| (node.parent, node.token));
    let nodes: Vec<_> = nodes.collect();
    assert_eq!(nodes[..3], [(None, 1), (Some(0), 0), (Some(0), 1)]);
    assert!(
        nodes[3..].iter().all(|(parent, _)| *parent != Some(1)),
        "after 0 the text has ended"
    );
}

#[test]
fn a_chain_follows_the_likeliest_and_ends_where_it_is_unsure() {
    let predictor = Random(5);
    let chain = |stop| grown(&Chain { stop }, &predictor, 6);
    let nodes = chain(Stop::Unlikely(0.0));
    for (at, (parent, token)) in nodes.iter().enumerate() {
        assert_eq!(*parent, at.checked_sub(1));
        let path: Vec<u32> = nodes[..at].iter().map(|(_, token)| *token).collect();
        assert_eq!(predictor.chances(&path)[0].token, *token);
    }
    // The entropy of three or four tokens is at most ln 4.
    assert_eq!(chain(Stop::Unsure(0.0)).len(), 1, "the token itself is drafted");
    assert_eq!(chain(Stop::Unsure(1.0)), nodes);
}

#[test]
fn a_template_takes_ranks() {
    let template = Template::new(vec![(None, 1), (Some(0), 0), (None, 7), (Some(2), 0)]).expect("a tree");
    let predictor = Random(7);
    let first = predictor.chances(&[])[1].token;
    let nodes = grown(&template, &predictor, 10);
    assert_eq!(nodes[0], (None, first));
    assert!(nodes.len() <= 2, "there is no eighth child");
    assert!(Template::new(vec![(Some(0), 0)]).is_none());
    assert_eq!(Sequoia::halving().template(80, 6).len(), 80);
}

#[test]
fn what_the_constraint_forbids_is_no_candidate() {
    struct Two;
    impl Predictor for Two {
        fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>) {
            // After a 2 nothing may come; the state is the last token here.
            assert_ne!(at.state, Some(2), "nobody asks where nothing may come");
            found.push(Candidate {
                token: 2,
                chance: 0.5,
                origin: Origin::NGram,
            });
        }

        fn bytes(&self) -> usize {
            0
        }
    }
    let mut draft: Draft<'_, Digits, ()> = Draft::new(Some((&Digits, 0)), &[2], 9);
    BestFirst { least: 0.0 }.grow(&Two, Text::default(), None, &mut draft);
    assert_eq!(draft.nodes().len(), 1);
}

/// Returns all templates of `nodes` nodes.
fn templates(nodes: usize, ranks: usize, depth: usize) -> Vec<Template> {
    let mut all: Vec<Vec<(Option<usize>, usize)>> = vec![Vec::new()];
    for _ in 0..nodes {
        let mut larger = Vec::new();
        for tree in &all {
            let depth_of = |node: usize| std::iter::successors(Some(node), |&node| tree[node].0).count();
            for above in std::iter::once(None).chain((0..tree.len()).map(Some)) {
                if above.map_or(0, depth_of) < depth {
                    let new = (0..ranks).filter(|&rank| !tree.contains(&(above, rank)));
                    larger.extend(new.map(|rank| [&tree[..], &[(above, rank)]].concat()));
                }
            }
        }
        all = larger;
    }
    all.into_iter().filter_map(Template::new).collect()
}

#[test]
fn sequoia_finds_the_best_of_all_templates() {
    for acceptance in [vec![0.6, 0.2, 0.1], vec![0.34, 0.33, 0.32], vec![0.9, 0.05]] {
        let sequoia = Sequoia::new(acceptance.clone()).expect("chances");
        for (nodes, depth) in [(1, 3), (3, 3), (4, 2), (4, 4)] {
            let template = sequoia.template(nodes, depth);
            assert_eq!(template.len(), nodes);
            let all = templates(nodes, acceptance.len(), depth);
            let values = all.iter().map(|template| sequoia.expected(template));
            let most = values.fold(0.0, f64::max);
            assert!((sequoia.expected(&template) - most).abs() < 1e-12);
        }
    }
    assert!(Sequoia::new(vec![1.5]).is_none());
}
