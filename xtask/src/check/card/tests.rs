//! Tests the bundle on a machine without a card, and that a failing step does not keep the next one from
//! running.

use super::*;

/// A bundle whose programs are scripts.
struct Bundle(PathBuf);

impl Bundle {
    fn new(name: &str, programs: &[(&str, &str)]) -> Self {
        let name = format!("lexiform-card-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join("sources")).unwrap();
        for (file, to) in FILES.iter().filter(|(file, _)| file.starts_with("xtask/")) {
            copy(&root().join(file), &folder.join(to)).unwrap();
        }
        fs::write(folder.join("built_at"), folder.to_string_lossy().as_bytes()).unwrap();
        for (name, script) in programs {
            let file = folder.join(name);
            fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            Command::new("chmod").arg("+x").arg(&file).status().unwrap();
        }
        Bundle(folder)
    }

    /// Returns what the run reports for each step, and whether it ended well.
    fn run(&self, steps: &[&str], settings: &[(&str, &str)]) -> (BTreeMap<String, String>, bool) {
        let results = self.0.join("results");
        let mut run = Command::new("sh");
        run.arg(self.0.join("run.sh")).arg(&results).args(steps);
        run.env_remove("LIBTORCH").envs(settings.iter().copied());
        let output = run.output().unwrap();
        let steps = fs::read_to_string(results.join("steps.json")).unwrap();
        let steps: Value = serde_json::from_str(&steps).unwrap();
        let table = String::from_utf8_lossy(&output.stdout).into_owned();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let told = steps.as_array().unwrap().iter().map(|step| {
            let (name, outcome) = (text(&step["step"]), text(&step["outcome"]));
            let is_in_table = |line: &str| line.starts_with(&name) && line.ends_with(&outcome);
            assert!(
                table.lines().any(is_in_table),
                "{name} is not in the table:\n{table}"
            );
            (name, outcome)
        });
        (told.collect(), output.status.success())
    }
}

impl Drop for Bundle {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn without_a_card_every_step_that_needs_one_says_so() {
    let bundle = Bundle::new("none", &[("kernels", "echo no card: no driver; exit 3")]);
    let (steps, is_well) = bundle.run(&[], &[]);
    assert!(is_well);
    assert_eq!(steps["card"], "not there: no card: no driver");
    for step in [
        "clocks",
        "constants",
        "kernels_check",
        "kernels_times",
        "engine_tests",
        "planned_tests",
        "decode_1b",
        "decode_1b_by_torch",
        "decode_8b",
        "decode_135m",
        "decode_at_0_7",
        "decode_no_overlap",
        "decode_no_dependent_launch",
        "decode_fp8",
        "decode_int8",
        "prompts",
        "prompts_by_torch",
        "out_of_memory",
        "no_such_card",
    ] {
        assert_eq!(steps[step], "no card", "{step}");
    }
    assert!(!bundle.0.join("results/decode_1b.log").exists());
}

#[test]
fn a_step_that_fails_does_not_keep_the_next_from_running() {
    let kernels = "for last; do :; done\ncase $last in check) echo wrong; exit 1;; esac";
    let bundle = Bundle::new(
        "one",
        &[
            ("kernels", kernels),
            ("engine_tests", "case $1 in devices) sleep 60;; esac"),
            ("lexiform-server", "echo 5"),
        ],
    );
    let script = bundle.0.join("run.sh");
    let text = fs::read_to_string(&script).unwrap();
    fs::write(
        &script,
        text.replace("on_card engine_tests 60", "on_card engine_tests 1"),
    )
    .unwrap();
    let (steps, is_well) = bundle.run(&[], &[]);
    assert!(!is_well);
    assert_eq!(steps["card"], "passed");
    assert_eq!(steps["kernels_check"], "failed: exit code 1: wrong");
    assert_eq!(steps["kernels_times"], "passed");
    assert_eq!(steps["engine_tests"], "failed: more than 1 s");
    assert_eq!(steps["decode_1b"], "passed");
    let log = fs::read_to_string(bundle.0.join("results/kernels_check.log")).unwrap();
    assert_eq!(log, "wrong\n");
}

#[test]
fn everything_that_is_carried_is_in_the_tree() {
    for (file, _) in FILES {
        assert!(root().join(file).exists(), "{file}");
    }
}

#[test]
fn programs_are_told_apart_by_name_and_kind() {
    let message = |name: &str, kind: &str| {
        format!(r#"{{"target": {{"name": "{name}", "kind": ["{kind}"]}}, "executable": "/t/{name}"}}"#)
    };
    assert_eq!(
        program(&message("kernels", "example")),
        Some(("kernels", "/t/kernels".into()))
    );
    assert_eq!(program(&message("kernels", "test")), None);
    assert_eq!(program("no JSON"), None);
}

#[test]
fn a_second_run_repeats_what_it_is_told_to() {
    let programs = [
        ("kernels", ""),
        ("engine_tests", ""),
        ("lexiform-server", "exit 2"),
    ];
    let bundle = Bundle::new("two", &programs);
    let (steps, is_well) = bundle.run(&["kernels_check", "out_of_memory"], &[]);
    assert!(is_well, "{steps:?}");
    let names: Vec<&str> = steps.keys().map(String::as_str).collect();
    assert_eq!(names, ["kernels_check", "out_of_memory"]);
    let (steps, is_well) = bundle.run(&["kernel_check"], &[]);
    assert!(!is_well);
    assert_eq!(steps["kernel_check"], "failed: there is no such step");
}

#[test]
fn no_step_begins_once_the_time_is_over() {
    let programs = [("kernels", ""), ("engine_tests", ""), ("lexiform-server", "")];
    let bundle = Bundle::new("late", &programs);
    let (steps, is_well) = bundle.run(&["decode_1b"], &[("CARD_SECONDS", "4")]);
    assert!(is_well);
    assert_eq!(steps["decode_1b"], "not run: 4 s were over");
}

#[test]
fn decode_loops_run_on_a_processor_where_that_is_asked_for() {
    let kernels = "echo no card: no driver; exit 3";
    let says = "for last; do case $last in tiny) echo small; esac; done";
    let bundle = Bundle::new("cpu", &[("kernels", kernels), ("lexiform-server", says)]);
    let (steps, _) = bundle.run(&["decode_8b", "kernels_check"], &[("CARD_DEVICE", "cpu")]);
    assert_eq!(
        (steps["decode_8b"].as_str(), steps["kernels_check"].as_str()),
        ("passed", "no card")
    );
    let log = fs::read_to_string(bundle.0.join("results/decode_8b.log")).unwrap();
    assert_eq!(log, "small\n");
}
