//! The program on a graphics card, where there is one.

use crate::asking::{Outcome, ask, letters, obeys};
use crate::program::{Service, lexiform, model_folder, shown};

const ON_CARD: [&str; 2] = ["--device", "cuda"];

/// Whether the program can use a card; if not, it says so by its status and names the device.
fn has_card(test: &str) -> bool {
    let folder = model_folder("card");
    let mut command = lexiform();
    command
        .args(["generate", "hello", "--regex", "[ab]", "--model"])
        .arg(folder)
        .args(ON_CARD);
    let output = command.output().expect("the program runs");
    if output.status.success() {
        return true;
    }
    assert_eq!(output.status.code(), Some(2));
    let said = shown(&output.stderr);
    assert!(
        said.contains("device cuda:0: ") && !said.contains("Hugging Face"),
        "{said}"
    );
    println!("skipped: {test}: no CUDA device");
    false
}

/// Guards against a service that works on a processor alone: whole answers, streams and a crowd, each in its
/// language.
#[test]
fn a_card_serves_a_crowd() {
    if !has_card("a_card_serves_a_crowd") {
        return;
    }
    let mut service = Service::start_with(&model_folder("card"), &ON_CARD);
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let ask = |number: usize| ask(&service.address, &letters(number + 1, number));
        let clients: Vec<_> = (0..24).map(|number| scope.spawn(move || ask(number))).collect();
        clients
            .into_iter()
            .map(|client| client.join().expect("a client"))
            .collect()
    });
    for (number, outcome) in outcomes.iter().enumerate() {
        let whole = matches!(outcome, Outcome::Whole(text) if obeys(text, number + 1));
        assert!(whole, "{number}: {outcome:?}");
    }
    service.signal("-TERM");
    assert!(service.ended_well());
}
