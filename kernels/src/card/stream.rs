//! A card as a [`Launcher`]: kernels and products in sequence on a separate stream, or captured as a graph.
//!
//! Products are computed by cuBLAS, which comes with libtorch and is opened at run time like the driver. The
//! stream is a *blocking* one: work that libtorch starts on the default stream waits for everything started
//! here before it, and the other way around. So both can read and write tensors in the order of the calls,
//! and no explicit synchronisation between them is needed. While this stream is captured libtorch runs
//! nothing, since one thread does both.
//!
//! This code has not been run on a card.

use super::compiler::Compiler;
use super::library::{self, CUBLAS};
use super::staging::Staging;
use super::{Card, CardError, CardMemory, called};
use crate::SOURCES;
use crate::launcher::{Graph, LaunchError, Launcher, Parcel};
use crate::node::Node;
use crate::shapes::Format;
use crate::step::{Output, Product, Step};
use cudarc::cublas::result::{self as blas, CublasError};
use cudarc::cublas::sys::{
    cublasComputeType_t, cublasGemmAlgo_t, cublasHandle_t, cublasOperation_t, cublasSetWorkspace_v2,
    cudaDataType,
};
use cudarc::driver::result::{free_sync, memcpy_dtoh_sync, stream as streams};
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaGraph, CudaStream};
use std::ffi::c_int;
use std::path::Path;
use std::sync::Arc;

/// The workspace of cuBLAS, of the size that NVIDIA recommends for Hopper. A graph needs memory that was
/// allocated before it.
const WORKSPACE: usize = 32 << 20;

/// A stream of a card, with everything that passes need.
///
/// The fields are in the order in which they are to be dropped.
pub struct Stream {
    graphs: Vec<CudaGraph>,
    staging: Staging,
    products: Products,
    stream: Blocking,
    card: Card,
}

// SAFETY: the handles of cuBLAS and the driver belong to the process, and one thread at a time has a
// `Stream`; each call makes its context current first.
unsafe impl Send for Stream {}

impl Stream {
    /// Opens the card with this number and compiles all kernels for it, with NVRTC from a folder or by the
    /// system's search. `launches_ahead` enables dependent launch ([`Card::launching_ahead`]). Weights are in
    /// bf16, or in `format`.
    ///
    /// # Errors
    /// There is no such card, the card is older than Hopper, the sources do not compile, or cuBLAS cannot be
    /// opened.
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
        library::open(Path::new(CUBLAS), &["cublasGemmEx", "cublasSetWorkspace_v2"])
            .map_err(CardError::NoBlas)?;
        let stream = Blocking::new(&card)?;
        Ok(Stream {
            graphs: Vec::new(),
            staging: Staging::default(),
            products: Products::new(&card, &stream.0)?,
            stream,
            card,
        })
    }
}

/// A stream that synchronises with the default stream: `cudarc` creates only streams that do not.
struct Blocking(Arc<CudaStream>);

impl Blocking {
    fn new(card: &Card) -> Result<Self, CardError> {
        card.bind()?;
        let stream = streams::create(streams::StreamKind::Default).map_err(called("cuStreamCreate"))?;
        // SAFETY: the stream belongs to this context, and is destroyed with this value, after everything that
        // uses it.
        Ok(Blocking(unsafe { card.context.wrap_borrowed_stream(stream) }))
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        // SAFETY: the stream was created by `new`, and nothing uses it any more.
        let _ = unsafe { streams::destroy(self.0.cu_stream()) };
    }
}

/// cuBLAS on a stream.
struct Products {
    handle: cublasHandle_t,
    workspace: u64,
}

impl Products {
    fn new(card: &Card, stream: &CudaStream) -> Result<Self, CardError> {
        card.bind()?;
        let handle = blas::create_handle().map_err(refused("cublasCreate"))?;
        let mut products = Products { handle, workspace: 0 };
        let CardMemory { address, bytes } = card.upload(&vec![0; WORKSPACE])?;
        products.workspace = address;
        // SAFETY: the handle was created above; the stream and the workspace are freed after it.
        unsafe {
            let set = blas::set_stream(products.handle, stream.cu_stream().cast());
            set.map_err(refused("cublasSetStream"))?;
            let set = cublasSetWorkspace_v2(products.handle, address as *mut _, bytes).result();
            set.map_err(refused("cublasSetWorkspace"))?;
        }
        Ok(products)
    }

    fn multiply(&self, product: &Product<u64>) -> Result<(), CardError> {
        let sizes = [product.rows, product.count, product.columns, product.stride].map(|size| size as c_int);
        let [rows, count, columns, stride] = sizes;
        let (one, before) = (1_f32, f32::from(u8::from(product.output == Output::Sum)));
        let type_ = match product.output {
            Output::Plain | Output::Sum => cudaDataType::CUDA_R_16BF,
            Output::Wide => cudaDataType::CUDA_R_32F,
        };
        let [weights, x, out] = [product.weights, product.x, product.out].map(|place| place.address());
        // SAFETY: the factors live through the call. cuBLAS is column-major, so it is called for the
        // transposed product. The caller has to ensure that the places belong to matrices of these sizes.
        let multiplied = unsafe {
            blas::gemm_ex(
                self.handle,
                cublasOperation_t::CUBLAS_OP_T,
                cublasOperation_t::CUBLAS_OP_N,
                rows,
                count,
                columns,
                (&raw const one).cast(),
                weights as *const _,
                cudaDataType::CUDA_R_16BF,
                columns,
                x as *const _,
                cudaDataType::CUDA_R_16BF,
                columns,
                (&raw const before).cast(),
                out as *mut _,
                type_,
                stride,
                cublasComputeType_t::CUBLAS_COMPUTE_32F,
                cublasGemmAlgo_t::CUBLAS_GEMM_DFALT,
            )
        };
        multiplied.map_err(refused("cublasGemmEx"))
    }
}

impl Drop for Products {
    fn drop(&mut self) {
        // SAFETY: the handle was created by cuBLAS, and neither is used afterwards. An error here has been
        // reported before.
        unsafe {
            let _ = blas::destroy_handle(self.handle);
            let _ = free_sync(self.workspace);
        }
    }
}

/// Returns a function that converts an error of this function of cuBLAS.
fn refused(call: &'static str) -> impl Fn(CublasError) -> CardError {
    move |error| CardError::Call {
        call,
        code: error.0 as i32,
        message: format!("{:?}", error.0),
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
        Ok(self.card.launch_on(node, |&address| address, &self.stream.0)?)
    }

    fn multiply(&mut self, product: &Product<u64>) -> Result<(), LaunchError> {
        self.card.bind()?;
        Ok(self.products.multiply(product)?)
    }

    fn record(&mut self, steps: &[Step<u64>]) -> Result<Graph, LaunchError> {
        // Other threads may continue meanwhile.
        let of_this_thread = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        let begun = self.stream.0.begin_capture(of_this_thread);
        begun.map_err(called("cuStreamBeginCapture"))?;
        let started = self.start(steps);
        // Also after an error: the stream stays in capture mode until the capture is ended.
        let captured = self.stream.0.end_capture(CUgraphInstantiate_flags(0));
        started?;
        let captured = captured.map_err(called("cuStreamEndCapture"))?;
        let graph = captured.ok_or_else(|| LaunchError("a pass of no steps has no graph".to_owned()))?;
        self.graphs.push(graph);
        Ok(Graph(self.graphs.len() - 1))
    }

    fn replay(&mut self, graph: Graph) -> Result<(), LaunchError> {
        let graph = self.graphs.get(graph.0);
        let graph = graph.ok_or_else(|| LaunchError("the graph of a pass was forgotten".to_owned()))?;
        Ok(graph.launch().map_err(called("cuGraphLaunch"))?)
    }

    fn forget(&mut self) {
        // Graphs that may still run must not be destroyed. An error here has been reported before, or is an
        // error of the next call.
        if !self.graphs.is_empty() {
            let _ = self.stream.0.synchronize();
        }
        self.graphs.clear();
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), LaunchError> {
        self.card.bind()?;
        Ok(self.staging.write(&self.stream.0, address, bytes)?)
    }

    fn send(&mut self, address: u64, bytes: usize) -> Result<Parcel, LaunchError> {
        self.card.bind()?;
        Ok(self.staging.send(&self.stream.0, address, bytes)?)
    }

    fn receive(&mut self, parcel: Parcel, bytes: &mut [u8]) -> Result<(), LaunchError> {
        let received = self.staging.receive(parcel, bytes)?;
        received.ok_or_else(|| LaunchError("what a draw brings was read already".to_owned()))
    }

    fn discard(&mut self, parcel: Parcel) {
        self.staging.discard(parcel);
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), LaunchError> {
        let over = self.stream.0.synchronize();
        over.map_err(called("cuStreamSynchronize"))?;
        // SAFETY: there is room for as many bytes as are copied.
        let copied = unsafe { memcpy_dtoh_sync(bytes, address) };
        Ok(copied.map_err(called("cuMemcpyDtoH"))?)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Kernels are unloaded with the card, so none may still run. An error here has been reported before.
        let _ = self.stream.0.synchronize();
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
