//! The example of a callback: SQL that fits a database of which neither the model nor the constraint knows
//! anything.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::program::{Service, shown};

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a checkout")
        .to_owned()
}

fn python(program: &str) -> Command {
    let mut python = Command::new("python3");
    python
        .arg(checkout().join("examples/sql").join(program))
        .stdin(Stdio::null());
    python
}

/// The host of the example, and its address.
struct Host(Child, String);

impl Host {
    fn start() -> Self {
        let mut child = python("host.py")
            .args(["--port", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("an address");
        Host(child, line.trim().to_owned())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_example_writes_statements_that_its_database_can_run() {
    let has_python = Command::new("python3")
        .args(["-c", "import sqlite3, sys; sys.exit(sys.version_info < (3, 9))"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !has_python {
        println!(
            "skipped: sql::the_example_writes_statements_that_its_database_can_run: python3 is not there"
        );
        return;
    }
    let host = Host::start();
    let model = checkout().join("models/demo");
    let service = Service::start_with(&model, &["--callback", &format!("schema={}", host.1)]);
    let asked = python("ask.py")
        .args(["Which customers live in Vienna?", "--count", "6"])
        .args(["--url", &format!("http://{}", service.address)])
        .output()
        .expect("Python starts");
    assert!(asked.status.success(), "{}", shown(&asked.stderr));
    let output = shown(&asked.stdout);
    let statements: Vec<&str> = output.lines().collect();
    assert_eq!(statements.len(), 6, "{output}");
    let names = [
        "SELECT",
        "FROM",
        "WHERE",
        "customers",
        "orders",
        "id",
        "name",
        "city",
        "customer_id",
        "total",
    ];
    for statement in statements {
        assert!(
            statement.starts_with("SELECT ") && statement.ends_with(';'),
            "{statement}"
        );
        let bare = statement.split('\'').step_by(2).collect::<String>();
        let words = bare.split(|letter: char| !letter.is_ascii_alphabetic() && letter != '_');
        for word in words.filter(|word| !word.is_empty()) {
            assert!(names.contains(&word), "{word} in {statement}");
        }
        let is_of = |table: &str| statement.contains(&format!("FROM {table}"));
        assert!(!(is_of("orders") && bare.contains("city")), "{statement}");
    }
}
