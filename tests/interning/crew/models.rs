//! The models: what callers do with a crew, and what must hold whatever the order of its threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::team::Crew;

/// A model: its name, how often threads may be interrupted in one run, and the program.
type Model = (&'static str, usize, fn());

const MODELS: [Model; 6] = [
    ("every part is done once, and seen", 3, one_work),
    (
        "work that follows is not confused with what came before",
        3,
        work_after_work,
    ),
    ("three threads share parts", 2, three_threads),
    ("a crew without work ends", 3, no_work),
    ("callers at once are all served", 2, two_callers),
    ("a panic reaches the caller", 2, panicking),
];

/// How often the program of the model at hand was run.
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// Runs all models; panics at the first order of threads in which one fails.
pub(crate) fn run() {
    be_silent_of_what_is_meant();
    for (name, interruptions, program) in MODELS {
        RUNS.store(0, Ordering::Relaxed);
        let mut builder = loom::model::Builder::new();
        // Threads that wait by looking have more orders than can be tried.
        builder.preemption_bound = Some(interruptions);
        builder.check(move || {
            RUNS.fetch_add(1, Ordering::Relaxed);
            program();
        });
        println!("{name}: ok in {} orders", RUNS.load(Ordering::Relaxed));
    }
    println!("{} models hold", MODELS.len());
}

/// Keeps the panic of a model, which happens in each of its orders, out of the output.
fn be_silent_of_what_is_meant() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() != Some("a thread of a crew panicked") {
            tell(panic);
        }
    }));
}

/// What the parts of some work write, each its own.
struct Written(Vec<UnsafeCell<usize>>);

// SAFETY: loom reports every access that another one is not ordered with.
unsafe impl Sync for Written {}

impl Written {
    fn new(parts: usize) -> Self {
        Written((0..parts).map(|_| UnsafeCell::new(0)).collect())
    }

    /// Does a part.
    fn add(&self, part: usize) {
        // SAFETY: as above.
        self.0[part].with_mut(|value| unsafe { *value += part + 1 });
    }

    /// What the caller sees when the work is done: every part once.
    fn check(&self) {
        for (part, value) in self.0.iter().enumerate() {
            // SAFETY: as above.
            value.with(|value| assert_eq!(unsafe { *value }, part + 1, "part {part} is done once"));
        }
    }
}

/// Has a crew do so many parts, and looks at all of them.
fn share(crew: &Crew, parts: usize) {
    let written = Written::new(parts);
    crew.each(parts, &|part| written.add(part));
    written.check();
}

fn one_work() {
    share(&Crew::new(2), 2);
}

fn work_after_work() {
    let crew = Crew::new(2);
    share(&crew, 2);
    share(&crew, 3);
}

fn three_threads() {
    share(&Crew::new(3), 3);
}

fn no_work() {
    drop(Crew::new(2));
}

fn two_callers() {
    let crew = Arc::new(Crew::new(2));
    let other = crew.clone();
    let caller = thread::spawn(move || share(&other, 2));
    share(&crew, 2);
    caller.join().expect("no caller fails");
}

fn panicking() {
    let crew = Crew::new(2);
    let written = Written::new(2);
    let work = |part: usize| {
        written.add(part);
        if part == 1 {
            // Without the message that a panic prints.
            std::panic::resume_unwind(Box::new("part 1"));
        }
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| crew.each(2, &work)));
    assert!(outcome.is_err(), "the caller hears of it");
    // That a crew goes on after it is tested in the engine: loom's lock does not.
    written.check();
}
