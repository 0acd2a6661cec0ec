//! A thread that sends, and that is not waited for when it hangs.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the end of the program waits for the last messages of a thread.
const LAST: Duration = Duration::from_secs(5);

/// A thread that sends.
#[derive(Debug)]
pub struct Worker {
    /// Is disconnected when the thread has ended; `None` when it has been waited for.
    ended: Mutex<Option<Receiver<()>>>,
    /// When the last messages have to be sent, once the end is near.
    end: Arc<Mutex<Option<Instant>>>,
}

/// What the thread knows of its end.
#[derive(Debug)]
pub struct End {
    at: Arc<Mutex<Option<Instant>>>,
    _ended: SyncSender<()>,
}

impl Worker {
    /// Starts a thread.
    ///
    /// # Errors
    /// Fails if the operating system has none left.
    pub fn start(name: &str, work: impl FnOnce(&End) + Send + 'static) -> std::io::Result<Self> {
        let (sender, ended) = sync_channel(0);
        let end = Arc::<Mutex<Option<Instant>>>::default();
        let its = End {
            at: end.clone(),
            _ended: sender,
        };
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || work(&its))?;
        Ok(Self {
            ended: Mutex::new(Some(ended)),
            end,
        })
    }

    /// Tells the thread that the end is near, then does this, and waits for the thread, but not for long.
    pub fn finish(&self, then: impl FnOnce()) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + LAST);
        then();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ended) = ended {
            // A thread that still hangs ends with the program.
            let _ = ended.recv_timeout(LAST);
        }
    }
}

impl End {
    /// Returns how much of this time there is until the end.
    pub fn within(&self, time: Duration) -> Duration {
        let end = *self.at.lock().unwrap_or_else(PoisonError::into_inner);
        end.map_or(time, |end| {
            time.min(end.saturating_duration_since(Instant::now()))
        })
    }
}
