//! An asynchronous device: another thread makes the passes and draws of a scripted model in order, some time
//! after they were requested. It records the calls of the loop.

use crate::rig::WIDTH;
use lexiform_engine::{
    Ask, Drawing, EngineError, Feed, Flight, Landed, Logits, Model, ScriptedModel, SlotMoves,
};
use lexiform_law::{Allowed, Drawn, History, Place, Seeded, Warper};
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The most positions of a text.
const POSITIONS: usize = 100_000;

/// What a loop asked of a device, and what it did wrong.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Passes that were submitted.
    pub(crate) passes: AtomicUsize,
    /// Those of them that were submitted behind draws that nobody had read.
    pub(crate) ahead: AtomicUsize,
    /// Draws that were started without being waited for.
    pub(crate) started: AtomicUsize,
    /// Passes that the loop has not waited for, by their numbers, each with the places of the cache that it
    /// writes.
    pub(crate) under_way: Mutex<Vec<(usize, Vec<usize>)>>,
    /// What must not happen.
    pub(crate) wrong: Mutex<Vec<String>>,
}

impl Log {
    /// A pass that writes to these places. Of a block that a pass under way writes to, nothing may be written
    /// but what follows there.
    fn begin(&self, number: usize, places: Vec<usize>, block_size: usize) {
        let mut under_way = self.under_way.lock().unwrap();
        for (other, written) in under_way.iter() {
            for &place in &places {
                let of_block = written.iter().filter(|&at| at / block_size == place / block_size);
                let last = of_block.max();
                if last.is_some_and(|last| last + 1 != place) {
                    let what =
                        format!("pass {number} writes to {place} while pass {other} writes to {last:?}");
                    self.wrong.lock().unwrap().push(what);
                }
            }
        }
        under_way.push((number, places));
    }

    fn land(&self, number: usize) {
        self.under_way
            .lock()
            .unwrap()
            .retain(|(other, _)| *other > number);
    }

    /// How many passes are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.lock().unwrap().len()
    }

    pub(crate) fn ahead(&self) -> usize {
        self.ahead.load(Ordering::Relaxed)
    }

    /// Nothing was done wrong.
    pub(crate) fn is_clean(&self) {
        let wrong = self.wrong.lock().unwrap();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}

/// Where a device fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Never,
    /// When the pass of this number is submitted.
    Refuses(usize),
    /// When it is computed.
    Loses(usize),
    /// When its tokens are drawn.
    DrawsNothing(usize),
    /// It panics when it is submitted.
    Panics(usize),
}

/// How a device behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// Whether draws can be started and passes be submitted behind them.
    pub(crate) overlaps: bool,
    /// How long a pass takes.
    pub(crate) pass: Duration,
    /// Of so many rows that are drawn from, one has to be looked at; 0 for none.
    pub(crate) looked_at: usize,
    /// Draws are started, and no pass is taken behind them.
    pub(crate) refuses: bool,
    pub(crate) fault: Fault,
}

impl Default for Manner {
    fn default() -> Self {
        Manner {
            overlaps: true,
            pass: Duration::from_micros(50),
            looked_at: 0,
            refuses: false,
            fault: Fault::Never,
        }
    }
}

type Work = Box<dyn FnOnce(&mut ScriptedModel) + Send>;

/// Something that will be there once the device has come to it.
struct Slot<T>(Mutex<Option<T>>, Condvar);

impl<T> Slot<T> {
    fn new() -> Arc<Self> {
        Arc::new(Slot(Mutex::new(None), Condvar::new()))
    }

    fn fill(&self, value: T) {
        *self.0.lock().unwrap() = Some(value);
        self.1.notify_all();
    }

    /// Waits for it, and looks at it.
    fn with<R>(&self, look: impl FnOnce(&mut T) -> R) -> R {
        let held = self.0.lock().unwrap();
        let mut held = self.1.wait_while(held, |held| held.is_none()).unwrap();
        look(held.as_mut().unwrap())
    }
}

/// See the module.
pub(crate) struct Device {
    queue: Sender<Work>,
    /// The size of a block.
    block_size: usize,
    manner: Manner,
    pub(crate) log: Arc<Log>,
}

impl Device {
    pub(crate) fn new(script: impl Fn(&[u32]) -> Vec<f32> + Send + 'static, manner: Manner) -> Self {
        let (queue, works) = channel::<Work>();
        let mut model = ScriptedModel::new(WIDTH, POSITIONS, script).drawing();
        std::thread::spawn(move || works.into_iter().for_each(|work| work(&mut model)));
        Device {
            queue,
            block_size: 1,
            manner,
            log: Arc::default(),
        }
    }

    /// Has the device do something when it has done all else.
    fn start(&self, work: impl FnOnce(&mut ScriptedModel) + Send + 'static) {
        self.queue.send(Box::new(work)).unwrap();
    }

    /// The same, and waits for what it brings.
    fn ask<T: Send + 'static>(&self, work: impl FnOnce(&mut ScriptedModel) -> T + Send + 'static) -> T {
        let (sender, answer) = channel();
        self.start(move |model| drop(sender.send(work(model))));
        answer.recv().unwrap()
    }

    /// Submits a pass, whose tokens come from these draws if there are some.
    fn pass(
        &self,
        feeds: &[Feed<'_>],
        drawn: Option<(Arc<DrawnSlot>, Vec<usize>)>,
    ) -> Result<Box<dyn Flight>, EngineError> {
        let number = self.log.passes.fetch_add(1, Ordering::Relaxed) + 1;
        match self.manner.fault {
            Fault::Refuses(at) if at == number => return Err(lost()),
            Fault::Panics(at) if at == number => panic!("the device is on fire"),
            _ => {}
        }
        let place = |feed: &Feed<'_>, slot: usize| {
            feed.table[slot / self.block_size] as usize * self.block_size + slot % self.block_size
        };
        let written = |feed: &Feed<'_>| {
            let slots = feed.start..feed.start + feed.tokens.len();
            slots.map(|slot| place(feed, slot)).collect::<Vec<_>>()
        };
        let places = feeds.iter().flat_map(written).collect();
        self.log.begin(number, places, self.block_size);
        let mut owned: Vec<Fed> = feeds.iter().map(Fed::of).collect();
        let (slot, rows) = (Slot::new(), feeds.iter().map(|feed| feed.rows).sum());
        let (filled, manner) = (slot.clone(), self.manner);
        self.start(move |model| {
            std::thread::sleep(manner.pass);
            for (number, fed) in owned.iter_mut().enumerate() {
                if let Some((drawn, asks)) = &drawn {
                    // Of a row that has to be looked at there is any token.
                    fed.tokens = vec![drawn.with(|drawn| match drawn {
                        Ok(drawn) => drawn[asks[number]].as_ref().map_or(3, |drawn| drawn.token),
                        Err(_) => 3,
                    })];
                }
            }
            let feeds: Vec<Feed<'_>> = owned.iter().map(Fed::feed).collect();
            let flight = match manner.fault {
                Fault::Loses(at) if at == number => Err(lost()),
                _ => model.submit(&feeds),
            };
            filled.fill(flight);
        });
        Ok(Box::new(InFlight {
            number,
            rows,
            slot,
            manner: self.manner,
            queue: self.queue.clone(),
            log: self.log.clone(),
        }))
    }
}

/// The draws of a pass, once they are made.
type DrawnSlot = Slot<Result<Vec<Option<Drawn>>, EngineError>>;

fn lost() -> EngineError {
    EngineError::Model("the device was lost".to_owned())
}

/// A feed that is kept.
struct Fed {
    tokens: Vec<u32>,
    start: usize,
    table: Vec<u32>,
    rows: usize,
    parents: Option<Vec<u16>>,
    scale: f64,
}

impl Fed {
    fn of(feed: &Feed<'_>) -> Self {
        Fed {
            tokens: feed.tokens.to_vec(),
            start: feed.start,
            table: feed.table.to_vec(),
            rows: feed.rows,
            parents: feed.parents.map(<[u16]>::to_vec),
            scale: feed.scale,
        }
    }

    fn feed(&self) -> Feed<'_> {
        Feed {
            tokens: &self.tokens,
            start: self.start,
            table: &self.table,
            rows: self.rows,
            parents: self.parents.as_deref(),
            scale: self.scale,
        }
    }
}

/// An ask that is kept.
struct Kept {
    row: usize,
    allowed: Option<Vec<u32>>,
    warper: Warper,
    /// The prompt, the answer, and what is drafted behind it.
    history: [Vec<u32>; 3],
    seeded: Seeded,
    place: Place,
}

impl Kept {
    fn of(ask: &Ask<'_>) -> Self {
        Kept {
            row: ask.row,
            allowed: match ask.allowed {
                Allowed::All => None,
                Allowed::Words(words) => Some(words.to_vec()),
            },
            warper: ask.warper.clone(),
            history: [ask.history.prompt, ask.history.answer, ask.history.draft].map(<[u32]>::to_vec),
            seeded: ask.seeded,
            place: ask.place,
        }
    }

    fn ask(&self) -> Ask<'_> {
        let words = self.allowed.as_deref();
        let [prompt, answer, draft] = self.history.each_ref().map(Vec::as_slice);
        Ask {
            row: self.row,
            allowed: words.map_or(Allowed::All, Allowed::Words),
            warper: &self.warper,
            history: History {
                prompt,
                answer,
                draft,
            },
            seeded: self.seeded,
            place: self.place,
        }
    }
}

struct InFlight {
    number: usize,
    rows: usize,
    slot: Arc<Slot<Result<Box<dyn Flight>, EngineError>>>,
    manner: Manner,
    queue: Sender<Work>,
    log: Arc<Log>,
}

/// Draws that were started.
struct Started {
    number: usize,
    drawn: Arc<DrawnSlot>,
    is_read: AtomicBool,
    log: Arc<Log>,
}

impl InFlight {
    fn with<R>(
        &self,
        look: impl FnOnce(&mut dyn Flight) -> Result<R, EngineError>,
    ) -> Result<R, EngineError> {
        let found = self.slot.with(|flight| match flight {
            Ok(flight) => look(&mut **flight),
            Err(error) => Err(error.clone()),
        });
        self.log.land(self.number);
        found
    }
}

/// The draws of these asks, as this device makes them.
fn drawn(
    flight: &mut dyn Flight,
    asks: &[Ask<'_>],
    manner: Manner,
    number: usize,
) -> Result<Vec<Option<Drawn>>, EngineError> {
    if manner.fault == Fault::DrawsNothing(number) {
        return Err(lost());
    }
    let mut drawn = flight.draw(asks)?;
    if manner.looked_at > 0 {
        // By their places, so that they are the same however the loop goes on.
        for (ask, drawn) in asks.iter().zip(&mut drawn) {
            let place = ask.place.position + ask.seeded.sequence();
            if (place as usize).is_multiple_of(manner.looked_at) {
                *drawn = None;
            }
        }
    }
    Ok(drawn)
}

impl Flight for InFlight {
    fn len(&self) -> usize {
        self.rows
    }

    fn wait(&mut self) -> Result<(), EngineError> {
        self.with(|flight| flight.wait())
    }

    fn draws(&self) -> bool {
        true
    }

    fn draw(&mut self, asks: &[Ask<'_>]) -> Result<Vec<Option<Drawn>>, EngineError> {
        let (manner, number) = (self.manner, self.number);
        self.with(|flight| drawn(flight, asks, manner, number))
    }

    fn starts_draws(&self) -> bool {
        self.manner.overlaps
    }

    fn start_draw(&mut self, asks: &[Ask<'_>]) -> Result<Option<Box<dyn Drawing>>, EngineError> {
        if !self.manner.overlaps {
            return Ok(None);
        }
        self.log.started.fetch_add(1, Ordering::Relaxed);
        let asks: Vec<Kept> = asks.iter().map(Kept::of).collect();
        let slot = self.slot.clone();
        let (manner, number) = (self.manner, self.number);
        let started = Started {
            number,
            drawn: Slot::new(),
            is_read: AtomicBool::new(false),
            log: self.log.clone(),
        };
        let filled = started.drawn.clone();
        let work = move |_: &mut ScriptedModel| {
            let asks: Vec<Ask<'_>> = asks.iter().map(Kept::ask).collect();
            let found = slot.with(|flight| match flight {
                Ok(flight) => drawn(&mut **flight, &asks, manner, number),
                Err(error) => Err(error.clone()),
            });
            filled.fill(found);
        };
        self.queue.send(Box::new(work)).unwrap();
        Ok(Some(Box::new(started)))
    }

    fn top(&mut self, rows: &[usize], count: usize) -> Result<Vec<Vec<(u32, f64)>>, EngineError> {
        self.with(|flight| flight.top(rows, count))
    }

    fn rows(&mut self, rows: &[usize]) -> Result<Logits, EngineError> {
        self.with(|flight| flight.rows(rows))
    }
}

impl Drawing for Started {
    fn wait(&mut self) -> Result<Vec<Option<Drawn>>, EngineError> {
        let drawn = self.drawn.with(|drawn| drawn.clone());
        self.is_read.store(true, Ordering::Relaxed);
        self.log.land(self.number);
        drawn
    }
}

impl Model for Device {
    fn vocab_size(&self) -> usize {
        WIDTH
    }

    fn max_positions(&self) -> usize {
        POSITIONS
    }

    fn variance(&self) -> Option<&'static str> {
        None
    }

    fn cache_bytes_per_token(&self) -> usize {
        0
    }

    fn create_cache(&mut self, blocks: usize, block_size: usize) -> Result<(), EngineError> {
        self.block_size = block_size;
        self.ask(move |model| model.create_cache(blocks, block_size))
    }

    fn leave_out(&mut self, columns: &[usize]) {
        let columns = columns.to_vec();
        self.start(move |model| model.leave_out(&columns));
    }

    fn submit(&mut self, feeds: &[Feed<'_>]) -> Result<Box<dyn Flight>, EngineError> {
        if feeds.is_empty() {
            return Ok(Box::new(Landed::default()));
        }
        if self.log.under_way() > 0 {
            let what = "a pass was submitted beside another one".to_owned();
            self.log.wrong.lock().unwrap().push(what);
        }
        self.pass(feeds, None)
    }

    fn submit_after(
        &mut self,
        drawing: &dyn Drawing,
        asks: &[usize],
        feeds: &[Feed<'_>],
    ) -> Result<Option<Box<dyn Flight>>, EngineError> {
        let drawing: &dyn Any = drawing;
        let started: &Started = drawing.downcast_ref().expect("a drawing of this device");
        if self.manner.refuses {
            return Ok(None);
        }
        if !started.is_read.load(Ordering::Relaxed) {
            self.log.ahead.fetch_add(1, Ordering::Relaxed);
        }
        self.pass(feeds, Some((started.drawn.clone(), asks.to_vec())))
            .map(Some)
    }

    fn move_slots(&mut self, moves: &[SlotMoves<'_>]) -> Result<(), EngineError> {
        for moves in moves {
            let (table, start, slots) = (moves.table.to_vec(), moves.start, moves.slots.to_vec());
            self.ask(move |model| {
                model.move_slots(&[SlotMoves {
                    table: &table,
                    start,
                    slots: &slots,
                }])
            })?;
        }
        Ok(())
    }

    fn copy_blocks(&mut self, pairs: &[(u32, u32)]) -> Result<(), EngineError> {
        let pairs = pairs.to_vec();
        self.ask(move |model| model.copy_blocks(&pairs))
    }
}
