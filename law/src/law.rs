//! Laws: which distribution a sample is drawn from, and how.
//!
//! ```text
//!  logits ─ Warper ─► Distribution p(·|u) ─┐
//!                                          ├─► Walk ──► Step::{Token, End, Restart, Stuck}
//!  mask of the state at u ─────────────────┤     │
//!  Chooser (seed, place) ──────────────────┘     └─ global: Attempt over a Trie that all samples share
//! ```
//!
//! # Which law
//!
//! `p` is the model's next-token law *after* the [`Warping`]: penalties, bias and temperature belong to the
//! model's law and are applied before the mask. `A(u)` is the mask at `u`, and `m(u) = Σ_{x∈A(u)} p(x|u)` the
//! feasible mass.
//!
//! | tag | law of the sequence `w` |
//! |---|---|
//! | `raw` | `Π p(x\|u)`, no constraint |
//! | `raw-filtered` | no constraint, each row cut to what its filters keep and renormalised |
//! | `greedy` | the largest allowed token at each place |
//! | `local` | `Π p(x\|u) 1_A(x) / m(u)`, what a masked sampler draws |
//! | `local-filtered` | the same, cut to the allowed tokens that the filters keep and renormalised at each place |
//! | `global-exact` | `P(w) 1[w∈L] / Z`, the model conditioned on the whole constraint, and on at most `T` tokens |
//! | `global-weighted` | drawn as `asap` over the trie of the attempts, after these ran out |
//! | `best-of` | the likeliest of several samples; its law has no closed form |
//! | `beam`, `best-first-beam`, `diverse-beam`, `dynamic-beam`, `a-star-esque`, `cntp` | a likely text that a search of this name has found |
//! | `k-best` | one of the likeliest texts there are, exactly |
//! | `smc` | drawn by weight from [`Particles`]: `global-exact` in the limit of many |
//! | `sir` | drawn by weight from several `local` samples: `global-exact` in the limit of many |
//! | `mcmc` | a text of a [`Chain`], or of one that took the place of attempts ([`Fallback::Chain`]): `global-exact` in the limit of many steps |
//! | `aprad` | near `global-exact`, within a factor of about 2 for each time that the sampler of [`Aprad`] went back |
//! | `lossy` | drafts accepted by [`TypicalAcceptance`], and `local` draws between them; its law has no closed form |
//! | `asap` | `local` at first, and `global-exact` in the limit of many texts over one [`Trie`]; see [`Attempt::adaptive`] |
//! | `global-exact-filtered`, `global-weighted-filtered`, `smc-filtered`, `sir-filtered`, `mcmc-filtered`, `aprad-filtered`, `asap-filtered` | the same where filters cut `p` before the mask: `P` and `Z` are those of the model as they leave it |
//!
//! The mask may be the mask of a grammar *within a budget*
//! ([`MaskRequest::within`](lexiform_automata::matcher::MaskRequest::within)). The budget is then part of the
//! constraint: `L` is the set of texts that these masks allow, each at most `T` tokens long with its end
//! token, `A(u)` depends on the tokens left at `u` too, and every row of the table holds unchanged.
//!
//! # Which number
//!
//! | tag | log weight | mean of `weight · f(w)` |
//! |---|---|---|
//! | `raw` | 0 | mean of `f` under the model |
//! | `raw-filtered` | `Σ ln k`, see below | sum of `P(w) f(w)` over what the filters leave |
//! | `local` | `Σ ln m` | `Z` times the mean of `f` under the global law |
//! | `local-filtered` | `Σ ln k`, see below | as for `local`, restricted to what the filters leave |
//! | `global-exact` | 0 | mean of `f` under the global law, without `Z` |
//! | `asap`, `global-weighted` | `ln θ(ε)` and what `θ` fell by on the way | `Z` times the mean of `f` under the global law |
//! | `smc`, `sir` | `ln` of the mean weight | `Z` times the mean of `f` under the global law |
//! | `greedy`, `best-of`, `mcmc`, `aprad`, `lossy`, searches | none | |
//!
//! A `global-exact` sample has weight 1 because it already has the normalised law, while the weights of the
//! other laws are relative to `Z`, which is unknown. So the weights of samples of different laws must not be
//! summed or compared: samples of one tag are averaged (dividing by the sum of their weights where these
//! differ), and then the averages may be combined. The same holds for a request whose fallback is
//! [`Fallback::Weighted`], some of whose samples are `global-exact`.
//!
//! A weight belongs to a whole text with its end. There is none where a text was cut, and none where the end
//! was not weighed because nothing else was left and the caller did not request its probability. (The engine
//! then reports none; a [`Walk`] sums what it has drawn, whatever the tag.)
//!
//! The *log probability* is `ln P(w) = Σ ln p(x|u)` for every tag: the log probability under the warped model
//! before the mask, at temperature 0 as at temperature 1, whatever law `w` was drawn from. It is not the log
//! of the probability with which `w` is drawn, which is `ln P(w)` minus the log weight under `local`, and
//! minus `ln Z` under `global-exact`; nor is it the log probability under the model without the warping.
//!
//! # Filters and the mask
//!
//! A filter keeps some of the tokens of a law, which is then renormalised. Filters can be combined: those
//! that are set cut in this order, each cutting the law that the one before it left:
//!
//! | filter | keeps | paper |
//! |---|---|---|
//! | plausibility ([`Contrastive`]) | the tokens that the expert finds at least `α` times as likely as its most likely token | Li 2022, arXiv 2210.15097 |
//! | top-nσ | `l(x) ≥ max l − n σ`, with `σ` the standard deviation of the logits `l` | Tang 2024, arXiv 2411.07641 |
//! | top-k | the `k` most likely tokens | Fan 2018, arXiv 1805.04833 |
//! | typical | the fewest tokens, by the distance of `−ln p(x)` from the entropy, that reach `τ` | Meister 2022, arXiv 2202.00666 |
//! | top-p | the fewest most likely tokens that reach `p` | Holtzman 2019, arXiv 1904.09751 |
//! | min-p | `p(x) ≥ min_p · max p` | Minh 2024, arXiv 2407.01082 |
//! | epsilon | `p(x) ≥ ε` | Hewitt 2022, arXiv 2210.15191 |
//! | eta | `p(x) ≥ min(ε, √ε · exp(−H))`, with `H` the entropy | Hewitt 2022, arXiv 2210.15191 |
//! | Bregman top-k | the most likely tokens as long as `p_{k+1} > (e^λ − 1) (p₁ + … + p_k)` | Noarov 2025, arXiv 2505.19371 |
//! | Mirostat 1 | the `k` most likely tokens, with `k` from a bound `μ` on the surprise and an estimate of Zipf's exponent | Basu 2020, arXiv 2007.14966 |
//! | Mirostat 2 | `−log₂ p(x) ≤ μ` | Basu 2020, arXiv 2007.14966 |
//!
//! No filter empties a law that has a token. All but the last two are functions of the row and of the mask.
//! Mirostat's `μ` is a function of the tokens drawn so far, whose probabilities the [`Walk`] knows: it keeps
//! the `μ` of the position at which it draws ([`Walk::ceiling_at`]), forks and rewinds with it, and verifies
//! drafts under the `μ` that they would have been drawn under. Under the global law Mirostat is refused
//! ([`LawError::MirostatGlobal`]).
//!
//! Cutting *before* the mask can leave no allowed token at all. For the global law this is harmless and the
//! only reading that makes sense: the cut row is the model, a prefix without allowed mass has no valid
//! completion, and the attempt fails like any other; if there is no valid text at all, there is no law, and
//! [`Walk::is_hopeless`] says so once it is known. A local sampler cannot go back, and falling back to an
//! uncut row would change the law at some positions and not at others. So under `local` the filters cut the
//! *masked* row, which is never empty, and the tag is `local-filtered`; `k(u)`, the mass under `p` of the
//! tokens kept, replaces `m(u)` in the weight. Greedy decoding is the special case of one token kept.
//!
//! Top-p adds probabilities from the most likely token down. It adds them as integers, scaled so that the
//! most likely token has 2⁴⁴ or more, so that the tokens it keeps do not depend on the order of summation: a
//! device that never sorts its rows keeps the same tokens.
//!
//! A filter that depends on the whole law (top-nσ, typical, eta, Mirostat 1) then depends on the allowed
//! tokens: the entropy, the standard deviation and the number of tokens are computed over the masked row.
//!
//! # Draws
//!
//! All randomness comes from a [`Chooser`]. The [`Seeded`] one computes each draw from `(seed, sequence,
//! place)` alone, so batching, preemption and drafts that are verified by drawing once cannot change it.
//! [`law_of`] runs a sampler once for every path of choices and returns its exact law in any number type,
//! which is how the tests prove equalities instead of estimating them.

mod awrs;
mod choice;
mod chooser;
mod cut;
mod distribution;
mod exact;
mod global;
mod lossy;
mod row;
mod sampler;
mod tag;
mod walk;
mod warp;
mod weight;

pub use awrs::{Ask, Weighted, adaptive, asked, recursive};
pub use choice::{Fallback, Law, TokenProposal};
pub use chooser::{Chooser, Place, Purpose, Seeded};
pub use cut::{Ceiling, Mirostat, MirostatVersion};
pub use distribution::{Distribution, Measured, Portion, RowError};
pub use exact::{Every, law_of};
pub use global::{Aprad, Attempt, Chain, Cuts, LogWeight, Particles, Resampling, Trie};
pub use lossy::TypicalAcceptance;
pub use row::{Allowed, Part, Row, Sparse, SparsePart, Table, TablePart};
pub use sampler::{Drawn, Rule, Sampler, Step};
pub use tag::{LawError, LawTag};
pub use walk::Walk;
pub use warp::{ByRank, Contrast, Contrastive, History, Warper, Warping};
pub use weight::Weight;
