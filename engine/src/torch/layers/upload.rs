//! The small numbers of a pass, sent to the device in one piece.
//!
//! A copy to a GPU costs some ten microseconds however short it is, because the host waits for it. A pass
//! needs tokens, positions, cache rows and tables; they are sent together and separated on the device.

use std::ops::Range;
use tch::{Device, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// Numbers to send.
#[derive(Default)]
pub(crate) struct Upload {
    values: Vec<i64>,
}

/// The place of some of the numbers.
pub(crate) struct Span(Range<usize>);

impl Upload {
    pub(crate) fn push(&mut self, values: Vec<i64>) -> Span {
        let first = self.values.len();
        self.values.extend(values);
        Span(first..self.values.len())
    }

    pub(crate) fn send(self, device: Device) -> Result<Sent> {
        Ok(Sent(Tensor::f_from_slice(&self.values)?.f_to_device(device)?))
    }
}

/// Numbers on the device.
pub(crate) struct Sent(Tensor);

impl Sent {
    pub(crate) fn get(&self, Span(range): &Span) -> Result<Tensor> {
        self.0.f_narrow(0, range.start as i64, range.len() as i64)
    }
}
