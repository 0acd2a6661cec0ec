//! What goes with what: the page about laws and the OpenAPI document against the engine's table.

use lexiform_engine::{Feature, Method, support};
use serde_json::Value;

use crate::blocks::{read, root};

/// The features that have a column, as the page names them, and as the OpenAPI document does.
const FEATURES: [(Feature, &str, &str); 7] = [
    (Feature::BestOf, "`best_of`", "best_of"),
    (Feature::Monitors, "`monitors`", "monitors"),
    (Feature::Tilt, "`tilt`", "tilt"),
    (Feature::Mirostat, "`mirostat_mode`", "mirostat_mode"),
    (Feature::Cut, "`on_budget` other than `complete`", "on_budget"),
    (Feature::Weights, "`weights`", "weights"),
    (Feature::Undrafted, "`draft: false`", "draft: false"),
];

/// The methods that a request for a text can choose.
fn methods() -> impl Iterator<Item = Method> {
    Method::ALL.into_iter().filter(|method| *method != Method::Weigh)
}

/// The name of a method in plain text.
fn plain(method: Method) -> String {
    match method {
        Method::Twisted => "proposal: twisted".to_owned(),
        other => other.as_str().replace('`', ""),
    }
}

fn table() -> String {
    let mut lines = vec![String::new(), "|---|".to_owned()];
    lines[0].push_str("| |");
    for (_, column, _) in FEATURES {
        lines[0] += &format!(" {column} |");
        lines[1] += "---|";
    }
    for method in methods() {
        let cell = |(feature, ..): &(Feature, &str, &str)| match support(method, *feature) {
            true => " yes |",
            false => " no |",
        };
        let cells: String = FEATURES.iter().map(cell).collect();
        lines.push(format!("| {} |{cells}", method.as_str()));
    }
    lines.join("\n")
}

#[test]
fn the_page_about_laws_shows_the_table() {
    let table = table();
    let page = read(&root().join("docs/src/laws.md"));
    assert!(
        page.contains(&table),
        "docs/src/laws.md lacks the table:\n{table}"
    );
}

/// The sentence of a field that lists what it does not go with; empty if it goes with everything.
fn sentence(excluded: &[String]) -> String {
    match excluded {
        [] => String::new(),
        all => format!("Not with {}.", all.join(", ")),
    }
}

#[test]
fn the_openapi_document_says_what_fields_do_not_go_with() {
    let document: Value = lexiform_server::routes::pages::OPENAPI.parse().expect("JSON");
    // The field of the last one lists nothing: it is the value of a switch.
    let fields = FEATURES
        .iter()
        .filter(|(feature, ..)| *feature != Feature::Undrafted);
    let mut expected: Vec<(&str, String)> = fields
        .map(|(feature, _, field)| {
            let excluded = methods().filter(|method| !support(*method, *feature)).map(plain);
            (*field, sentence(&excluded.collect::<Vec<_>>()))
        })
        .collect();
    let excluded = FEATURES
        .iter()
        .filter(|(feature, ..)| !support(Method::Lossy, *feature));
    let excluded: Vec<String> = excluded.map(|(.., field)| (*field).to_owned()).collect();
    expected.push(("lossy", sentence(&excluded)));
    for (field, sentence) in &expected {
        let mut described = 0;
        for schema in ["ChatRequest", "CompletionRequest", "ResponsesRequest"] {
            let properties = &document["components"]["schemas"][schema]["properties"];
            // Not every route has every field.
            let Some(description) = properties[field]["description"].as_str() else {
                continue;
            };
            described += 1;
            assert!(
                description.contains(sentence),
                "{schema}.{field} lacks the sentence: {sentence}"
            );
        }
        assert!(described > 0, "no schema describes {field}");
    }
}
