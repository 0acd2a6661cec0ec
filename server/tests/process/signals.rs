//! What clients see when the program is told to stop, and when it is killed.

use std::path::Path;

use crate::asking::{Asked, Crowd, Outcome, ask, letters, obeys};
use crate::program::{Service, model_folder};

/// Letters of a long answer; the model of the test knows 512 positions.
pub(crate) const LONG: usize = 380;

/// Streams of long answers, of which one runs and the others wait, so that a signal finds them under way.
pub(crate) fn streams(service: &Service, count: usize) -> Vec<Asked> {
    let asked = |number| Asked::send(&service.address, &letters(LONG, 2 * number)).expect("a connection");
    let streams: Vec<Asked> = (0..count).map(asked).collect();
    streams.iter().for_each(Asked::begun);
    streams
}

/// Guards against answers that are cut, or requests that are lost without a word, when a server is replaced.
#[test]
fn a_signal_to_stop_lets_every_stream_end_whole_and_takes_no_new_request() {
    let mut service = Service::start_with(&model_folder("drained"), &["--max-batch", "1"]);
    let streams = streams(&service, 6);
    service.signal("-TERM");
    // The signal arrives some time after it was sent: requests may still be taken, until the first is not.
    let refused = loop {
        match ask(&service.address, &letters(3, 1)) {
            Outcome::Whole(text) => assert!(obeys(&text, 3)),
            other => break other,
        }
    };
    assert!(
        matches!(refused, Outcome::Refused(503) | Outcome::Broken),
        "{refused:?}"
    );
    for stream in streams {
        match stream.outcome() {
            Outcome::Whole(text) => assert!(obeys(&text, LONG), "{text}"),
            other => panic!("a stream was not served to its end: {other:?}"),
        }
    }
    assert!(service.ended_well());
}

/// Guards against a server that a script ends which renews certificates: that is what the signal does by
/// default.
#[test]
fn a_signal_to_read_files_again_ends_nothing() {
    let mut service = Service::start_with(&model_folder("renewed"), &[]);
    service.signal("-HUP");
    assert!(matches!(ask(&service.address, &letters(3, 1)), Outcome::Whole(_)));
    service.signal("-TERM");
    assert!(service.ended_well());
}

/// Guards against a server that never ends because one answer does not.
#[test]
fn what_does_not_end_in_time_is_told_so_and_the_program_ends() {
    let more = ["--max-batch", "1", "--drain-seconds", "1"];
    let mut service = Service::start_with(&model_folder("hurried"), &more);
    let ask = |number: usize| {
        let mut body = letters(LONG, 2 * number);
        body["n"] = 16.into();
        Asked::send(&service.address, &body).expect("a connection")
    };
    let streams: Vec<Asked> = (0..8).map(ask).collect();
    streams.iter().for_each(Asked::begun);
    service.signal("-TERM");
    let outcomes: Vec<Outcome> = streams.into_iter().map(Asked::outcome).collect();
    let told = Outcome::Told("shutting_down".to_owned());
    assert!(outcomes.contains(&told), "{outcomes:?}");
    let ended = |outcome: &Outcome| *outcome == told || matches!(outcome, Outcome::Whole(_));
    assert!(outcomes.iter().all(ended), "{outcomes:?}");
    assert!(service.ended_well());
}

/// Guards against half answers that look whole, and against a port that cannot be taken again.
#[test]
fn killed_and_started_again_under_load_it_never_answers_wrong() {
    let folder = model_folder("killed");
    let start = |port: u16, folder: &Path| Service::start_on(port, folder, &[]);
    let first = start(0, &folder);
    let (port, address) = (first.port(), first.address.clone());
    let mut second = None;
    let outcomes = Crowd::asks(&address, 60, |crowd| {
        crowd.until_answered(12);
        first.signal("-KILL");
        drop(first);
        second = Some(start(port, &folder));
        crowd.until_answered(12);
    });
    for outcome in &outcomes {
        match outcome {
            Outcome::Whole(text) => assert!(obeys(text, 60), "{text}"),
            Outcome::Broken => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(outcomes.contains(&Outcome::Broken), "the kill was not noticed");
}
