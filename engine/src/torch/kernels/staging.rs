//! Memory of the host through which bytes go to a card and come back, without anybody waiting for either.
//!
//! A copy from ordinary memory makes the caller wait for all that a stream was told before, as the driver has to bring the bytes to
//! memory that the card can reach. These pieces are such memory; one is used again when its last copy is over.
//!
//! Nothing of this has run on a card.

use super::card::{Card, CardError, Pinned};
use super::driver::Handle;
use super::launcher::Parcel;

/// The least bytes of a piece, so that one serves passes of many sizes.
const LEAST: usize = 1 << 16;

/// Pieces of pinned memory.
#[derive(Default)]
pub(super) struct Staging(Vec<Piece>);

struct Piece {
    pinned: Pinned,
    /// Whether somebody is still to read what comes there.
    is_awaited: bool,
}

impl Staging {
    /// Copies bytes to the card behind what the stream was told; they may be dropped at once.
    pub(super) fn write(
        &mut self,
        card: &Card,
        address: u64,
        bytes: &[u8],
        stream: Handle,
    ) -> Result<(), CardError> {
        let number = self.piece(card, bytes.len())?;
        let pinned = &self.0[number].pinned;
        // SAFETY: there is room for so many bytes, and no copy reads or writes them, as the last one is over.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), pinned.memory.cast(), bytes.len()) };
        card.send_on(address, pinned, bytes.len(), stream)?;
        card.mark(pinned, stream)
    }

    /// Starts a copy from the card behind what the stream was told.
    pub(super) fn send(
        &mut self,
        card: &Card,
        address: u64,
        bytes: usize,
        stream: Handle,
    ) -> Result<Parcel, CardError> {
        let number = self.piece(card, bytes)?;
        let piece = &mut self.0[number];
        card.fetch_on(address, &piece.pinned, bytes, stream)?;
        card.mark(&piece.pinned, stream)?;
        piece.is_awaited = true;
        Ok(Parcel(number))
    }

    /// Waits for a copy from the card; `None` if there is no such parcel.
    pub(super) fn receive(
        &mut self,
        card: &Card,
        parcel: Parcel,
        bytes: &mut [u8],
    ) -> Result<Option<()>, CardError> {
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
    pub(super) fn discard(&mut self, parcel: Parcel) {
        if let Some(piece) = self.0.get_mut(parcel.0) {
            piece.is_awaited = false;
        }
    }

    /// Gives all memory back, once the last copies are over.
    pub(super) fn free(&mut self, card: &Card) {
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
