//! The lines that the service writes about itself: the log, the audit log, and what it says at the start.
//!
//! A thread of its own writes the lines of each destination, so nobody waits for a disk or for the reader of
//! a pipe. Lines that cannot be written are dropped and counted: a log is no reason to refuse a request.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use tracing_subscriber::fmt::MakeWriter;

/// The number of lines that may wait for a destination; further ones are dropped.
const WAITING: usize = 4096;
/// How long the end of the program waits for the lines that are left.
const LAST_LINES: Duration = Duration::from_secs(2);

/// What lines are written to.
#[derive(Debug)]
pub enum Target {
    /// An open file.
    File(File),
    /// A named pipe without a reader. It is opened as soon as it has one; until then lines are dropped.
    Pipe(PathBuf),
}

impl Target {
    /// Opens the file of this name to append to it, and creates it if there is none. Never waits.
    ///
    /// # Errors
    /// Fails if the file cannot be opened.
    pub fn append(path: &Path) -> io::Result<Self> {
        // Without the flag, the opening of a named pipe waits for a reader.
        let nonblock = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let mut options = OpenOptions::new();
        let opened = options
            .create(true)
            .append(true)
            .custom_flags(nonblock)
            .open(path);
        match opened {
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                Ok(Self::Pipe(path.to_owned()))
            }
            Err(error) => Err(error),
            Ok(file) => {
                // The writing thread may wait: a line that does not fit at once is not to be cut.
                fcntl_setfl(&file, OFlags::APPEND)?;
                Ok(Self::File(file))
            }
        }
    }

    /// Returns the open file.
    fn file(&mut self) -> io::Result<&mut File> {
        if let Self::Pipe(path) = self {
            *self = Self::append(path)?;
        }
        match self {
            Self::File(file) => Ok(file),
            Self::Pipe(_) => Err(io::Error::other("the named pipe has no reader")),
        }
    }
}

/// A destination of lines. Clones share it.
#[derive(Clone, Debug)]
pub struct Lines {
    tasks: SyncSender<Task>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
enum Task {
    Line(Vec<u8>),
    /// Sends a word when all lines before it are written.
    Flush(SyncSender<()>),
}

#[derive(Debug, Default)]
struct Shared {
    lost: AtomicU64,
    /// What replaces the current target before the next line.
    next: Mutex<Option<Target>>,
}

impl Lines {
    /// Creates a destination that writes to this target. The function is told of an error after which lines
    /// are lost, once until a line can be written again.
    ///
    /// # Errors
    /// Fails if the operating system has no thread.
    pub fn to(target: Target, told: fn(&io::Error)) -> io::Result<Self> {
        let (tasks, waiting) = sync_channel(WAITING);
        let shared = Arc::<Shared>::default();
        let lines = Self {
            tasks,
            shared: shared.clone(),
        };
        let thread = std::thread::Builder::new().name("lexiform-lines".to_owned());
        thread.spawn(move || write_all(target, &waiting, &shared, told))?;
        Ok(lines)
    }

    /// Creates a destination of an open descriptor, such as standard error. It is written without the locks
    /// of the standard library, which a blocked writer would hold.
    ///
    /// # Errors
    /// Fails if the operating system has no thread or no descriptor left.
    pub fn to_descriptor(descriptor: impl AsFd) -> io::Result<Self> {
        let file = File::from(descriptor.as_fd().try_clone_to_owned()?);
        Self::to(Target::File(file), |_| {})
    }

    /// Hands over a line, which gets its line end here.
    pub fn line(&self, line: &str) {
        self.hand_over(format!("{line}\n").into_bytes());
    }

    fn hand_over(&self, line: Vec<u8>) {
        if self.tasks.try_send(Task::Line(line)).is_err() {
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of lines that were dropped.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Writes further lines to another target, in place of the current one.
    pub fn continue_in(&self, target: Target) {
        *self.shared.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(target);
    }

    /// Waits until the lines so far are written, but not for ever: at the end of the program, nobody may read
    /// them any more.
    pub fn flush(&self) {
        let (sender, done) = sync_channel(1);
        if self.tasks.try_send(Task::Flush(sender)).is_ok() {
            // Either way the program ends.
            let _ = done.recv_timeout(LAST_LINES);
        }
    }
}

fn write_all(mut target: Target, tasks: &Receiver<Task>, shared: &Shared, told: fn(&io::Error)) {
    let mut is_failing = false;
    for task in tasks {
        let line = match task {
            Task::Line(line) => line,
            Task::Flush(done) => {
                // Whoever waited may have given up.
                let _ = done.try_send(());
                continue;
            }
        };
        if let Some(next) = shared.next.lock().unwrap_or_else(PoisonError::into_inner).take() {
            target = next;
        }
        // One write per line, so that lines of several processes do not mix.
        let written = target.file().and_then(|file| file.write_all(&line));
        if let Err(error) = &written {
            shared.lost.fetch_add(1, Ordering::Relaxed);
            if !is_failing {
                told(error);
            }
        }
        is_failing = written.is_err();
    }
}

/// Takes each line of the log, which the subscriber writes at once, and never fails.
impl Write for &Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.hand_over(line.to_vec());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pipe() -> (UnixStream, Lines) {
        let (reader, writer) = UnixStream::pair().expect("a pair of sockets");
        let lines = Lines::to(Target::File(File::from(OwnedFd::from(writer))), |_| {});
        (reader, lines.expect("a thread"))
    }

    /// Guards against a log whose reader hangs: whoever has a line goes on, and no line is half a line.
    #[test]
    fn lines_that_nobody_reads_are_dropped_and_counted() {
        const SENT: u64 = 16_384;
        let (mut reader, lines) = pipe();
        // More than the queue and the buffer of a socket hold together.
        let line = "x".repeat(1023);
        (0..SENT).for_each(|_| lines.line(&line));
        let lost = lines.lost();
        assert!(lost > 0, "a socket took all lines");
        let counts = lines.clone();
        let mut read = String::new();
        drop(lines);
        std::thread::scope(|scope| {
            scope.spawn(|| reader.read_to_string(&mut read).expect("text"));
            counts.flush();
            drop(counts);
        });
        assert_eq!(read.lines().count() as u64 + lost, SENT);
        assert!(read.lines().all(|read| read == line));
    }

    /// Guards against a start, or a signal to open logs again, that waits for the reader of a named pipe.
    #[test]
    fn a_named_pipe_takes_lines_while_it_has_a_reader() {
        let folder = std::env::temp_dir().join(format!("lexiform-pipe-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("audit");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).expect("a named pipe");
        let lines = Lines::to(Target::append(&path).expect("it is there"), |_| {}).expect("a thread");
        lines.line("nobody reads this");
        lines.flush();
        assert_eq!(lines.lost(), 1);
        let nonblock = i32::try_from(OFlags::NONBLOCK.bits()).expect("a flag");
        let mut reader = OpenOptions::new();
        let mut reader = reader
            .read(true)
            .custom_flags(nonblock)
            .open(&path)
            .expect("a reader");
        lines.line("somebody reads this");
        lines.flush();
        lines.continue_in(Target::append(&path).expect("it is there"));
        lines.line("and this");
        lines.flush();
        let mut read = String::new();
        drop(lines);
        // The writer may not have closed its end yet; what it wrote is there.
        let _ = reader.read_to_string(&mut read);
        assert_eq!(read, "somebody reads this\nand this\n");
        std::fs::remove_dir_all(folder).expect("the folder is removed");
    }

    #[test]
    fn lines_without_a_reader_are_counted_one_by_one() {
        let (reader, lines) = pipe();
        drop(reader);
        for _ in 0..3 {
            lines.line("nobody reads this");
        }
        lines.flush();
        assert_eq!(lines.lost(), 3);
        let (mut reader, writer) = UnixStream::pair().expect("a pair of sockets");
        lines.continue_in(Target::File(File::from(OwnedFd::from(writer))));
        lines.line("a reader is back");
        lines.flush();
        drop(lines);
        let mut read = String::new();
        reader.read_to_string(&mut read).expect("text");
        assert_eq!(read, "a reader is back\n");
    }
}
