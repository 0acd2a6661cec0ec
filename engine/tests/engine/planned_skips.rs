//! A model that drafts for itself without some of its layers, with passes by plan.

use crate::launcher::OnProcessor;
use crate::planned::{ERROR_OF_ROW, feed, llama, options, relative, rows, told};
use crate::processor;
use lexiform_engine::{LoadOptions, SkippedLayers};
use lexiform_kernels::launcher::Launcher;
use std::sync::atomic::Ordering;

/// A model that drafts for itself without some layers was run by torch alone, each of its tokens slower than
/// a pass of the whole model.
#[test]
fn a_draft_without_some_layers_is_run_by_the_kernels_too() {
    if !processor::is_there("a_draft_without_some_layers_is_run_by_the_kernels_too") {
        return;
    }
    let options = LoadOptions {
        draft_without: Some(SkippedLayers::Named(vec![0])),
        ..options()
    };
    let launcher = OnProcessor::new();
    let asked = launcher.asked();
    let draft = |launcher: Option<Box<dyn Launcher>>| {
        let mut draft = llama().load_all(&options, launcher).draft.unwrap().model;
        draft.create_cache(8, 16).unwrap();
        draft
    };
    told();
    let mut planned = draft(Some(Box::new(launcher)));
    let told = told();
    assert!(
        told.len() == 1 && told[0].contains("are run by kernels on"),
        "{told:?}"
    );
    let before = asked.steps.load(Ordering::Relaxed);
    let found = rows(&mut *planned, &[feed(&[1, 2, 3], 0)]);
    assert!(asked.steps.load(Ordering::Relaxed) > before);
    let wanted = rows(&mut *draft(None), &[feed(&[1, 2, 3], 0)]);
    assert!(relative(&found, &wanted) < ERROR_OF_ROW);
}
