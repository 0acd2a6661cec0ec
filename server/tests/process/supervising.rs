//! Those that start and watch the service: systemd by its units and its messages, and engines of containers.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::Command;

use crate::asking::SILENCE;
use crate::program::{Service, model_folder, serving, shown};

fn deployed(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(file);
    std::fs::read_to_string(path).expect("a file of deploy/")
}

/// Guards against units that wait for a message that never comes, and managers that think that a service
/// hangs while it takes up its files.
#[test]
fn the_service_manager_is_told_of_start_reload_and_stop() {
    let name = format!("lexiform-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let manager = UnixDatagram::bind_addr(&address).expect("a socket");
    manager.set_read_timeout(Some(SILENCE)).expect("a limit");
    let told = || {
        let mut message = [0; 1024];
        let length = manager.recv(&mut message).expect("a message");
        shown(&message[..length])
    };
    let mut command = serving(0, &model_folder("supervised"), &[]);
    let mut service = Service::spawned(command.env("NOTIFY_SOCKET", format!("@{name}")));
    let ready = told();
    assert!(
        ready.starts_with("READY=1\nSTATUS=Serving at http://127.0.0.1:"),
        "{ready}"
    );
    service.signal("-HUP");
    let reloading = told();
    let clock = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
    assert!(
        clock.is_some_and(|clock| clock.parse::<u64>().is_ok()),
        "{reloading}"
    );
    assert_eq!(told(), ready);
    service.signal("-TERM");
    assert!(told().starts_with("STOPPING=1\n"));
    assert!(service.ended_well());
}

/// A socket that is not there, as in a container that inherits the variable, is no reason to fail.
#[test]
fn without_a_manager_it_starts_all_the_same() {
    let mut command = serving(0, &model_folder("unsupervised"), &[]);
    let mut service = Service::spawned(command.env("NOTIFY_SOCKET", "/nowhere/notify"));
    service.signal("-TERM");
    assert!(service.ended_well());
}

#[test]
fn systemd_takes_the_units() {
    let folder = model_folder("units");
    let program = env!("CARGO_BIN_EXE_lexiform");
    for (file, instance) in [
        ("lexiform.service", "lexiform.service"),
        ("lexiform@.service", "lexiform@0.service"),
    ] {
        let unit = deployed(file);
        assert!(unit.contains("/usr/local/bin/lexiform "), "{file}");
        let path = folder.join(file);
        std::fs::write(
            &path,
            unit.replace("/usr/local/bin/lexiform ", &format!("{program} ")),
        )
        .expect("a unit");
        let verified = Command::new("systemd-analyze")
            .args(["verify", "--man=no", "--recursive-errors=no"])
            .arg(folder.join(instance))
            .output();
        let Ok(verified) = verified else {
            println!("skipped: systemd_takes_the_units: there is no systemd-analyze");
            return;
        };
        let said = shown(&verified.stderr);
        // It also speaks of the units of the machine.
        let about: Vec<&str> = said.lines().filter(|line| line.contains("lexiform")).collect();
        assert!(verified.status.success() && about.is_empty(), "{file}: {said}");
    }
}

/// The rules are valid, and raise the alerts that they are for.
#[test]
fn prometheus_takes_the_alerts() {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/alerts_test.yaml");
    let tested = Command::new("promtool")
        .args(["test", "rules"])
        .arg(rules)
        .output();
    let Ok(tested) = tested else {
        println!("skipped: prometheus_takes_the_alerts: there is no promtool");
        return;
    };
    assert!(
        tested.status.success(),
        "{}{}",
        shown(&tested.stdout),
        shown(&tested.stderr)
    );
}

/// The check of the image, run as it stands there.
#[test]
fn the_health_check_of_the_image_sees_whether_the_service_lives() {
    let file = deployed("Containerfile");
    let check = file
        .split("CMD ")
        .find(|part| part.starts_with("[\"bash\""))
        .expect("a check");
    let check = check.lines().next().expect("a line");
    let words: Vec<String> = serde_json::from_str(check).expect("JSON");
    let service = Service::start(&model_folder("checked"));
    let port = service.port().to_string();
    let is_well = || {
        let status = Command::new(&words[0])
            .args(&words[1..])
            .env("LEXIFORM_PORT", &port)
            .status();
        status.expect("there is bash").success()
    };
    assert!(is_well());
    drop(service);
    assert!(!is_well());
}
