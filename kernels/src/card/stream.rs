//! A card as a [`Launcher`]: kernels and products behind one another on a stream of its own, or captured as a graph.
//!
//! Products are cuBLAS', which libtorch brings along and which is opened at run time like the driver. The stream is a *blocking* one:
//! what libtorch starts on the default stream waits for everything that was started here before it, and the other way around. So
//! tensors can be read and written by both in the order of the calls, and only one of them is ever told to wait. While this
//! stream is captured nothing of libtorch runs, since one thread does both.
//!
//! Nothing of this has run on a card.

use super::compiler::Compiler;
use super::driver::{self, Blas, Handle};
use super::{Card, CardError, CardMemory, Pinned};
use crate::SOURCES;
use crate::launcher::{Graph, LaunchError, Launcher, Parcel};
use crate::node::Node;
use crate::shapes::Format;
use crate::step::{Output, Product, Step};
use std::ffi::c_int;
use std::path::Path;
use std::ptr;

/// What cuBLAS computes with beside its operands, as NVIDIA advises for Hopper. A graph needs memory that is there before it.
const WORKSPACE: usize = 32 << 20;
/// Numbers that `cublas_api.h` and `library_types.h` have for what is asked here.
const PLAIN: c_int = 0;
const TRANSPOSED: c_int = 1;
const BF16: c_int = 14;
const F32: c_int = 0;
const SUMS_IN_F32: c_int = 68;
const USUAL_ALGORITHM: c_int = -1;
/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: other threads may go on.
const OF_THIS_THREAD: c_int = 1;

/// A stream of a card, with what it needs to run passes.
pub struct Stream {
    card: Card,
    stream: Handle,
    blas: Blas,
    products: Handle,
    workspace: CardMemory,
    graphs: Vec<Handle>,
    staging: Staging,
}

// SAFETY: handles of the driver and of cuBLAS belong to the process, and one thread at a time has a `Stream`; each call makes
// its context current first.
unsafe impl Send for Stream {}

impl Stream {
    /// Opens the card of this number and compiles all kernels for it, with NVRTC from a folder or by the system's search. Its
    /// kernels may start before the end of the one ahead ([`Card::launching_ahead`]), or may not. Weights are in bf16, or in this format.
    ///
    /// # Errors
    /// There is no such card, it is older than Hopper, the sources do not compile, or cuBLAS cannot be opened.
    pub fn open(
        number: usize,
        nvrtc: Option<&Path>,
        launches_ahead: bool,
        format: Option<Format>,
    ) -> Result<Self, CardError> {
        let mut card = Card::open(number)?.launching_ahead(launches_ahead);
        let compiler = Compiler::open(nvrtc)?;
        let sources = SOURCES.map(|(source, _)| source);
        let needed = sources
            .into_iter()
            .filter(|source| !Format::is_foreign(format, source));
        card.load(&compiler, &needed.collect::<Vec<_>>())?;
        let library = driver::open(Path::new("libcublas.so.13")).map_err(CardError::NoBlas)?;
        let blas = Blas::of(library).map_err(|name| CardError::NoBlas(format!("it has no {name}")))?;
        let workspace = card.upload(&vec![0; WORKSPACE])?;
        let mut stream = Stream {
            stream: card.new_stream()?,
            card,
            blas,
            products: ptr::null_mut(),
            workspace,
            graphs: Vec::new(),
            staging: Staging::default(),
        };
        stream.set_up_products()?;
        Ok(stream)
    }

    fn set_up_products(&mut self) -> Result<(), CardError> {
        let blas = self.blas;
        // SAFETY: the handle is written to a place that lives through the call, and used as it was made; the workspace is memory of
        // this card that is given back after the handle.
        unsafe {
            done("cublasCreate", (blas.create)(&raw mut self.products))?;
            done("cublasSetStream", (blas.set_stream)(self.products, self.stream))?;
            let (memory, bytes) = (self.workspace.address as *mut _, self.workspace.bytes);
            done(
                "cublasSetWorkspace",
                (blas.set_workspace)(self.products, memory, bytes),
            )
        }
    }

    fn multiply_on_stream(&self, product: &Product<u64>) -> Result<(), CardError> {
        let sizes = [product.rows, product.count, product.columns, product.stride].map(|size| size as c_int);
        let [rows, count, columns, stride] = sizes;
        let (one, before) = (1_f32, f32::from(u8::from(product.output == Output::Sum)));
        let type_ = match product.output {
            Output::Plain | Output::Sum => BF16,
            Output::Wide => F32,
        };
        let [weights, x, out] = [product.weights, product.x, product.out].map(|place| place.address());
        // SAFETY: the factors live through the call. cuBLAS has columns where others have rows, so that it is asked for the transposed
        // product. That the places are those of matrices of these sizes is the caller's to see to.
        let code = unsafe {
            (self.blas.multiply)(
                self.products,
                TRANSPOSED,
                PLAIN,
                rows,
                count,
                columns,
                (&raw const one).cast(),
                weights as *const _,
                BF16,
                columns,
                x as *const _,
                BF16,
                columns,
                (&raw const before).cast(),
                out as *mut _,
                type_,
                stride,
                SUMS_IN_F32,
                USUAL_ALGORITHM,
            )
        };
        done("cublasGemmEx", code)
    }
}

/// Whether cuBLAS did what it was asked for.
fn done(call: &'static str, code: c_int) -> Result<(), CardError> {
    match code {
        0 => Ok(()),
        _ => Err(CardError::Call {
            call,
            code,
            message: "a status of cuBLAS".to_owned(),
        }),
    }
}

impl Launcher for Stream {
    fn name(&self) -> String {
        self.card.name().to_owned()
    }

    fn multiprocessors(&self) -> usize {
        self.card.multiprocessors()
    }

    fn launch(&mut self, node: &Node<u64>) -> Result<(), LaunchError> {
        self.card.bind()?;
        Ok(self.card.launch_on(node, |&address| address, self.stream)?)
    }

    fn multiply(&mut self, product: &Product<u64>) -> Result<(), LaunchError> {
        self.card.bind()?;
        Ok(self.multiply_on_stream(product)?)
    }

    fn record(&mut self, steps: &[Step<u64>]) -> Result<Graph, LaunchError> {
        self.card.bind()?;
        self.card.begin_capture(self.stream, OF_THIS_THREAD)?;
        let started = self.start(steps);
        // Also after an error: the stream is captured until somebody ends that.
        let captured = self.card.end_capture(self.stream);
        started?;
        self.graphs.push(captured?);
        Ok(Graph(self.graphs.len() - 1))
    }

    fn replay(&mut self, graph: Graph) -> Result<(), LaunchError> {
        self.card.bind()?;
        let graph = self.graphs.get(graph.0).copied();
        let graph = graph.ok_or_else(|| LaunchError("the graph of a pass was forgotten".to_owned()))?;
        Ok(self.card.launch_graph(graph, self.stream)?)
    }

    fn forget(&mut self) {
        // What fails here has failed before, and is an error of the next call.
        let _ = self.card.bind();
        for graph in self.graphs.drain(..) {
            let _ = self.card.drop_graph(graph, self.stream);
        }
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), LaunchError> {
        self.card.bind()?;
        Ok(self.staging.write(&self.card, address, bytes, self.stream)?)
    }

    fn send(&mut self, address: u64, bytes: usize) -> Result<Parcel, LaunchError> {
        self.card.bind()?;
        Ok(self.staging.send(&self.card, address, bytes, self.stream)?)
    }

    fn receive(&mut self, parcel: Parcel, bytes: &mut [u8]) -> Result<(), LaunchError> {
        self.card.bind()?;
        let received = self.staging.receive(&self.card, parcel, bytes)?;
        received.ok_or_else(|| LaunchError("what a draw brings was read already".to_owned()))
    }

    fn discard(&mut self, parcel: Parcel) {
        self.staging.discard(parcel);
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), LaunchError> {
        self.card.bind()?;
        Ok(self.card.read_on(address, bytes, self.stream)?)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.forget();
        self.staging.free(&self.card);
        // SAFETY: nobody uses the handle any more; cuBLAS refuses one that was not made.
        unsafe { (self.blas.destroy)(self.products) };
        let _ = self.card.free(self.workspace);
        let _ = self.card.drop_stream(self.stream);
    }
}

/// The least bytes of a piece, so that one serves passes of many sizes.
const LEAST: usize = 1 << 16;

/// Pieces of memory of the host through which bytes go to the card and come back, without anybody waiting for either. A copy from ordinary
/// memory makes the caller wait for all that a stream was told before, as the driver has to bring the bytes to memory that the card can
/// reach. These pieces are such memory; one is used again when its last copy is over.
#[derive(Default)]
struct Staging(Vec<Piece>);

struct Piece {
    pinned: Pinned,
    /// Whether somebody is still to read what comes there.
    is_awaited: bool,
}

impl Staging {
    /// Copies bytes to the card behind what the stream was told; they may be dropped at once.
    fn write(&mut self, card: &Card, address: u64, bytes: &[u8], stream: Handle) -> Result<(), CardError> {
        let number = self.piece(card, bytes.len())?;
        let pinned = &self.0[number].pinned;
        // SAFETY: there is room for so many bytes, and no copy reads or writes them, as the last one is over.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), pinned.memory.cast(), bytes.len()) };
        card.send_on(address, pinned, bytes.len(), stream)?;
        card.mark(pinned, stream)
    }

    /// Starts a copy from the card behind what the stream was told.
    fn send(&mut self, card: &Card, address: u64, bytes: usize, stream: Handle) -> Result<Parcel, CardError> {
        let number = self.piece(card, bytes)?;
        let piece = &mut self.0[number];
        card.fetch_on(address, &piece.pinned, bytes, stream)?;
        card.mark(&piece.pinned, stream)?;
        piece.is_awaited = true;
        Ok(Parcel(number))
    }

    /// Waits for a copy from the card; `None` if there is no such parcel.
    fn receive(&mut self, card: &Card, parcel: Parcel, bytes: &mut [u8]) -> Result<Option<()>, CardError> {
        let Some(piece) = self.0.get_mut(parcel.0).filter(|piece| piece.is_awaited) else {
            return Ok(None);
        };
        card.await_mark(&piece.pinned)?;
        piece.is_awaited = false;
        let count = bytes.len().min(piece.pinned.bytes);
        // SAFETY: the copy is over, and no more bytes are read than there are.
        unsafe { std::ptr::copy_nonoverlapping(piece.pinned.memory.cast(), bytes.as_mut_ptr(), count) };
        Ok(Some(()))
    }

    /// Nobody reads this parcel.
    fn discard(&mut self, parcel: Parcel) {
        if let Some(piece) = self.0.get_mut(parcel.0) {
            piece.is_awaited = false;
        }
    }

    /// Gives all memory back, once the last copies are over.
    fn free(&mut self, card: &Card) {
        for piece in self.0.drain(..) {
            // What fails here has failed before.
            let _ = card
                .await_mark(&piece.pinned)
                .and_then(|()| card.unpin(&piece.pinned));
        }
    }

    /// A piece of so many bytes that nobody uses.
    fn piece(&mut self, card: &Card, bytes: usize) -> Result<usize, CardError> {
        let is_free =
            |piece: &Piece| !piece.is_awaited && piece.pinned.bytes >= bytes && card.is_over(&piece.pinned);
        if let Some(number) = self.0.iter().position(is_free) {
            return Ok(number);
        }
        self.0.push(Piece {
            pinned: card.pin(bytes.next_power_of_two().max(LEAST))?,
            is_awaited: false,
        });
        Ok(self.0.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_without_a_card_is_an_error_with_a_reason() {
        let why = Stream::open(99, None, true, None).err();
        assert!(why.is_some_and(|why| !why.to_string().is_empty()));
    }
}
