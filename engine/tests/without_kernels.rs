//! An engine that is built without the feature `kernels`, where the tests of the decode loop are left out.

#![cfg(not(feature = "kernels"))]

use std::path::Path;

use lexiform_engine::{LoadError, LoadOptions, ModelFiles, load};

#[test]
fn options_that_ask_for_kernels_are_refused() {
    eprintln!("skipped: the decode loop; `cargo test -p lexiform-engine --features kernels` tests it");
    let files = ModelFiles::folder(Path::new("/nowhere"));
    for (kernels, dependent_launch) in [(true, true), (false, false)] {
        let options = LoadOptions {
            kernels,
            dependent_launch,
            ..LoadOptions::default()
        };
        match load(&files, &options).err() {
            Some(LoadError::NotBuilt { feature, .. }) => assert_eq!(feature, "kernels"),
            other => panic!("{other:?}"),
        }
    }
    assert!(!LoadOptions::default().kernels);
}
