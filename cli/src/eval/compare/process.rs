//! A worker in a process of its own, which is ended if it takes too long or too much memory.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::protocol::{Answer, Question};

/// Somebody who answers questions about one engine. After a [`Lost`], the next question goes to a new
/// worker.
pub(super) trait Peer {
    /// Asks a question.
    fn ask(&mut self, question: &Question) -> Result<Answer, Lost>;
}

/// Why a worker gave no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum Lost {
    #[error("more than {seconds} s")]
    Time { seconds: f64 },
    #[error("more than {mebibytes} MiB")]
    Memory { mebibytes: u64 },
    #[error("the process ended{}", said(.last_line))]
    Ended { last_line: String },
    #[error("not an answer: {line}")]
    Protocol { line: String },
    #[error("cannot be started: {reason}")]
    Start { reason: String },
}

fn said(last_line: &str) -> String {
    match last_line {
        "" => String::new(),
        line => format!(": {line}"),
    }
}

/// What a worker may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Seconds of processor time for one question, and [`WAITING`] times as many on the wall.
    pub(super) seconds: f64,
    /// Seconds for the first question, with which an engine reads the vocabulary.
    pub(super) seconds_to_load: f64,
    pub(super) mebibytes: u64,
}

/// How a worker is started.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    /// The file that takes what the worker prints besides its answers.
    pub(super) log: PathBuf,
}

/// A worker's process, which is started when it is first asked.
pub(super) struct Process {
    launch: Launch,
    bounds: Bounds,
    /// The question with which a new process begins.
    load: Question,
    running: Option<Running>,
}

struct Running {
    child: Child,
    questions: ChildStdin,
    answers: Receiver<String>,
}

/// The times by which the time on the wall may exceed the processor time, on a machine that does other work.
const WAITING: f64 = 6.0;
/// The longest part of a wrong line that is shown, in characters.
const SHOWN: usize = 120;

impl Process {
    pub(super) fn new(launch: Launch, bounds: Bounds, load: Question) -> Self {
        Self {
            launch,
            bounds,
            load,
            running: None,
        }
    }

    fn started(&mut self) -> Result<(), Lost> {
        if self.running.is_some() {
            return Ok(());
        }
        self.running = Some(self.launch.start()?);
        let load = self.load.clone();
        match self.exchange(&load, self.bounds.seconds_to_load)? {
            Answer::Refused { reason } => {
                self.end();
                Err(Lost::Start { reason })
            }
            _ => Ok(()),
        }
    }

    fn exchange(&mut self, question: &Question, seconds: f64) -> Result<Answer, Lost> {
        let line = serde_json::to_string(question).map_err(|error| Lost::Protocol {
            line: error.to_string(),
        })?;
        let answered = match &mut self.running {
            Some(running) => running.exchange(&line, seconds, self.bounds.mebibytes),
            None => Err(self.ended()),
        };
        let answer = match answered {
            Ok(Some(line)) => serde_json::from_str(&line).map_err(|_| Lost::Protocol {
                line: line.chars().take(SHOWN).collect(),
            }),
            Ok(None) => Err(self.ended()),
            Err(lost) => Err(lost),
        };
        answer.inspect_err(|_| self.end())
    }

    fn ended(&self) -> Lost {
        let log = std::fs::read(&self.launch.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let last = log.lines().rfind(|line| !line.trim().is_empty());
        Lost::Ended {
            last_line: last.unwrap_or_default().trim().chars().take(SHOWN).collect(),
        }
    }

    fn end(&mut self) {
        if let Some(mut running) = self.running.take() {
            // It may have ended by itself.
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}

impl Peer for Process {
    fn ask(&mut self, question: &Question) -> Result<Answer, Lost> {
        if matches!(question, Question::Load { .. }) {
            self.end();
            self.running = Some(self.launch.start()?);
            self.load = question.clone();
            return self.exchange(question, self.bounds.seconds_to_load);
        }
        self.started()?;
        self.exchange(question, self.bounds.seconds)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

impl Launch {
    fn start(&self) -> Result<Running, Lost> {
        let refused = |error: std::io::Error| Lost::Start {
            reason: format!("{}: {}", self.program.display(), crate::failure::reason(&error)),
        };
        let log = std::fs::File::create(&self.log).map_err(refused)?;
        let mut child = Command::new(&self.program)
            .args(&self.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(refused)?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(refused(std::io::ErrorKind::BrokenPipe.into()));
        };
        let (send, receive) = channel();
        // Ends with the process, whose output it reads.
        std::thread::spawn(move || {
            let lines = BufReader::new(answers).lines().map_while(Result::ok);
            lines.take_while(|line| send.send(line.clone()).is_ok()).count()
        });
        Ok(Running {
            child,
            questions,
            answers: receive,
        })
    }
}

impl Running {
    /// Sends a line and waits for the line that answers it; `None` if the process ended.
    fn exchange(&mut self, line: &str, seconds: f64, mebibytes: u64) -> Result<Option<String>, Lost> {
        const LOOK: Duration = Duration::from_millis(50);
        let (began, used) = (Instant::now(), self.processor_seconds());
        if writeln!(self.questions, "{line}").is_err() {
            return Ok(None);
        }
        loop {
            match self.answers.recv_timeout(LOOK) {
                Ok(line) => return Ok(Some(line)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let wall = began.elapsed().as_secs_f64();
            if self.processor_seconds() - used > seconds || wall > WAITING * seconds {
                return Err(Lost::Time { seconds });
            }
            if self.resident_mebibytes() > mebibytes {
                return Err(Lost::Memory { mebibytes });
            }
        }
    }

    /// Returns the processor time of all threads of the process; 0 where the system does not tell.
    fn processor_seconds(&self) -> f64 {
        // The unit of these fields is 1/100 s on every processor that Linux runs on today.
        const TICKS: f64 = 100.0;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let ticks = fields.split_whitespace().skip(11).take(2);
        ticks.filter_map(|it| it.parse::<f64>().ok()).sum::<f64>() / TICKS
    }

    /// Returns the memory that the process holds; 0 where the system does not tell.
    fn resident_mebibytes(&self) -> u64 {
        resident_kib(&format!("/proc/{}/status", self.child.id())) / 1024
    }
}

/// Returns the KiB of memory that a process holds, from the path of its status; 0 if there is none.
pub(super) fn resident_kib(status: &str) -> u64 {
    let status = std::fs::read_to_string(status).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker that is a script of the shell, which answers the first question as an engine that is ready.
    fn scripted(name: &str, script: &str, bounds: Bounds) -> Process {
        let load = Question::Load {
            tokenizer: PathBuf::new(),
            vocabulary: PathBuf::new(),
        };
        let ready =
            r#"read q; echo '{"loaded":{"version":"1","resident":0,"once_us":0,"clock_us":0,"call_us":0}}';"#;
        let launch = Launch {
            program: "/bin/sh".into(),
            args: vec!["-c".to_owned(), format!("{ready} read q; {script}")],
            log: std::env::temp_dir().join(format!("lexiform-compare-{}-{name}", std::process::id())),
        };
        Process::new(launch, bounds, load)
    }

    const AMPLE: Bounds = Bounds {
        seconds: 60.0,
        seconds_to_load: 60.0,
        mebibytes: 1024,
    };

    #[test]
    fn an_answer_is_read_and_every_way_to_give_none_has_its_reason() {
        let lost = |name, script, bounds| scripted(name, script, bounds).ask(&Question::Threads {});
        let answer = lost("fine", r#"echo '{"threads":{"ratio":null}}'"#, AMPLE);
        assert_eq!(answer, Ok(Answer::Threads { ratio: None }));
        let ended = |last_line: &str| {
            Err(Lost::Ended {
                last_line: last_line.to_owned(),
            })
        };
        assert_eq!(
            lost("crash", "echo 'Segmentation fault' >&2; exit 3", AMPLE),
            ended("Segmentation fault")
        );
        assert_eq!(lost("quiet", "exit 0", AMPLE), ended(""));
        let line = "Loading weights…".to_owned();
        assert_eq!(
            lost("wrong", "echo 'Loading weights…'", AMPLE),
            Err(Lost::Protocol { line })
        );
        let hurried = Bounds {
            seconds: 0.02,
            ..AMPLE
        };
        assert_eq!(
            lost("late", "exec sleep 600", hurried),
            Err(Lost::Time { seconds: 0.02 })
        );
        let narrow = Bounds {
            mebibytes: 0,
            ..AMPLE
        };
        assert_eq!(
            lost("large", "exec sleep 600", narrow),
            Err(Lost::Memory { mebibytes: 0 })
        );
    }

    #[test]
    fn a_new_process_takes_the_place_of_one_that_ended() {
        let mut worker = scripted("again", r#"echo "{\"threads\":{\"ratio\":$$}}""#, AMPLE);
        let first = worker.ask(&Question::Threads {}).expect("an answer");
        // The script ends after one answer.
        assert!(matches!(
            worker.ask(&Question::Threads {}),
            Err(Lost::Ended { .. })
        ));
        let second = worker
            .ask(&Question::Threads {})
            .expect("an answer of a new process");
        assert_ne!(first, second);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let mut worker = scripted("missing", "", AMPLE);
        worker.launch.program = "/nowhere/python".into();
        let reason = "/nowhere/python: no such file or directory".to_owned();
        assert_eq!(worker.ask(&Question::Threads {}), Err(Lost::Start { reason }));
    }
}
