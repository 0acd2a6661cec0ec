//! Connections by the hundred whose requests never become whole, and few files to hold them.

use std::io::Write;
use std::net::TcpStream;
use std::process::Stdio;

use crate::program::{Service, get, model_folder, serving};

/// Opens so many connections, each with the beginning of a body of 4 MB.
fn crowd(address: &str, count: usize) -> Vec<TcpStream> {
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: t\r\ncontent-length: 4000000\r\n\r\n{";
    let open = |_| {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.write_all(head.as_bytes()).ok()?;
        Some(stream)
    };
    (0..count).filter_map(open).collect()
}

fn is_answered(address: &str) {
    for path in ["/live", "/ready", "/metrics"] {
        let answer = get(address, path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
}

/// Guards against probes that are not answered while strangers hold connections.
#[test]
fn thousands_of_unfinished_bodies_keep_nobody_out() {
    let service = Service::start(&model_folder("crowded"));
    let crowd = crowd(&service.address, 2_300);
    is_answered(&service.address);
    drop(crowd);
    is_answered(&service.address);
}

/// The same where the process may open 256 files.
#[test]
fn few_files_are_enough_to_answer_probes() {
    let serving = serving(0, &model_folder("narrow"), &[]);
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", "ulimit -n 256 && exec \"$@\"", "sh"])
        .arg(serving.get_program())
        .args(serving.get_args())
        .stdin(Stdio::null());
    let service = Service::spawned(&mut command);
    let crowd = crowd(&service.address, 600);
    is_answered(&service.address);
    drop(crowd);
}
