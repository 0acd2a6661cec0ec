//! Metrics with labels, for the metrics of the server and of the engine.

use std::fmt;
use std::hash::Hash;

use prometheus_client::encoding::{EncodeLabelValue, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// A label with its value.
pub(super) type Label<V = &'static str> = [(&'static str, V); 1];
/// Counters, one for each value of a label.
pub(super) type Counters<V = &'static str> = Family<Label<V>, Counter>;
/// Histograms, one for each value of a label.
pub(super) type Histograms = Family<Label, Histogram, fn() -> Histogram>;

/// A metric whose help text and type are also written while it has no series.
#[derive(Clone, Debug)]
pub(super) struct Always<M>(pub(super) M);

impl<M: EncodeMetric> EncodeMetric for Always<M> {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        self.0.metric_type()
    }
}

/// Creates counters with these values of a label and these counts.
pub(super) fn counted<V>(label: &'static str, counts: impl IntoIterator<Item = (V, u64)>) -> Counters<V>
where
    V: Clone + Eq + Hash + EncodeLabelValue,
{
    let counters = Counters::default();
    for (value, count) in counts {
        counters.get_or_create(&[(label, value)]).inc_by(count);
    }
    counters
}

/// Creates a registry with the labels of every series.
pub(super) fn registry(model: &str) -> Registry {
    let labels = [("model_name", model.to_owned()), ("engine", "0".to_owned())];
    Registry::with_labels(labels.into_iter().map(|(key, value)| (key.into(), value.into())))
}
