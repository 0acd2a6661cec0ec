//! Schemas projected to all targets: `cargo bench --bench projections -- [EVERY] [DRAWS]`.
//!
//! The benchmark projects every EVERYth schema (8) of MaskBench, and all tools of BFCL and of GitHub's MCP
//! server, to each profile of the library. Where the algebra of schemas cannot decide the relation, it draws
//! DRAWS values (200) from each side. For each profile it prints how many schemas are taken as they are,
//! written without loss, wider or narrower, how many of these relations are proven, what drawn values
//! contradict, and the processor time of a projection with its proof; then the slowest schemas and what could
//! not be projected. With `WRITTEN=FILE`, the written schemas go to a
//! file, a line of JSON each, for a checker of another origin.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use lexiform::limits::Limits;
use lexiform::project::{Profile, Projection, Proof, Toward, project, tested};
use lexiform::schema::Options;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// What became of the schemas of one profile.
#[derive(Default)]
struct Figures {
    outcomes: BTreeMap<String, usize>,
    /// Milliseconds of each projection, with the name of its schema.
    times: Vec<(f64, String)>,
    proven: usize,
    drawn: usize,
    contradicted: Vec<String>,
    errors: BTreeMap<String, Vec<String>>,
}

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|text| text.parse().ok()).collect();
    let every = numbers.first().copied().unwrap_or(8).max(1);
    let draws = numbers.get(1).copied().unwrap_or(200);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(".data");
    let schemas = schemas(&root, every);
    if schemas.is_empty() {
        println!("skipped: .data/maskbench/dev.jsonl is not there");
        return;
    }
    let mut written =
        std::env::var_os("WRITTEN").map(|path| BufWriter::new(File::create(path).expect("a file")));
    println!("{} schemas", schemas.len());
    for profile in Profile::names().filter_map(Profile::named) {
        let mut figures = Figures::default();
        for (name, schema) in &schemas {
            let start = thread_time();
            let projected = project(
                schema,
                &profile,
                Toward::Wider,
                &Options::for_generation(),
                &Limits::default(),
            );
            let time = thread_time().saturating_sub(start);
            figures.times.push((time.as_secs_f64() * 1e3, name.clone()));
            match projected {
                Ok(projection) => {
                    figures.count(name, schema, &projection, draws);
                    if let Some(file) = &mut written {
                        let line =
                            json!({"profile": profile.name, "name": name, "schema": projection.schema()});
                        writeln!(file, "{line}").expect("the file can be written");
                    }
                }
                Err(error) => {
                    let kind = error.problems.first().map_or("", |problem| problem.kind.name());
                    let problem = format!("{name}: {error}");
                    figures.errors.entry(kind.to_owned()).or_default().push(problem);
                }
            }
        }
        figures.print(&profile.name);
    }
}

/// Returns schemas with their names.
fn schemas(root: &Path, every: usize) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let lines = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    for (at, line) in lines("maskbench/dev.jsonl").lines().enumerate() {
        if at % every == 0
            && let Ok(case) = serde_json::from_str::<Value>(line)
        {
            found.push((case["name"].to_string(), case["schema"].to_string()));
        }
    }
    for file in ["simple_python", "multiple", "parallel", "parallel_multiple"] {
        for line in lines(&format!("bfcl/{file}.jsonl")).lines().step_by(every) {
            let Ok(task) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            for tool in task["tools"].as_array().into_iter().flatten() {
                let tool = tool.get("function").unwrap_or(tool);
                found.push((tool["name"].to_string(), tool["parameters"].to_string()));
            }
        }
    }
    for line in lines("tools/github_mcp_tools.jsonl").lines() {
        let Ok(tool) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        found.push((tool["name"].to_string(), tool["parameters"].to_string()));
    }
    found
}

/// Returns the processor time of this thread so far.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

impl Figures {
    fn count(&mut self, name: &str, schema: &str, projection: &Projection, draws: usize) {
        let outcome = match projection.is_unchanged() {
            true => "as it is",
            false => projection.relation().as_str(),
        };
        *self.outcomes.entry(outcome.to_owned()).or_default() += 1;
        if projection.proof() == Proof::Proven {
            self.proven += 1;
            return;
        }
        let found = tested(
            schema,
            projection,
            &Options::for_generation(),
            &Limits::default(),
            draws,
            1,
        );
        match found {
            Ok(found) if found.contradictions.is_empty() => self.drawn += 1,
            Ok(found) => self
                .contradicted
                .push(format!("{name}: {:?}", found.contradictions.first())),
            Err(error) => self.contradicted.push(format!("{name}: not tested: {error}")),
        }
    }

    fn print(&mut self, name: &str) {
        let all: usize = self.outcomes.values().sum();
        let outcomes: Vec<String> = self
            .outcomes
            .iter()
            .map(|(outcome, count)| format!("{outcome} {count}"))
            .collect();
        self.times.sort_by(|one, other| one.0.total_cmp(&other.0));
        let count = self.times.len().max(1);
        let mean = self.times.iter().map(|(time, _)| time).sum::<f64>() / count as f64;
        let at = |part: usize| self.times.get(count * part / 100).map_or(0.0, |(time, _)| *time);
        let errors: Vec<String> = self
            .errors
            .iter()
            .map(|(kind, problems)| format!("{kind} {}", problems.len()))
            .collect();
        println!(
            "{name:14} {}; proven {} of {all}, tested {}, contradicted {}; mean {mean:.2} ms, p50 {:.2}, p99 {:.1}; errors {}",
            outcomes.join(", "),
            self.proven,
            self.drawn,
            self.contradicted.len(),
            at(50),
            at(99),
            errors.join(", "),
        );
        for (time, schema) in self.times.iter().rev().take(4) {
            println!("    {time:.0} ms {schema}");
        }
        for problem in self.errors.values().flat_map(|problems| problems.iter().take(4)) {
            println!("    {}", problem.chars().take(300).collect::<String>());
        }
        for contradicted in self.contradicted.iter().take(8) {
            println!("    {}", contradicted.chars().take(300).collect::<String>());
        }
    }
}
