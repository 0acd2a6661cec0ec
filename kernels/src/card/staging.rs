//! Host memory through which bytes are copied to and from a card without blocking the caller.
//!
//! A copy from ordinary memory blocks the caller until all earlier work on the stream is done, because the
//! driver has to move the bytes to memory that the card can reach. The pieces here are such memory (pinned);
//! a piece is reused when its last copy is over.

use super::{CardError, called};
use crate::launcher::Parcel;
use cudarc::driver::{CudaEvent, CudaStream, result};

/// The least number of bytes of a piece, so that one serves passes of many sizes.
const LEAST_PIECE: usize = 1 << 16;

/// Pieces of pinned memory.
#[derive(Default)]
pub(super) struct Staging(Vec<Piece>);

struct Piece {
    pinned: Pinned,
    /// `true` if the bytes copied to it have yet to be read.
    is_awaited: bool,
}

impl Staging {
    /// Copies bytes to the card, after the earlier work on the stream; the caller may drop them at once.
    pub(super) fn write(&mut self, stream: &CudaStream, address: u64, bytes: &[u8]) -> Result<(), CardError> {
        let number = self.piece(stream, bytes.len())?;
        let pinned = &mut self.0[number].pinned;
        pinned.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        // SAFETY: nothing writes there before the event that is recorded after the copy. The caller has to
        // ensure that there is room.
        let sent = unsafe {
            result::memcpy_htod_async(address, &pinned.bytes_mut()[..bytes.len()], stream.cu_stream())
        };
        sent.map_err(called("cuMemcpyHtoDAsync"))?;
        pinned.mark(stream)
    }

    /// Starts a copy from the card, after the earlier work on the stream.
    pub(super) fn send(
        &mut self,
        stream: &CudaStream,
        address: u64,
        bytes: usize,
    ) -> Result<Parcel, CardError> {
        let number = self.piece(stream, bytes)?;
        let piece = &mut self.0[number];
        // SAFETY: nothing reads there before the event that is recorded after the copy. The caller has to
        // ensure that the bytes are there.
        let fetched = unsafe {
            result::memcpy_dtoh_async(
                &mut piece.pinned.bytes_mut()[..bytes],
                address,
                stream.cu_stream(),
            )
        };
        fetched.map_err(called("cuMemcpyDtoHAsync"))?;
        piece.pinned.mark(stream)?;
        piece.is_awaited = true;
        Ok(Parcel(number))
    }

    /// Waits for a copy from the card; `None` if there is no such parcel.
    pub(super) fn receive(&mut self, parcel: Parcel, bytes: &mut [u8]) -> Result<Option<()>, CardError> {
        let Some(piece) = self.0.get_mut(parcel.0).filter(|piece| piece.is_awaited) else {
            return Ok(None);
        };
        let over = piece.pinned.event.synchronize();
        over.map_err(called("cuEventSynchronize"))?;
        piece.is_awaited = false;
        let count = bytes.len().min(piece.pinned.len);
        bytes[..count].copy_from_slice(&piece.pinned.bytes_mut()[..count]);
        Ok(Some(()))
    }

    /// Releases a parcel that will not be read.
    pub(super) fn discard(&mut self, parcel: Parcel) {
        if let Some(piece) = self.0.get_mut(parcel.0) {
            piece.is_awaited = false;
        }
    }

    /// Returns the number of a free piece of at least `bytes` bytes.
    fn piece(&mut self, stream: &CudaStream, bytes: usize) -> Result<usize, CardError> {
        let is_free = |piece: &Piece| {
            !piece.is_awaited && piece.pinned.len >= bytes && piece.pinned.event.is_complete()
        };
        if let Some(number) = self.0.iter().position(is_free) {
            return Ok(number);
        }
        self.0.push(Piece {
            pinned: Pinned::new(stream, bytes.next_power_of_two().max(LEAST_PIECE))?,
            is_awaited: false,
        });
        Ok(self.0.len() - 1)
    }
}

/// Host memory that the card can reach. `cudarc`'s own type is not used, because its event puts a waiting
/// thread to sleep.
struct Pinned {
    memory: *mut u8,
    len: usize,
    /// The event recorded after the last copy from or to it.
    event: CudaEvent,
}

impl Pinned {
    fn new(stream: &CudaStream, len: usize) -> Result<Self, CardError> {
        let event = stream
            .context()
            .new_event(None)
            .map_err(called("cuEventCreate"))?;
        // SAFETY: there is room for the zeros, and nothing else uses the memory yet.
        let memory = unsafe {
            let memory = result::malloc_host(len, 0).map_err(called("cuMemHostAlloc"))?;
            memory.write_bytes(0, len);
            memory.cast()
        };
        Ok(Pinned { memory, len, event })
    }

    /// Returns the bytes, once the last copy is over.
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `len` bytes were allocated and written; the caller has checked that no copy is under way,
        // or starts the next one.
        unsafe { std::slice::from_raw_parts_mut(self.memory, self.len) }
    }

    /// Records that the last copy from or to this memory follows all earlier work on the stream.
    fn mark(&self, stream: &CudaStream) -> Result<(), CardError> {
        self.event.record(stream).map_err(called("cuEventRecord"))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // An error here has been reported before.
        let _ = self.event.synchronize();
        // SAFETY: the memory was allocated by `new`, and the last copy is over.
        let _ = unsafe { result::free_host(self.memory.cast()) };
    }
}
