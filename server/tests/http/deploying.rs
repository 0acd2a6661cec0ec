//! The files of `deploy/` against the service: what they name is there.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::Value;
use yaml_rust2::{Yaml, YamlLoader};

use super::service::Service;

const KUBERNETES: &str = include_str!("../../../deploy/kubernetes.yaml");
const ALERTS: &str = include_str!("../../../deploy/alerts.yaml");
const DASHBOARD: &str = include_str!("../../../deploy/dashboard.json");
/// The files that name flags by their variables.
const NAMING_FLAGS: [&str; 6] = [
    KUBERNETES,
    ALERTS,
    include_str!("../../../deploy/lexiform.service"),
    include_str!("../../../deploy/lexiform@.service"),
    include_str!("../../../deploy/Containerfile"),
    include_str!("../../../deploy/haproxy.cfg"),
];

fn names<'a>(pattern: &str, text: &'a str) -> BTreeSet<&'a str> {
    let pattern = Regex::new(pattern).expect("a pattern");
    pattern.find_iter(text).map(|found| found.as_str()).collect()
}

#[test]
fn the_probes_of_the_manifest_answer() {
    let service = Service::start();
    let probes: Vec<&str> = KUBERNETES
        .split(" {path: ")
        .skip(1)
        .filter_map(|rest| rest.split(',').next())
        .collect();
    assert_eq!(probes, ["/live", "/live", "/ready"]);
    for path in probes {
        assert_eq!(service.get(path).status, 200, "{path}");
    }
}

#[test]
fn every_flag_that_a_file_names_exists() {
    let help = std::process::Command::new(env!("CARGO_BIN_EXE_lexiform"))
        .args(["serve", "--help"])
        .output()
        .expect("the program runs");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let known = names("LEXIFORM_[A-Z_]+", &help);
    for text in NAMING_FLAGS {
        let unknown: Vec<&str> = names("LEXIFORM_[A-Z_]+", text)
            .difference(&known)
            .copied()
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        for flag in names(
            "(?m)--(host|port|device|model|drain|answer|cache|draft|max|model)[a-z-]*",
            text,
        ) {
            // The router of the pool has a flag of its own.
            assert!(
                help.contains(flag) || flag == "--model-server-metrics-port",
                "{flag}"
            );
        }
    }
}

/// Guards against alerts that never fire and panels that stay empty because a metric has another name.
#[test]
fn every_metric_that_a_file_names_is_told() {
    let service = Service::start();
    let metrics = service.get("/metrics");
    let mut told = BTreeSet::new();
    for line in metrics
        .text()
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
    {
        let (name, kind) = line.split_once(' ').expect("a name and a type");
        told.insert(name.to_owned());
        if kind == "histogram" {
            told.extend(["_bucket", "_sum", "_count"].map(|part| format!("{name}{part}")));
        }
    }
    for (file, text) in [
        ("manifest", KUBERNETES),
        ("alerts", ALERTS),
        ("dashboard", DASHBOARD),
    ] {
        let named = names("(lexiform_|vllm:)[a-z0-9_]+", text);
        let unknown: Vec<&str> = named.into_iter().filter(|name| !told.contains(*name)).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
    assert!(names("(lexiform_|vllm:)[a-z0-9_]+", DASHBOARD).len() > 20);
}

#[test]
fn every_alert_says_how_urgent_it_is_and_what_is_wrong() {
    let alerts = YamlLoader::load_from_str(ALERTS).expect("YAML");
    let rules = alerts[0]["groups"][0]["rules"].as_vec().expect("rules");
    assert!(rules.len() > 8);
    for rule in rules {
        let name = rule["alert"].as_str().expect("a name");
        assert!(rule["expr"].as_str().is_some(), "{name}");
        assert!(
            ["page", "ticket"].contains(&rule["labels"]["severity"].as_str().unwrap_or_default()),
            "{name}"
        );
        assert!(rule["annotations"]["summary"].as_str().is_some(), "{name}");
    }
}

#[test]
fn every_panel_asks_for_something() {
    let board: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let panels = board["panels"].as_array().expect("panels");
    assert!(panels.len() > 10);
    for panel in panels {
        let targets = panel["targets"].as_array().expect("targets");
        let asked = targets
            .iter()
            .all(|target| target["expr"].as_str().is_some_and(|it| !it.is_empty()));
        assert!(asked && !targets.is_empty(), "{}", panel["title"]);
    }
}

/// Guards against objects that name each other wrongly, and images that change under a tag.
#[test]
fn the_objects_of_the_manifest_fit_together() {
    let objects = YamlLoader::load_from_str(KUBERNETES).expect("YAML");
    let of = |kind: &str| {
        let found = objects
            .iter()
            .find(|object| object["kind"].as_str() == Some(kind));
        found.unwrap_or_else(|| panic!("no {kind}"))
    };
    let name = |kind: &str| &of(kind)["metadata"]["name"];
    let pod = &of("Deployment")["spec"]["template"];
    let app = &pod["metadata"]["labels"]["app"];
    for (kind, selector) in [
        ("Service", &of("Service")["spec"]["selector"]),
        (
            "PodDisruptionBudget",
            &of("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        ),
        (
            "InferencePool",
            &of("InferencePool")["spec"]["selector"]["matchLabels"],
        ),
    ] {
        assert_eq!(&selector["app"], app, "{kind}");
    }
    let volumes = &pod["spec"]["volumes"];
    assert_eq!(&volumes[0]["secret"]["secretName"], name("Secret"));
    assert_eq!(
        &volumes[1]["persistentVolumeClaim"]["claimName"],
        name("PersistentVolumeClaim")
    );
    let container = &pod["spec"]["containers"][0];
    let image = format!("lexiform:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(container["image"], Yaml::String(image));
    let mounted: Vec<&Yaml> = (0..3)
        .map(|place| &container["volumeMounts"][place]["name"])
        .collect();
    let there: Vec<&Yaml> = (0..3).map(|place| &volumes[place]["name"]).collect();
    assert_eq!(mounted, there);
    // What the Secret holds can be read as a file of keys.
    let keys = of("Secret")["stringData"]["keys.toml"]
        .as_str()
        .expect("a file of keys");
    lexiform_server::operate::keys::Keys::parse(keys).expect("keys");
}
