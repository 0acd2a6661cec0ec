//! Tests of the bodies of labels: their encoding, their rules, and that each beginning can be completed.

use super::*;

fn text(characters: &str) -> Vec<char> {
    characters.chars().collect()
}

/// Returns `true` if the body makes a valid label with any directions.
fn is_any(body: &str) -> bool {
    is_label(body.as_bytes(), Directions::LeftToRight) || is_label(body.as_bytes(), Directions::Ordered)
}

fn body_of(label: &str) -> String {
    String::from_utf8(punycode::encode(&text(label))).expect("Punycode is ASCII")
}

/// Deterministic pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % sides
    }

    fn free_text(&mut self, length: usize) -> Vec<u8> {
        // Hyphens and digits are frequent, because the rules concern them.
        let characters = b"abcxyz0129-----------abcdefghijklmnopqrstuvwxyz0123456789";
        let one = |_| characters[self.roll(characters.len())];
        (0..length).map(one).collect()
    }
}

/// The pairs of RFC 3492, 7.1 that are in lower case, and pairs of names in actual use.
#[test]
fn known_labels_have_their_known_punycode() {
    let pairs = [
        ("ليهمابتكلموشعربي؟", "egbpdaj6bu4bxfgehfvwxn"),
        ("他们为什么不说中文", "ihqwcrb4cv8a8dqg056pqjye"),
        ("他們爲什麽不說中文", "ihqwctvzc91f659drss3x8bo0yb"),
        ("почемужеонинеговорятпорусски", "b1abfaaepdrnnbgefbadotcwatmq2g4l"),
        (
            "なぜみんな日本語を話してくれないのか",
            "n8jok5ay5dzabd5bym9f0cm5685rrjetr6pdxa",
        ),
        ("münchen", "mnchen-3ya"),
        ("bücher", "bcher-kva"),
        ("straße", "strae-oqa"),
        ("ドメイン名例", "eckwd4c7cu47r2wf"),
        ("-> $1.00 <-", "-> $1.00 <--"),
    ];
    for (label, code) in pairs {
        assert_eq!(body_of(label), code, "{label}");
        assert_eq!(punycode::decode(code.as_bytes()), Some(text(label)), "{code}");
    }
}

#[test]
fn decoding_undoes_encoding_and_never_fails_otherwise() {
    let mut dice = Dice(7);
    let characters: Vec<char> = "ab-09éßяжשב٣中文ー한글\u{10FFFF}\u{80}𐐨".chars().collect();
    for _ in 0..20_000 {
        let length = 1 + dice.roll(20);
        let label: Vec<char> = (0..length)
            .map(|_| characters[dice.roll(characters.len())])
            .collect();
        assert_eq!(
            punycode::decode(&punycode::encode(&label)).as_deref(),
            Some(&label[..])
        );
        // Texts that are not Punycode are rejected without a panic.
        let length = dice.roll(60);
        let noise = dice.free_text(length);
        if let Some(label) = decoded(&noise) {
            assert_eq!(punycode::encode(&label), noise);
        }
    }
    assert_eq!(punycode::decode(b"99999999"), None, "more than any number here");
    assert_eq!(punycode::decode(b"9"), None, "a number without its end");
    assert_eq!(punycode::decode(b"\xff"), None);
}

/// All texts of one length have one ending, so this tests every length on a sample of texts.
#[test]
fn every_text_that_begins_a_body_is_completed_to_a_label() {
    let mut dice = Dice(1);
    for length in 0..=FREE_BODY {
        let hyphens = vec![b'-'; length];
        let texts = (0..200).map(|_| dice.free_text(length)).chain([hyphens]);
        for text in texts.collect::<Vec<_>>() {
            let body = [&text[..], ending(length)].concat();
            for directions in [Directions::LeftToRight, Directions::Ordered] {
                assert!(is_label(&body, directions), "{}", String::from_utf8_lossy(&body));
            }
            assert!(body.len() <= BODY);
        }
    }
    assert_eq!(FREE_BODY + ending(FREE_BODY).len(), BODY, "no more could be free");
}

#[test]
fn completions_lead_to_labels_and_are_no_longer_than_said() {
    let mut dice = Dice(2);
    let beginning = regex_automata::nfa::thompson::pikevm::PikeVM::new(&format!("^(?:{})$", beginnings()));
    let beginning = beginning.expect("a pattern");
    let mut cache = beginning.create_cache();
    for _ in 0..2_000 {
        let length = dice.roll(FREE_BODY + 1);
        let whole = [dice.free_text(length), ending(length).to_vec()].concat();
        let text = &whole[..dice.roll(whole.len() + 1)];
        let shown = String::from_utf8_lossy(text);
        if !text.is_empty() && !beginning.is_match(&mut cache, text) {
            // An ending that begins too late.
            assert!(text.len() > FREE_BODY, "{shown}");
            continue;
        }
        let mut least = usize::MAX;
        for (padding, end) in completions(text) {
            let body = [text, &vec![b'a'; padding], end].concat();
            assert!(
                is_label(&body, Directions::Ordered),
                "{shown} {}",
                String::from_utf8_lossy(&body)
            );
            assert!(beginning.is_match(&mut cache, &body[..]), "{shown}");
            least = least.min(padding + end.len());
        }
        assert!(least <= longest_completion(), "{shown}: {least}");
    }
}

#[test]
fn characters_are_valid_where_the_rules_say() {
    let valid = "é ßς་〇 ۽۾ l·l ͵α א׳ב א״ב ・ぁ ・ァ ・丈 ب٠ب ۰0 क्\u{200D}ष क्\u{200C}ष بي\u{200C}بي a-é é-b ab-é \
        실례 אב1 \u{13F0}";
    for label in valid.split(' ') {
        assert!(is_any(&body_of(label)), "{label} {}", body_of(label));
    }
    let refused = "É \u{AD}é é_ é.b a·l ·l l·a l· ͵s ͵ a׳ב ׳ב ・def ・ ب٠۰ क\u{200D}ष \u{200D}ष a\u{200C}é -é é- ab--é \
        é\u{20DD} \u{301}é \u{903}hello e\u{301} ﬁé ①é 가\u{302E} ـا 〱é \u{0}é \u{10FFFF} ᄀ\u{1161} \u{1CCF0}";
    for label in refused.split(' ').chain(["é ", " é"]) {
        assert!(!is_any(&body_of(label)), "{label}");
    }
}

#[test]
fn a_label_is_written_in_one_way() {
    // Bodies that decode to nothing, those of ASCII alone, and a second encoding of a valid label.
    let bodies = "- X x a- example- -9uc 7a MNCHEN-3ya mnchen-3yA a_-zca zca-";
    for body in bodies.split(' ').chain([""]) {
        assert!(!is_any(body), "{body}");
    }
}

#[test]
fn directions_are_kept_apart() {
    let of = |label: &str, directions| is_label(body_of(label).as_bytes(), directions);
    for (label, plain, ordered) in [
        ("é", true, true),
        ("1é", true, false),
        ("é1", true, true),
        ("א", false, true),
        ("אa", false, false),
        ("aא", false, false),
        ("1א", false, false),
        ("א1", false, true),
        ("ا1٢", false, false),
        ("ا-٢", false, true),
        ("٢", false, false),
        ("נִ", false, true),
    ] {
        assert_eq!(of(label, Directions::LeftToRight), plain, "{label}");
        assert_eq!(of(label, Directions::Ordered), ordered, "{label}");
    }
}

/// Compares the table of invalid code points, which was computed from one version of Unicode, with the data
/// of the crates.
#[test]
fn valid_characters_are_stable_under_normalisation_and_lower_case() {
    use unicode_normalization::UnicodeNormalization;
    let exceptions = ['ß', 'ς', '\u{6FD}', '\u{6FE}', '\u{F0B}', '\u{3007}'];
    let cherokee = '\u{13A0}'..='\u{13F5}';
    let mut count = 0;
    for c in ('\u{80}'..=char::MAX).filter(|c| !exceptions.contains(c) && !cherokee.contains(c)) {
        if !label::is_valid(&['a', c]) {
            continue;
        }
        count += 1;
        let folded = std::iter::once(c).nfkc().flat_map(char::to_lowercase).nfkc();
        assert!(folded.eq([c]), "U+{:04X}", u32::from(c));
    }
    assert!(count > 100_000, "most letters of all scripts: {count}");
}
