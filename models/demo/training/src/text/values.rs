//! Draws values: from the lists of words, and invented ones, so that only copying gets them right.

use super::words;
use crate::random::{Random, mix};

/// Which words may be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// Those that training sees: nine of ten.
    Seen,
    /// Those that training never sees: one of ten.
    Unseen,
}

/// A source of values.
pub(crate) struct Values {
    /// Where the choices come from.
    pub(crate) random: Random,
    /// Which words may be drawn.
    pub(crate) words: Words,
}

impl Values {
    /// Draws with the choices that follow from `seed`.
    pub(crate) fn new(seed: u64, words: Words) -> Self {
        Self {
            random: Random::new(seed),
            words,
        }
    }

    /// Whether `word` is one of those that may be drawn.
    pub(crate) fn admits(&self, word: &str) -> bool {
        let hash = word.bytes().fold(17, |hash, byte| mix(hash ^ u64::from(byte)));
        (hash.is_multiple_of(10)) == (self.words == Words::Unseen)
    }

    /// One of the words in `list`, which are set apart by bars, or else by spaces.
    pub(crate) fn from(&mut self, list: &str) -> String {
        let separator = if list.contains('|') { '|' } else { ' ' };
        let words: Vec<&str> = list.split(separator).collect();
        for _ in 0..200 {
            let word = *self.random.pick(&words);
            if self.admits(word) {
                return word.to_owned();
            }
        }
        // A short list may have no word of the wanted kind.
        (*self.random.pick(&words)).to_owned()
    }

    fn part(&mut self, list: &str) -> String {
        let parts: Vec<&str> = list.split(' ').collect();
        (*self.random.pick(&parts)).to_owned()
    }

    /// A word that no list has, such as `Brailord`.
    pub(crate) fn invented(&mut self) -> String {
        loop {
            let mut word = String::new();
            for syllable in 0..1 + self.random.below(3) {
                if syllable == 0 || self.random.chance(70) {
                    word += &self.part(words::ONSETS);
                }
                word += &self.part(words::VOWELS);
                if self.random.chance(45) {
                    word += &self.part(words::CODAS);
                }
            }
            if word.len() > 3 && self.admits(&word) {
                return capital(&word);
            }
        }
    }

    fn name_part(&mut self, list: &str, invented: usize) -> String {
        if self.random.chance(invented) {
            self.invented()
        } else {
            self.from(list)
        }
    }

    /// A given name.
    pub(crate) fn first(&mut self) -> String {
        self.name_part(words::FIRST, 20)
    }

    /// A family name.
    pub(crate) fn last(&mut self) -> String {
        self.name_part(words::LAST, 35)
    }

    /// A person's full name, now and then with an initial, a title or a hyphen.
    pub(crate) fn person(&mut self) -> String {
        let (first, last) = (self.first(), self.last());
        match self.random.below(20) {
            0 => format!("{first} {}. {last}", self.initial()),
            1 => format!("Dr. {first} {last}"),
            2 => format!("{first} {last}-{}", self.last()),
            3 => format!("{first} O'{last}"),
            _ => format!("{first} {last}"),
        }
    }

    fn initial(&mut self) -> char {
        char::from(b'A' + self.random.below(26) as u8)
    }

    /// A city.
    pub(crate) fn city(&mut self) -> String {
        self.name_part(words::CITIES, 30)
    }

    /// A street with a house number.
    pub(crate) fn street(&mut self) -> String {
        let name = if self.random.chance(50) {
            self.last()
        } else {
            self.invented()
        };
        let kind = *self.random.pick(&["Street", "Road", "Avenue", "Lane", "Street"]);
        format!("{} {name} {kind}", self.random.between(1, 250))
    }

    /// A country.
    pub(crate) fn country(&mut self) -> String {
        self.name_part(words::COUNTRIES, 10)
    }

    /// A company.
    pub(crate) fn company(&mut self) -> String {
        let name = if self.random.chance(60) {
            self.invented()
        } else {
            self.last()
        };
        match self.random.below(4) {
            0 => name,
            _ => format!(
                "{name} {}",
                self.random.pick(&[
                    "Ltd",
                    "Inc",
                    "Labs",
                    "Group",
                    "Foods",
                    "Systems",
                    "Bank",
                    "Motors",
                    "Books",
                    "Studio",
                    "Works",
                    "Energy",
                    "Media",
                    "Software",
                    "Partners",
                    "Airlines",
                    "Design",
                    "Logistics",
                ])
            ),
        }
    }

    /// A thing that is sold, such as `red mug`; unlike the lists this may be an invented brand and thing.
    pub(crate) fn goods(&mut self) -> String {
        let thing = self.from(words::GOODS);
        match self.random.below(6) {
            0 | 1 => format!("{} {thing}", self.from(words::ADJECTIVES)),
            2 => format!("{} {thing}", self.invented()),
            3 => format!("{} {}", self.invented(), self.random.between(2, 990)),
            _ => thing,
        }
    }

    /// A title, such as `budget review` or `Brailord Festival`.
    pub(crate) fn gathering(&mut self) -> String {
        let (topic, kind) = (self.from(words::TOPICS), self.from(words::GATHERINGS));
        match self.random.below(8) {
            0 => capital(&format!("{topic} {kind}")),
            1 => format!("{} {}", capital(&topic), capital(&kind)),
            2 => format!("{} {}", self.invented(), capital(&kind)),
            3 => format!("{} {kind}", self.from(words::ADJECTIVES)),
            4 => kind,
            _ => format!("{topic} {kind}"),
        }
    }

    /// A code such as `AB-4071`, `TX48213` or `10482`.
    pub(crate) fn code(&mut self) -> String {
        let number = self.random.between(10, 99_999);
        match self.random.below(5) {
            0 => format!("{}{}-{number}", self.initial(), self.initial()),
            1 => format!("{}{number}", self.initial()),
            2 => format!("{}{}{}{number}", self.initial(), self.initial(), self.initial()),
            3 => format!(
                "{}-{}",
                self.invented().to_uppercase(),
                self.random.between(1, 999)
            ),
            _ => format!("{number}"),
        }
    }

    /// An amount such as `12`, `7.5` or `149.99`.
    pub(crate) fn amount(&mut self) -> String {
        let whole = match self.random.below(4) {
            0 => self.random.between(1, 9),
            1 | 2 => self.random.between(10, 99),
            _ => self.random.between(100, 2999),
        };
        match self.random.below(5) {
            0 => format!("{whole}"),
            1 => format!("{whole}.{}", self.random.between(1, 9)),
            2 => format!("{whole}.99"),
            _ => format!("{whole}.{:02}", self.random.between(1, 99)),
        }
    }

    /// An e-mail address for `person`.
    pub(crate) fn email(&mut self, person: &str) -> String {
        let names: Vec<String> = person
            .split(' ')
            .filter(|word| !word.ends_with('.'))
            .map(|word| {
                word.chars()
                    .filter(char::is_ascii_alphabetic)
                    .collect::<String>()
                    .to_lowercase()
            })
            .collect();
        let host = match self.random.below(3) {
            0 => "example".to_owned(),
            1 => (*self.random.pick(&["mail", "post", "inbox", "gmail", "web"])).to_owned(),
            _ => self.invented().to_lowercase(),
        };
        let top = *self.random.pick(&["com", "com", "org", "net", "io", "de"]);
        let user = match self.random.below(4) {
            0 => names[0].clone(),
            1 => format!("{}{}", names[0], self.random.between(1, 99)),
            _ => names.join("."),
        };
        format!("{user}@{host}.{top}")
    }

    /// A telephone number.
    pub(crate) fn phone(&mut self) -> String {
        let (area, middle, end) = (
            self.random.between(200, 989),
            self.random.between(100, 999),
            self.random.between(0, 9999),
        );
        match self.random.below(4) {
            0 => format!("+{} {area} {middle}{end:04}", self.random.between(1, 99)),
            1 => format!("({area}) {middle}-{end:04}"),
            2 => format!("{middle}-{end:04}"),
            _ => format!("{area}-{middle}-{end:04}"),
        }
    }
}

/// `word` with a capital first letter.
pub(crate) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|letter| letter.to_ascii_uppercase())
        .into_iter()
        .chain(letters)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Values, Words};
    use crate::text::words;

    #[test]
    fn seen_and_unseen_words_are_disjoint() {
        let mut seen = Values::new(1, Words::Seen);
        let mut unseen = Values::new(2, Words::Unseen);
        let all = |values: &mut Values| {
            (0..3000)
                .map(|_| values.from(words::FIRST))
                .collect::<std::collections::BTreeSet<_>>()
        };
        let (seen, unseen) = (all(&mut seen), all(&mut unseen));
        assert!(seen.is_disjoint(&unseen));
        assert!(
            seen.len() > 150 && unseen.len() > 10,
            "{} and {}",
            seen.len(),
            unseen.len()
        );
    }
}
