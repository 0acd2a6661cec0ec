//! Rows of logits in memory, as a model leaves them and a draw reads them.

use lexiform_law::Measured;
use std::fmt;

/// Memory that holds numbers: a vector, or a buffer that a model copied them to.
pub trait Numbers: AsRef<[f32]> + AsMut<[f32]> + Send {}

impl<T: AsRef<[f32]> + AsMut<[f32]> + Send> Numbers for T {}

/// Rows of logits, in the order of the feeds and of the positions within a feed.
pub struct Logits {
    values: Box<dyn Numbers>,
    width: usize,
    measures: Option<Measures>,
}

/// The peaks and scales of all rows, and the sums of their blocks one row after another; see [`Measured`].
struct Measures {
    peaks: Vec<f32>,
    scales: Vec<f64>,
    sums: Box<dyn AsRef<[f64]> + Send>,
}

/// One row, with its measure if there is one.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The logits.
    pub logits: &'a [f32],
    /// Their measure, if the model took it.
    pub measured: Option<Measured<'a>>,
}

impl<'a> From<&'a [f32]> for Row<'a> {
    fn from(logits: &'a [f32]) -> Self {
        Row {
            logits,
            measured: None,
        }
    }
}

impl Logits {
    /// Returns rows of `width` logits one after another.
    pub fn new(values: impl Numbers + 'static, width: usize) -> Self {
        Logits {
            values: Box::new(values),
            width,
            measures: None,
        }
    }

    /// Adds the peak of each row and the sums of its blocks of 32 at its scale
    /// ([`Feed::scale`](crate::Feed::scale)); these must be correct for every row.
    pub fn measured(
        self,
        peaks: Vec<f32>,
        scales: Vec<f64>,
        sums: impl AsRef<[f64]> + Send + 'static,
    ) -> Self {
        let sums = Box::new(sums);
        Logits {
            measures: Some(Measures { peaks, scales, sums }),
            ..self
        }
    }

    /// Returns the measure of the row of this number, if there is one.
    pub fn measure(&self, index: usize) -> Option<Measured<'_>> {
        let measures = self.measures.as_ref()?;
        let blocks = self.width.div_ceil(32);
        let sums: &[f64] = (*measures.sums).as_ref();
        Some(Measured {
            peak: *measures.peaks.get(index)?,
            scale: *measures.scales.get(index)?,
            sums: sums.get(index * blocks..(index + 1) * blocks)?,
        })
    }

    /// Returns the row of this number.
    pub fn row(&self, index: usize) -> &[f32] {
        &self.all()[index * self.width..(index + 1) * self.width]
    }

    pub(crate) fn rows_mut(&mut self) -> std::slice::ChunksExactMut<'_, f32> {
        // An empty pass has no width.
        let values: &mut [f32] = (*self.values).as_mut();
        values.chunks_exact_mut(self.width.max(1))
    }

    /// Returns the rows to be changed, whose measures are dropped.
    pub(crate) fn changed_rows_mut(&mut self) -> std::slice::ChunksExactMut<'_, f32> {
        self.measures = None;
        self.rows_mut()
    }

    /// Returns copies of these rows, with their measures.
    pub(crate) fn select(&self, rows: &[usize]) -> Logits {
        let values: Vec<f32> = rows.iter().flat_map(|&row| self.row(row)).copied().collect();
        let selected = Logits::new(values, self.width);
        let measures: Option<Vec<_>> = rows.iter().map(|&row| self.measure(row)).collect();
        let Some(measures) = measures.filter(|measures| !measures.is_empty()) else {
            return selected;
        };
        let peaks = measures.iter().map(|measured| measured.peak).collect();
        let scales = measures.iter().map(|measured| measured.scale).collect();
        let sums: Vec<f64> = measures
            .iter()
            .flat_map(|measured| measured.sums)
            .copied()
            .collect();
        selected.measured(peaks, scales, sums)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.all().len().checked_div(self.width).unwrap_or(0)
    }

    /// Returns `true` if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Returns the number of logits in all rows.
    pub(crate) fn numbers(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> &[f32] {
        (*self.values).as_ref()
    }
}

impl Default for Logits {
    fn default() -> Self {
        Logits::new(Vec::new(), 0)
    }
}

impl fmt::Debug for Logits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows of {} logits", self.len(), self.width)
    }
}
