//! Schemas projected to all targets: `cargo bench --bench projections -- [EVERY] [DRAWS]`.
//!
//! The benchmark projects every EVERYth schema (8) of MaskBench, and all tools of BFCL and of GitHub's MCP
//! server, to each profile of the library. Where the algebra of schemas cannot decide the relation, it draws
//! DRAWS values (200) from each side. For each profile it prints how many schemas are taken as they are,
//! written without loss, wider or narrower, how many of these relations are proven, what drawn values
//! contradict, and the time of a projection with its proof. With `WRITTEN=FILE`, the written schemas go to a
//! file, a line of JSON each, for a checker of another origin.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use lexiform::limits::Limits;
use lexiform::project::{Profile, Projection, Proof, Toward, project, tested};
use lexiform::schema::Options;
use serde_json::{Value, json};

/// What became of the schemas of one profile.
#[derive(Default)]
struct Figures {
    outcomes: BTreeMap<String, usize>,
    /// Milliseconds of each projection.
    times: Vec<f64>,
    proven: usize,
    drawn: usize,
    contradicted: Vec<String>,
    errors: BTreeMap<String, usize>,
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
            let start = Instant::now();
            let projected = project(
                schema,
                &profile,
                Toward::Wider,
                &Options::for_generation(),
                &Limits::default(),
            );
            figures.times.push(start.elapsed().as_secs_f64() * 1e3);
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
                    *figures.errors.entry(kind.to_owned()).or_default() += 1;
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
        found.push((tool["name"].to_string(), tool["inputSchema"].to_string()));
    }
    found
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
        self.times.sort_by(f64::total_cmp);
        let mean = self.times.iter().sum::<f64>() / self.times.len().max(1) as f64;
        let longest = self.times.last().copied().unwrap_or_default();
        println!(
            "{name:14} {}; proven {} of {all}, tested {}, contradicted {}; mean {mean:.2} ms, longest {longest:.0} ms; errors {:?}",
            outcomes.join(", "),
            self.proven,
            self.drawn,
            self.contradicted.len(),
            self.errors,
        );
        for contradicted in self.contradicted.iter().take(8) {
            println!("    {}", contradicted.chars().take(300).collect::<String>());
        }
    }
}
