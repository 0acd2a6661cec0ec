//! A launcher on this processor: kernels by [`Processor`], products by plain loops, graphs as lists of steps.

use crate::memory::{narrow, widen};
use crate::processor::{Processor, text_of};
use lexiform_kernels::launcher::{Graph, LaunchError, Launcher, Parcel};
use lexiform_kernels::node::Node;
use lexiform_kernels::step::{Output, Product, Step};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What was asked of a launcher.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Kernels and products that were started, in graphs and alone.
    pub(crate) steps: AtomicUsize,
    /// Graphs that were recorded, and replayed.
    pub(crate) recorded: AtomicUsize,
    pub(crate) replayed: AtomicUsize,
    /// Draws of the kernels, in rows.
    pub(crate) drawn: AtomicUsize,
    /// Copies home that were started.
    pub(crate) sent: AtomicUsize,
    /// Passes whose tokens came from draws that nobody had received.
    pub(crate) ahead: AtomicUsize,
    /// The most bytes that there is room for at once; 0 if all.
    pub(crate) room: AtomicUsize,
    /// The step that is refused, and all after it, counted from the first; 0 if none.
    pub(crate) refused: AtomicUsize,
}

impl Asked {
    fn count(&self) -> Result<(), LaunchError> {
        let number = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        match self.refused.load(Ordering::Relaxed) {
            refused if refused > 0 && number >= refused => Err(LaunchError("the card was lost".to_owned())),
            _ => Ok(()),
        }
    }
}

/// The multiprocessors that this processor is taken for: rows are not shared evenly by so many.
pub(crate) const MULTIPROCESSORS: usize = 3;

/// Runs steps on memory of this process.
pub(crate) struct OnProcessor {
    asked: Arc<Asked>,
    graphs: Vec<Vec<Step<u64>>>,
    /// What was sent and not received.
    parcels: HashMap<usize, Vec<u8>>,
    /// Whether graphs are captured.
    captures: bool,
    /// Sources with something broken in them.
    broken: HashMap<&'static str, Arc<Processor>>,
}

impl OnProcessor {
    pub(crate) fn new() -> Self {
        OnProcessor {
            asked: Arc::default(),
            graphs: Vec::new(),
            parcels: HashMap::new(),
            captures: true,
            broken: HashMap::new(),
        }
    }

    /// The same on a driver that captures no graphs.
    #[allow(dead_code, reason = "some programs of tests need it")]
    pub(crate) fn without_graphs(self) -> Self {
        OnProcessor {
            captures: false,
            ..self
        }
    }

    /// The same with another text in a source.
    #[allow(dead_code, reason = "some programs of tests need it")]
    pub(crate) fn broken(mut self, source: &'static str, from: &str, to: &str) -> Self {
        let text = text_of(source);
        assert_eq!(text.matches(from).count(), 1, "{from}");
        let processor = Processor::compile(source, &text.replace(from, to)).unwrap();
        self.broken.insert(source, Arc::new(processor));
        self
    }

    /// What will have been asked of it.
    #[allow(dead_code, reason = "some programs of tests need it")]
    pub(crate) fn asked(&self) -> Arc<Asked> {
        self.asked.clone()
    }
}

impl Launcher for OnProcessor {
    fn name(&self) -> String {
        "this processor".to_owned()
    }

    fn multiprocessors(&self) -> usize {
        MULTIPROCESSORS
    }

    fn has_room(&self, bytes: usize) -> bool {
        let room = self.asked.room.load(Ordering::Relaxed);
        room == 0 || bytes <= room
    }

    fn launch(&mut self, node: &Node<u64>) -> Result<(), LaunchError> {
        self.asked.count()?;
        if node.kernel.name == "draw" {
            self.asked
                .drawn
                .fetch_add(node.grid[0] as usize, Ordering::Relaxed);
        }
        if node.kernel.name == "take_drawn" && !self.parcels.is_empty() {
            self.asked.ahead.fetch_add(1, Ordering::Relaxed);
        }
        let source = node.kernel.source;
        let broken = self.broken.get(source).cloned();
        let processor = broken.unwrap_or_else(|| Processor::of(source));
        processor.launch(node, |&address| address).map_err(LaunchError)
    }

    fn multiply(&mut self, product: &Product<u64>) -> Result<(), LaunchError> {
        self.asked.count()?;
        multiply(product);
        Ok(())
    }

    fn record(&mut self, steps: &[Step<u64>]) -> Result<Graph, LaunchError> {
        if !self.captures {
            return Err(LaunchError("no graph is captured here".to_owned()));
        }
        self.asked.recorded.fetch_add(1, Ordering::Relaxed);
        self.graphs.push(steps.to_vec());
        Ok(Graph(self.graphs.len() - 1))
    }

    fn replay(&mut self, graph: Graph) -> Result<(), LaunchError> {
        self.asked.replayed.fetch_add(1, Ordering::Relaxed);
        let steps = self.graphs.get(graph.0).cloned();
        self.start(&steps.ok_or_else(|| LaunchError("the graph was forgotten".to_owned()))?)
    }

    fn forget(&mut self) {
        self.graphs.clear();
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), LaunchError> {
        // SAFETY: who asks has memory of so many bytes there; so below.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
        Ok(())
    }

    fn send(&mut self, address: u64, bytes: usize) -> Result<Parcel, LaunchError> {
        let mut sent = vec![0; bytes];
        self.read(address, &mut sent)?;
        let number = self.asked.sent.fetch_add(1, Ordering::Relaxed);
        self.parcels.insert(number, sent);
        Ok(Parcel(number))
    }

    fn receive(&mut self, parcel: Parcel, bytes: &mut [u8]) -> Result<(), LaunchError> {
        let sent = self.parcels.remove(&parcel.0);
        let sent = sent.ok_or_else(|| LaunchError("there is no such parcel".to_owned()))?;
        bytes.copy_from_slice(&sent);
        Ok(())
    }

    fn discard(&mut self, parcel: Parcel) {
        self.parcels.remove(&parcel.0);
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), LaunchError> {
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }
}

/// A product by loops, which sum a row in the same order in any company.
fn multiply(product: &Product<u64>) {
    let Product {
        rows,
        columns,
        count,
        stride,
        ..
    } = *product;
    let [weights, x, out] = [product.weights, product.x, product.out].map(|place| place.address());
    // SAFETY: a step names memory that is large enough for what it reads and writes, and nobody else has it
    // while it runs.
    let (weights, x) = unsafe {
        (
            std::slice::from_raw_parts(weights as *const u16, rows * columns),
            std::slice::from_raw_parts(x as *const u16, count * columns),
        )
    };
    for (number, x) in x.chunks_exact(columns).enumerate() {
        let x: Vec<f32> = x.iter().map(|&it| widen(it)).collect();
        for (row, weights) in weights.chunks_exact(columns).enumerate() {
            let (sum, at) = (dot(&x, weights), number * stride + row);
            // SAFETY: `at` is below `count * stride`.
            unsafe {
                let half = (out as *mut u16).add(at * usize::from(product.output != Output::Wide));
                match product.output {
                    Output::Plain => *half = narrow(sum),
                    Output::Sum => *half = narrow(widen(*half) + sum),
                    Output::Wide => *(out as *mut f32).add(at) = sum,
                }
            }
        }
    }
}

/// Eight sums side by side. Indices, since iterators over pieces of slices are many times slower as tests are
/// compiled.
fn dot(x: &[f32], row: &[u16]) -> f32 {
    let mut sums = [0.0_f32; 8];
    for at in 0..x.len() {
        sums[at % 8] += x[at] * widen(row[at]);
    }
    sums.iter().sum()
}
