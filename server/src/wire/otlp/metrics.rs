//! Metrics as messages of OTLP, made of their exposition for Prometheus: so both have the same names and
//! values. OpenTelemetry's own instruments would not do: their names may not have a colon, as vLLM's do, and
//! a histogram that is counted elsewhere cannot be handed to them.

use std::collections::HashMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum,
};

use crate::wire::otlp::{Service, attribute, scope};

/// The times that the values of a message belong to, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When counting began.
    pub from: u64,
    /// When the values were read.
    pub to: u64,
}

/// Returns the message for an exposition.
pub fn message(service: &Service, exposition: &str, time: Span) -> ExportMetricsServiceRequest {
    let metrics = ScopeMetrics {
        scope: Some(scope()),
        metrics: families(exposition, time),
        ..ScopeMetrics::default()
    };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(service.resource()),
            scope_metrics: vec![metrics],
            ..ResourceMetrics::default()
        }],
    }
}

fn families(exposition: &str, time: Span) -> Vec<Metric> {
    let mut help = HashMap::new();
    let mut metrics = Vec::new();
    let mut family: Option<Family<'_>> = None;
    for line in exposition.lines() {
        if let Some((name, text)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            help.insert(name, text);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            metrics.extend(family.take().and_then(Family::metric));
            family = Some(Family {
                name,
                help: help.get(name).copied().unwrap_or_default(),
                kind,
                time,
                numbers: Vec::new(),
                histograms: Vec::new(),
            });
        } else if let (Some(family), Some(sample)) = (&mut family, Sample::read(line)) {
            family.take(sample);
        }
    }
    metrics.extend(family.and_then(Family::metric));
    metrics
}

/// A metric with its series.
struct Family<'a> {
    name: &'a str,
    help: &'a str,
    kind: &'a str,
    time: Span,
    numbers: Vec<NumberDataPoint>,
    histograms: Vec<HistogramDataPoint>,
}

impl Family<'_> {
    fn take(&mut self, sample: Sample<'_>) {
        let part = sample.name.strip_prefix(self.name).unwrap_or_default();
        match (self.kind, part) {
            ("histogram", "_bucket") => self.bucket(sample),
            ("histogram", "_sum") => self.histogram(sample.labels).sum = Some(sample.value),
            ("histogram", "_count") => self.histogram(sample.labels).count = sample.value as u64,
            _ => self.numbers.push(NumberDataPoint {
                attributes: labels(sample.labels),
                start_time_unix_nano: self.time.from,
                time_unix_nano: self.time.to,
                value: Some(Number::AsDouble(sample.value)),
                ..NumberDataPoint::default()
            }),
        }
    }

    /// Takes a bucket: Prometheus counts in it what all lower ones have, too.
    fn bucket(&mut self, mut sample: Sample<'_>) {
        let place = sample.labels.iter().position(|(key, _)| *key == "le");
        let bound = place.map(|place| sample.labels.remove(place).1);
        let bound = bound
            .and_then(|bound| bound.parse().ok())
            .unwrap_or(f64::INFINITY);
        let histogram = self.histogram(sample.labels);
        let lower: u64 = histogram.bucket_counts.iter().sum();
        histogram
            .bucket_counts
            .push((sample.value as u64).saturating_sub(lower));
        if bound.is_finite() {
            histogram.explicit_bounds.push(bound);
        }
    }

    /// Returns the series with these labels.
    fn histogram(&mut self, of: Vec<(&str, String)>) -> &mut HistogramDataPoint {
        let attributes = labels(of);
        let known = self
            .histograms
            .iter()
            .position(|known| known.attributes == attributes);
        let place = known.unwrap_or_else(|| {
            self.histograms.push(HistogramDataPoint {
                attributes,
                start_time_unix_nano: self.time.from,
                time_unix_nano: self.time.to,
                ..HistogramDataPoint::default()
            });
            self.histograms.len() - 1
        });
        &mut self.histograms[place]
    }

    /// Returns the metric, unless it has no series.
    fn metric(self) -> Option<Metric> {
        let aggregation_temporality = AggregationTemporality::Cumulative.into();
        let data = match self.kind {
            "histogram" => Data::Histogram(Histogram {
                data_points: self.histograms,
                aggregation_temporality,
            }),
            _ if self.numbers.is_empty() => return None,
            "counter" => Data::Sum(Sum {
                data_points: self.numbers,
                aggregation_temporality,
                is_monotonic: true,
            }),
            _ => Data::Gauge(Gauge {
                data_points: self.numbers,
            }),
        };
        Some(Metric {
            name: self.name.to_owned(),
            description: self.help.to_owned(),
            data: Some(data),
            ..Metric::default()
        })
    }
}

fn labels(labels: Vec<(&str, String)>) -> Vec<KeyValue> {
    let label = |(key, value): (&str, String)| attribute(key, Any::StringValue(value));
    labels.into_iter().map(label).collect()
}

/// A line of the exposition: a series with its value.
#[derive(Debug, PartialEq)]
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

impl<'a> Sample<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (name, mut rest) = line.split_at(line.find(['{', ' '])?);
        let mut labels = Vec::new();
        while let Some(more) = rest.strip_prefix(['{', ',']) {
            if more.starts_with('}') {
                rest = more;
                break;
            }
            let (key, quoted) = more.split_once("=\"")?;
            let (value, after) = unquoted(quoted)?;
            labels.push((key, value));
            rest = after;
        }
        let value = rest.trim_start_matches('}').trim().parse().ok()?;
        Some(Self { name, labels, value })
    }
}

/// Reads the value of a label to its closing quotation mark, and returns it with what follows.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[place + 1..])),
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Span = Span { from: 1, to: 2 };

    #[test]
    fn series_have_labels_with_any_text() {
        let line = r#"a:b{model="x\"y\\z\n",le="0.5"} 12"#;
        let sample = Sample {
            name: "a:b",
            labels: vec![("model", "x\"y\\z\n".to_owned()), ("le", "0.5".to_owned())],
            value: 12.0,
        };
        assert_eq!(Sample::read(line), Some(sample));
        assert_eq!(Sample::read("plain 1.5").map(|sample| sample.value), Some(1.5));
        assert_eq!(Sample::read("plain{} 1.5").map(|sample| sample.value), Some(1.5));
        for broken in ["", "plain", "a{b=\"c} 1", "a{b} 1", "a x"] {
            assert_eq!(Sample::read(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn buckets_count_what_is_in_them_alone() {
        let exposition = "# HELP t Seconds.\n# TYPE t histogram\nt_sum{k=\"a\"} 7.5\nt_count{k=\"a\"} 6\n\
                          t_bucket{k=\"a\",le=\"1\"} 2\nt_bucket{k=\"a\",le=\"2\"} 5\nt_bucket{k=\"a\",le=\"+Inf\"} 6\n\
                          # HELP n_total Things.\n# TYPE n_total counter\nn_total{k=\"b\"} 3\n\
                          # HELP g Level.\n# TYPE g gauge\ng 0.25\n";
        let metrics = families(exposition, TIME);
        let names: Vec<(&str, &str)> = metrics
            .iter()
            .map(|metric| (&*metric.name, &*metric.description))
            .collect();
        assert_eq!(
            names,
            [("t", "Seconds."), ("n_total", "Things."), ("g", "Level.")]
        );
        let Some(Data::Histogram(times)) = &metrics[0].data else {
            panic!("{metrics:?}");
        };
        let [times] = &times.data_points[..] else {
            panic!("{times:?}");
        };
        assert_eq!(
            (&times.bucket_counts[..], &times.explicit_bounds[..]),
            (&[2, 3, 1][..], &[1.0, 2.0][..])
        );
        assert_eq!((times.count, times.sum), (6, Some(7.5)));
        let Some(Data::Sum(counts)) = &metrics[1].data else {
            panic!("{metrics:?}");
        };
        assert!(counts.is_monotonic);
        assert_eq!(counts.data_points[0].value, Some(Number::AsDouble(3.0)));
        assert!(matches!(&metrics[2].data, Some(Data::Gauge(gauge)) if gauge.data_points.len() == 1));
    }
}
