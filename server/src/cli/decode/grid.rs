//! The measurements: every combination of the flags, checked for validity.

use std::fmt;

use lexiform_cli::failure::Failure;
use lexiform_engine::{DraftStores, EngineConfig};

use super::args::Args;
use super::arms::{ARMS, Arm};
use crate::model::served::ServedModel;

/// The maximum number of answers at a time, tokens of an answer or a prompt, and rounds: larger values are
/// more likely a typing error than intended.
const MOST_ANSWERS: usize = 1024;
const MOST_TOKENS: usize = 1 << 20;
const MOST_ROUNDS: usize = 100;

/// The texts that prompts consist of. A longer prompt repeats its text from the beginning.
const TEXTS: [&str; 4] = [
    "Order 4711 by Ada Lovelace from 12 March 2024: three lamps at 19.90 each, to be sent to 5 Mill Road, Cambridge. ",
    "The printer on the second floor has been jammed since Monday, says Grace Hopper. It is urgent. ",
    "Team meeting on 3 May 2025 at 10:30 in room Turing; Alan, Katherine and Edsger take part. ",
    "Please book a table for four at Luigi's tomorrow at seven, outside if the weather is good. ",
];

/// All measurements.
pub(super) struct Grid {
    /// The number of tokens of an answer.
    pub(super) tokens: usize,
    pub(super) rounds: usize,
    pub(super) groups: Vec<Group>,
    /// The arms that cannot be measured at some temperature, with the reasons.
    pub(super) skipped: Vec<String>,
}

/// Arms that are compared with each other.
pub(super) struct Group {
    pub(super) answers: usize,
    /// The number of tokens of a prompt.
    pub(super) prompt: usize,
    pub(super) temperature: f64,
    pub(super) arms: Vec<&'static Arm>,
}

impl Grid {
    /// Builds the grid that the flags describe.
    ///
    /// # Errors
    /// Reports all invalid flags.
    pub(super) fn of(args: &Args) -> Result<Self, Failure> {
        let mut problems = Vec::new();
        let mut bounded = |flag: &str, values: &[usize], least: usize, most: usize| {
            let wrong = values.iter().filter(|value| !(least..=most).contains(*value));
            problems.extend(wrong.map(|value| format!("{flag} {value}: expected {least} to {most}")));
        };
        bounded("--answers", &args.answers, 1, MOST_ANSWERS);
        bounded("--prompts", &args.prompts, 1, MOST_TOKENS);
        bounded("--tokens", &[args.tokens], 2, MOST_TOKENS);
        bounded("--rounds", &[args.rounds], 2, MOST_ROUNDS);
        let wrong = args
            .temperatures
            .iter()
            .filter(|value| !(0.0..=2.0).contains(*value));
        problems.extend(wrong.map(|value| format!("--temperatures {value}: expected 0 to 2")));
        let grid = Self::combined(args);
        if problems.is_empty() && grid.groups.iter().all(|group| group.arms.is_empty()) {
            problems.push(
                "--arms global: the global law needs a temperature above 0, see --temperatures".to_owned(),
            );
        }
        match problems.is_empty() {
            true => Ok(grid),
            false => Err(Failure::message(problems.join("\n"))),
        }
    }

    fn combined(args: &Args) -> Self {
        let is_wanted = |arm: &&Arm| args.arms.is_empty() || args.arms.iter().any(|name| name == arm.name);
        let wanted: Vec<&'static Arm> = ARMS.iter().filter(is_wanted).collect();
        let (mut groups, mut skipped) = (Vec::new(), Vec::new());
        for temperature in distinct(&args.temperatures) {
            let (arms, not): (Vec<_>, Vec<_>) = wanted.iter().partition(|arm| arm.takes(temperature));
            let reason =
                |arm: &&Arm| format!("{} at temperature {temperature}: it needs one above 0", arm.name);
            skipped.extend(not.iter().map(reason));
            for prompt in distinct(&args.prompts) {
                let group = |answers| Group {
                    answers,
                    prompt,
                    temperature,
                    arms: arms.clone(),
                };
                groups.extend(distinct(&args.answers).into_iter().map(group));
            }
        }
        Grid {
            tokens: args.tokens,
            rounds: args.rounds,
            groups,
            skipped,
        }
    }

    /// Gives an engine room for all answers of the largest group at once, and turns off learning from
    /// answers.
    pub(super) fn fit(&self, config: &mut EngineConfig) {
        let (answers, blocks) = self.most(config.block_size);
        config.blocks = blocks;
        config.max_running = config.max_running.max(answers);
        config.max_waiting = config.max_waiting.max(answers);
        config.draft_stores = DraftStores {
            bytes: 0,
            ..DraftStores::default()
        };
    }

    /// Returns the maximum number of answers at a time, and the number of cache blocks that the largest group
    /// fills.
    fn most(&self, block_size: usize) -> (usize, usize) {
        let answers = self.groups.iter().map(|group| group.answers).max().unwrap_or(1);
        let longest = self.groups.iter().map(|group| group.prompt).max().unwrap_or(1) + self.tokens;
        (answers, answers * (longest.div_ceil(block_size) + 1))
    }

    /// Checks whether a model with this many positions can generate all answers, in this memory.
    ///
    /// # Errors
    /// Reports the prompts that are too long, and the amount of memory needed.
    pub(super) fn check_room(
        &self,
        positions: usize,
        bytes_per_token: usize,
        free: Option<usize>,
    ) -> Result<(), Failure> {
        let mut problems: Vec<String> = Vec::new();
        for group in &self.groups {
            let problem = format!(
                "--prompts {} with --tokens {}: the model takes {positions} tokens",
                group.prompt, self.tokens
            );
            if group.prompt + self.tokens > positions && !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        let (answers, blocks) = self.most(1);
        let needed = blocks.saturating_mul(bytes_per_token);
        if problems.is_empty()
            && let Some(free) = free.filter(|free| needed > *free)
        {
            problems.push(format!(
                "--answers {answers}: keys and values would take {} MiB, and {} MiB are free",
                needed >> 20,
                free >> 20
            ));
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Failure::message(problems.join("\n"))),
        }
    }
}

/// Returns the values without duplicates.
fn distinct<T: PartialEq + Copy>(values: &[T]) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(value) {
            found.push(*value);
        }
    }
    found
}

impl Group {
    /// Returns new prompts, each with a unique number at its beginning. `serial` is the number before the
    /// first of them, and becomes the last one.
    pub(super) fn prompts(&self, served: &ServedModel, serial: &mut usize) -> Result<Vec<Vec<u32>>, Failure> {
        let encode = |text: &str| {
            let encoded = served.text().tokenizer.encode(text);
            encoded.map_err(|error| Failure::message(format!("the prompts: {error}")))
        };
        (0..self.answers)
            .map(|number| {
                *serial += 1;
                let mut prompt = encode(&format!("{serial}. "))?;
                let text = encode(TEXTS[number % TEXTS.len()])?;
                let rest = self.prompt.saturating_sub(prompt.len());
                prompt.extend(text.iter().cycle().take(rest));
                prompt.truncate(self.prompt);
                Ok(prompt)
            })
            .collect()
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Group {
            answers,
            prompt,
            temperature,
            ..
        } = self;
        let plural = if *answers == 1 { "" } else { "s" };
        write!(
            f,
            "{answers} answer{plural}, prompts of {prompt} tokens, temperature {temperature}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two answers of eleven tokens, each with room for one more, at a hundred bytes per token.
    #[test]
    fn what_does_not_fit_is_refused_before_it_is_tried() {
        let group = |answers, prompt| Group {
            answers,
            prompt,
            temperature: 1.0,
            arms: Vec::new(),
        };
        let grid = Grid {
            tokens: 3,
            rounds: 2,
            groups: vec![group(2, 5), group(1, 8)],
            skipped: Vec::new(),
        };
        assert_eq!(grid.most(1), (2, 24));
        assert_eq!(grid.most(16), (2, 4));
        assert!(grid.check_room(11, 100, Some(2_400)).is_ok());
        assert!(grid.check_room(11, 100, None).is_ok());
        let told = |positions, free| {
            grid.check_room(positions, 1 << 20, Some(free))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            told(11, 5 << 20),
            "--answers 2: keys and values would take 24 MiB, and 5 MiB are free"
        );
        assert_eq!(
            told(7, usize::MAX),
            "--prompts 5 with --tokens 3: the model takes 7 tokens\n--prompts 8 with --tokens 3: the model takes 7 tokens"
        );
    }
}
