//! The bytes of memory that a pass reads, according to the description of the model.
//!
//! ```text
//!   weights: every matrix of every layer, and the head            once a pass, however many tokens are fed
//!            the experts that some token chooses                  more of them, the more tokens are fed
//!   cache:   the keys and values of the positions that are seen   once for each text
//! ```
//!
//! Decoding computes little with each number that it reads, so these bytes divided by the memory bandwidth
//! bound the speed of a pass. Everything below a hundredth in models of a billion weights is left out: norms
//! and biases, the rows of the embedding, and the activations between layers.

use super::description::{Config, Mlp};

/// The bytes that a pass of a model reads.
#[derive(Clone, Debug, PartialEq)]
pub struct PassReads {
    /// The weights that every pass reads.
    dense: f64,
    experts: Vec<Experts>,
    layers: Vec<CachedLayer>,
}

/// The experts of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Experts {
    count: f64,
    chosen: f64,
    /// The weights of one expert.
    bytes: f64,
}

/// The cache of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CachedLayer {
    /// The keys and values of one position.
    bytes: f64,
    /// The number of positions that it attends back to, if not all.
    window: Option<f64>,
}

impl PassReads {
    /// Returns the weights that a pass of `tokens` tokens reads.
    ///
    /// For experts this is the expected number if the tokens choose independently: of `count` experts of
    /// which a token takes `chosen`, `count · (1 − (1 − chosen/count)^tokens)`. Trained routers prefer some
    /// experts, so the real number is lower.
    pub fn weights(&self, tokens: f64) -> f64 {
        let experts = self.experts.iter().map(|experts| {
            let missed = (1.0 - experts.chosen / experts.count).powf(tokens);
            experts.count * (1.0 - missed) * experts.bytes
        });
        self.dense + experts.sum::<f64>()
    }

    /// Returns the keys and values that the last token of a text of `positions` positions reads.
    pub fn cache(&self, positions: usize) -> f64 {
        let seen = |layer: &CachedLayer| match layer.window {
            Some(window) => window.min(positions as f64),
            None => positions as f64,
        };
        self.layers.iter().map(|layer| layer.bytes * seen(layer)).sum()
    }
}

impl Config {
    /// Returns the bytes of all weights, if a number of a matrix takes `number` bytes, and one of the
    /// embedding `table` bytes where it is kept beside the output layer; `None` where both are one matrix.
    pub(in crate::torch) fn weights(&self, number: f64, table: Option<f64>) -> f64 {
        let table = table.unwrap_or(0.0) * self.vocab as f64 * self.hidden as f64;
        // Of infinitely many tokens each expert is chosen by some.
        self.reads(number, 0).weights(f64::INFINITY) + table
    }

    /// Returns what a pass reads, if a number of a matrix takes `number` bytes and one of the cache `cached`
    /// bytes.
    pub(in crate::torch) fn reads(&self, number: f64, cached: usize) -> PassReads {
        let heads = self.attention.heads();
        let matrix = |rows: i64, columns: i64| number * rows as f64 * columns as f64;
        let own = heads.queries * heads.size;
        let keys = heads.keys * heads.size;
        let attention = matrix(own + 2 * keys, self.hidden) + matrix(self.hidden, own);
        let network = |width: i64| match self.family.gated {
            true => matrix(3 * width, self.hidden),
            false => matrix(2 * width, self.hidden),
        };
        let mut reads = PassReads {
            dense: matrix(self.vocab, self.hidden),
            experts: Vec::new(),
            layers: Vec::new(),
        };
        for layer in &self.layers {
            reads.dense += attention;
            match layer.mlp {
                Mlp::Dense { width } => reads.dense += network(width),
                Mlp::Experts {
                    count, chosen, width, ..
                } => {
                    reads.dense += matrix(count, self.hidden);
                    reads.experts.push(Experts {
                        count: count as f64,
                        chosen: chosen as f64,
                        bytes: network(width),
                    });
                }
            }
            reads.layers.push(CachedLayer {
                bytes: cached as f64 * 2.0 * keys as f64,
                window: self.window.filter(|_| layer.windowed).map(|window| window as f64),
            });
        }
        reads
    }
}

#[cfg(test)]
mod tests {
    use crate::torch::checkpoint::files::ModelFiles;
    use crate::torch::config::Config;
    use serde_json::Value;

    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");

    /// Returns the shapes of the tensors of a checkpoint, by their names.
    fn tensors(folder: &str) -> Vec<(String, Vec<u64>)> {
        let files = std::fs::read_dir(format!("{FOLDER}/{folder}")).unwrap();
        let files = files.map(|file| file.unwrap().path());
        let mut tensors = Vec::new();
        for file in files.filter(|file| file.extension().is_some_and(|end| end == "safetensors")) {
            let bytes = std::fs::read(file).unwrap();
            let end = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
            let header: Value = serde_json::from_slice(&bytes[8..end]).unwrap();
            for (name, tensor) in header.as_object().unwrap() {
                let shape = tensor["shape"].as_array().into_iter().flatten();
                tensors.push((name.clone(), shape.filter_map(Value::as_u64).collect()));
            }
        }
        tensors
    }

    /// Returns how many numbers the matrices of a checkpoint have, without tables of which a pass reads
    /// single rows.
    fn stored(folder: &str, config: &Config) -> f64 {
        let is_table = |name: &str| {
            name.ends_with("wpe.weight") || name.ends_with("embed_tokens.weight") && !config.tied
        };
        let tensors = tensors(folder).into_iter();
        let matrices = tensors.filter(|(name, shape)| shape.len() == 2 && !is_table(name));
        matrices
            .map(|(_, shape)| shape.iter().product::<u64>() as f64)
            .sum()
    }

    /// If all experts are used, the matrices of every family have as many numbers as those of its checkpoint.
    #[test]
    fn a_pass_of_many_tokens_reads_the_matrices_of_the_checkpoint() {
        for folder in [
            "llama2",
            "llama3",
            "mistral",
            "mixtral",
            "qwen2",
            "qwen3",
            "qwen3_moe",
            "gemma2",
            "gemma3",
            "phi3",
            "phi4",
            "olmo2",
            "smollm3",
            "gpt2",
        ] {
            let config = Config::read(&ModelFiles::folder(format!("{FOLDER}/{folder}"))).unwrap();
            let reads = config.reads(4.0, 4);
            let off = reads.weights(1e6) - 4.0 * stored(folder, &config);
            assert!(off.abs() < 0.5, "{folder}: {off} bytes off");
            assert_eq!(config.reads(2.0, 4).weights(3.0) * 2.0, reads.weights(3.0));
            let all = config.weights(4.0, Some(2.0)) - config.weights(4.0, None);
            assert_eq!(all, 2.0 * (config.vocab * config.hidden) as f64, "{folder}");
        }
    }

    /// One token reads the experts that it chooses, two read at most twice as many, and many read all.
    #[test]
    fn tokens_share_experts() {
        let config = Config::read(&ModelFiles::folder(format!("{FOLDER}/mixtral"))).unwrap();
        let reads = config.reads(1.0, 1);
        let of = |tokens: f64| reads.weights(tokens) - reads.dense;
        let [experts, ..] = reads.experts.as_slice() else {
            panic!("no experts");
        };
        let layers = reads.experts.len() as f64;
        assert!((of(1.0) - layers * experts.chosen * experts.bytes).abs() < 1e-6);
        let (count, share) = (experts.count, experts.chosen / experts.count);
        let two = layers * experts.bytes * count * (share + share - share * share);
        assert!((of(2.0) - two).abs() < 1e-6);
        assert!((of(1e6) - layers * count * experts.bytes).abs() < 1e-6);
    }

    #[test]
    fn windows_bound_what_is_read_of_a_text() {
        let config = Config::read(&ModelFiles::folder(format!("{FOLDER}/gemma3"))).unwrap();
        let reads = config.reads(4.0, 4);
        let window = config.window.unwrap() as usize;
        let windowed = config.layers.iter().filter(|layer| layer.windowed).count();
        let row = 2.0 * 4.0 * (config.attention.kv_heads * config.attention.head_dim) as f64;
        let all = config.layers.len() as f64 * row;
        assert_eq!(reads.cache(window), all * window as f64);
        let rest = (config.layers.len() - windowed) as f64 * row;
        assert_eq!(reads.cache(window + 100), all * window as f64 + 100.0 * rest);
    }
}
