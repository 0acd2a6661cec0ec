//! Which requests are traced.

use opentelemetry::trace::{SpanContext, SpanKind, TraceContextExt as _};
use opentelemetry::{Context, TraceId};
use opentelemetry_sdk::trace::{Sampler, SamplingDecision, ShouldSample as _};

use super::environment::{Environment, OtlpError};

/// The names of `OTEL_TRACES_SAMPLER`.
const SAMPLERS: &str = "always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off or \
                        parentbased_traceidratio";

/// A rule by which requests are traced. The default is to trace all but those whose client does not keep the
/// trace.
#[derive(Clone, Debug)]
pub struct Sampling(Sampler);

impl Default for Sampling {
    fn default() -> Self {
        Self(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
    }
}

impl Sampling {
    /// Reads the environment.
    ///
    /// # Errors
    /// Fails if it names an unknown sampler, or a share of traces that is none.
    pub fn of(environment: &Environment) -> Result<Self, OtlpError> {
        let share = environment.get("OTEL_TRACES_SAMPLER_ARG");
        let Some(named) = environment.get("OTEL_TRACES_SAMPLER") else {
            return match share {
                None => Ok(Self::default()),
                Some(share) => Err(share.wrong("it needs OTEL_TRACES_SAMPLER")),
            };
        };
        let root = named.value.strip_prefix("parentbased_");
        let sampler = match (root.unwrap_or(named.value), share) {
            ("always_on", None) => Sampler::AlwaysOn,
            ("always_off", None) => Sampler::AlwaysOff,
            ("traceidratio", None) => Sampler::TraceIdRatioBased(1.0),
            ("traceidratio", Some(share)) => match share.value.parse() {
                Ok(ratio) if (0.0..=1.0).contains(&ratio) => Sampler::TraceIdRatioBased(ratio),
                _ => return Err(share.wrong("expected a share of traces, from 0 to 1")),
            },
            ("always_on" | "always_off", Some(share)) => {
                return Err(share.wrong("only traceidratio and parentbased_traceidratio have one"));
            }
            _ => return Err(named.wrong(format!("expected {SAMPLERS}"))),
        };
        Ok(Self(match root {
            Some(_) => Sampler::ParentBased(Box::new(sampler)),
            None => sampler,
        }))
    }

    /// Returns `true` if a request is traced, in this trace and under this span of its client.
    pub fn keeps(&self, trace: TraceId, parent: Option<SpanContext>) -> bool {
        let parent = parent.map(|parent| Context::new().with_remote_span_context(parent));
        let (kind, none) = (SpanKind::Server, &[]);
        let sampled = self.0.should_sample(parent.as_ref(), trace, "", &kind, none, &[]);
        sampled.decision == SamplingDecision::RecordAndSample
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry::SpanId;
    use opentelemetry::trace::{TraceFlags, TraceState};

    /// Whether a trace of its own, one that its client keeps and one that it does not keep are kept. The
    /// samplers by share compare it with the lower half of the identity.
    fn kept(sampler: &str, share: &str, trace: u128) -> [bool; 3] {
        let variables = [
            ("OTEL_TRACES_SAMPLER", sampler),
            ("OTEL_TRACES_SAMPLER_ARG", share),
        ];
        let sampling = Sampling::of(&Environment::of(&variables)).expect("a sampler");
        let trace = TraceId::from_bytes(trace.to_be_bytes());
        let under = |flags| {
            let parent = SpanContext::new(trace, SpanId::from_bytes([1; 8]), flags, true, TraceState::NONE);
            sampling.keeps(trace, Some(parent))
        };
        [
            sampling.keeps(trace, None),
            under(TraceFlags::SAMPLED),
            under(TraceFlags::default()),
        ]
    }

    #[test]
    fn samplers_keep_what_their_names_say() {
        let (low, high) = (1, u128::MAX);
        for (sampler, share, trace, keeps) in [
            ("", "", high, [true, true, false]),
            ("always_on", "", high, [true; 3]),
            ("always_off", "", low, [false; 3]),
            ("parentbased_always_on", "", high, [true, true, false]),
            ("parentbased_always_off", "", low, [false, true, false]),
            ("traceidratio", "0.5", low, [true; 3]),
            ("traceidratio", "0.5", high, [false; 3]),
            ("parentbased_traceidratio", "0.5", low, [true, true, false]),
            ("parentbased_traceidratio", "0.5", high, [false, true, false]),
            ("parentbased_traceidratio", "", high, [true, true, false]),
        ] {
            assert_eq!(kept(sampler, share, trace), keeps, "{sampler} {share} {trace}");
        }
    }
}
