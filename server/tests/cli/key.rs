//! `lexiform key` and `lexiform version`, whose output differs from run to run.

use serde_json::Value;

use crate::program::lexiform;

#[test]
fn a_key_goes_to_its_owner_and_its_entry_to_the_file() {
    let run = lexiform(&["key", "shop \"7\""]);
    assert_eq!(run.code, 0);
    let told = run
        .err
        .strip_prefix("Store this key now; it is not shown again: lx-");
    assert_eq!(told.map(|key| key.trim().len()), Some(64), "{}", run.err);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(lines[..2], ["[[keys]]", r#"name = "shop \"7\"""#]);
    let hash = lines[2]
        .strip_prefix("sha256 = \"")
        .and_then(|hash| hash.strip_suffix('"'));
    assert_eq!(hash.map(str::len), Some(64), "{}", run.out);
}

#[test]
fn a_key_in_json_has_everything_in_one_line() {
    let run = lexiform(&["key", "shop", "--json"]);
    let object: Value = serde_json::from_str(&run.out).expect("one object");
    assert_eq!((run.out.lines().count(), run.err.as_str()), (1, ""));
    assert_eq!(object["name"], "shop");
    assert!(
        object["key"].as_str().is_some_and(|key| key.starts_with("lx-")),
        "{object}"
    );
    let quiet = lexiform(&["key", "shop", "--quiet"]);
    assert!(
        quiet.err.starts_with("lx-") && quiet.err.trim().len() == 67,
        "{}",
        quiet.err
    );
}

#[test]
fn a_key_without_a_name_is_refused() {
    for name in ["", "  "] {
        let run = lexiform(&["key", name]);
        assert_eq!((run.code, run.out.as_str()), (2, ""));
        assert!(run.err.contains("a key needs a name"), "{}", run.err);
    }
}

#[test]
fn the_version_says_what_was_built_and_what_it_runs_on() {
    let short = lexiform(&["--version"]);
    assert_eq!(short.out, format!("lexiform {}\n", env!("CARGO_PKG_VERSION")));
    let run = lexiform(&["version"]);
    for word in ["commit ", "target ", "libtorch 2.", "model ", "devices  cpu ("] {
        assert!(run.out.contains(word), "{word}: {}", run.out);
    }
    let object: Value = serde_json::from_str(&lexiform(&["version", "--json"]).out).expect("one object");
    assert_eq!(object["devices"][0], "cpu");
    let commit = object["commit"].as_str().expect("a commit");
    assert!(
        commit == "unknown" || commit.len() == 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{commit}"
    );
}
