//! Templates in the manner of the families that people use, rendered and encoded: the text is that of another
//! implementation of Jinja, the tokens of harmless conversations are those of `tokenizers`, and no content
//! changes the control tokens.
//!
//! `data/templates/` has a template a file, each with its control tokens in a comment before it. The contents
//! are generated, from a number, so that a failure is found again. `LEXIFORM_CONTENTS` is the number of
//! contents that are tried; a soak sets it to a million:
//!
//! ```text
//!   LEXIFORM_CONTENTS=1000000 cargo test --release -p lexiform-chat --test templates -- no_content
//! ```

#[path = "templates/conversations.rs"]
mod conversations;
#[path = "templates/families.rs"]
mod families;
#[path = "templates/oracle.rs"]
mod oracle;
#[path = "templates/vocabularies.rs"]
mod vocabularies;

use conversations::{Contents, Shape};
use families::Family;
use vocabularies::Vocabulary;

/// The number of contents that are tried by default.
const CONTENTS: usize = 8_000;

fn contents_to_try() -> usize {
    let asked = std::env::var("LEXIFORM_CONTENTS").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(CONTENTS)
}

/// Calls `check` with families, vocabularies and numbers, until enough contents are tried.
fn for_each_case(contents: usize, mut check: impl FnMut(&Family, &Vocabulary, u64) -> usize) {
    let families = families::all();
    let vocabularies: Vec<[Vocabulary; 3]> = families.iter().map(vocabularies::of).collect();
    let (mut tried, mut number) = (0, 0);
    while tried < contents {
        for (family, each) in families.iter().zip(&vocabularies) {
            for vocabulary in each {
                tried += check(family, vocabulary, number);
                number += 1;
            }
        }
    }
}

#[test]
fn no_content_changes_the_control_tokens() {
    let contents = contents_to_try();
    let (mut changed, mut refused, mut cases) = (0, 0, 0);
    for_each_case(contents, |family, vocabulary, number| {
        let shape = Shape::of(family, number);
        let attack = Contents::of_fragments(family, number);
        let harmless = attack.without_marks(family);
        let tokens = |contents: &Contents| {
            let prompt = shape.conversation(contents).render(&family.template);
            prompt.map(|prompt| {
                vocabulary.control_tokens(&prompt.encode(&vocabulary.tokenizer).expect("tokens"))
            })
        };
        cases += 1;
        match (tokens(&attack), tokens(&harmless)) {
            (Ok(one), Ok(two)) if one == two => {}
            (Err(_), Err(_)) => refused += 1,
            (one, two) => {
                changed += 1;
                let text = shape
                    .conversation(&attack)
                    .render(&family.template)
                    .map(|it| it.text().to_owned());
                println!("{} {number}: {one:?}, and not {two:?}, in\n{text:?}", family.name);
            }
        }
        attack.count()
    });
    println!("{changed} of {cases} conversations with {contents} contents changed; {refused} are refused");
    assert_eq!(changed, 0);
    assert!(
        refused * 10 < cases,
        "{refused} of {cases} conversations are refused"
    );
}

#[test]
fn harmless_conversations_have_the_tokens_of_the_tokenizer() {
    for_each_case(contents_to_try() / 4, |family, vocabulary, number| {
        let contents = Contents::of_words(number);
        let conversation = Shape::of(family, number).conversation(&contents);
        if vocabulary.depends_on_blanks {
            return 0;
        }
        if let Ok(prompt) = conversation.render(&family.template) {
            let tokens = prompt.encode(&vocabulary.tokenizer).expect("tokens");
            let text = prompt.text();
            assert_eq!(
                tokens,
                vocabulary.peer_tokens(text),
                "{} {number}: {text}",
                family.name
            );
        }
        contents.count()
    });
}

#[test]
fn texts_are_those_of_another_implementation() {
    for_each_case(contents_to_try() / 4, |family, _, number| {
        let contents = match number % 4 {
            0 => Contents::of_words(number),
            _ => Contents::of_fragments(family, number),
        };
        let conversation = Shape::of(family, number).conversation(&contents);
        // `minijinja` writes mappings as JSON, where Python has its own form.
        if family.source.contains("(tool | string)") && !conversation.tools.is_empty() {
            return 0;
        }
        let own = conversation
            .render(&family.template)
            .map(|prompt| prompt.text().to_owned());
        let other = oracle::rendered(family, &conversation);
        match (own, other) {
            (Ok(own), Ok(other)) => assert_eq!(own, other, "{} {number}", family.name),
            (Err(_), Err(_)) => {}
            (own, other) => panic!("{} {number}: {own:?} and {other:?}", family.name),
        }
        contents.count()
    });
}

/// A conversation of the shape with everything in it, so that each template writes what it can.
#[test]
fn every_family_takes_a_plain_conversation() {
    for family in families::all() {
        let contents = Contents::of_words(1);
        let prompt = Shape::plain(&family)
            .conversation(&contents)
            .render(&family.template);
        let prompt = prompt.unwrap_or_else(|error| panic!("{}: {error}", family.name));
        let said = contents
            .texts()
            .iter()
            .filter(|text| prompt.text().contains(text.trim()))
            .count();
        assert!(said >= 2, "{}: {}", family.name, prompt.text());
        let spans: String = prompt.spans().map(|span| &prompt.text()[span.range]).collect();
        assert_eq!(spans, prompt.text());
    }
}
