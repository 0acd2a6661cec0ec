//! The built-in metaschemas: a reference to `https://json-schema.org/draft/2020-12/schema` resolves without
//! the caller providing that document.

use std::sync::OnceLock;

use serde_json::Value;

struct Metaschema {
    uri: &'static str,
    text: &'static str,
    value: OnceLock<Option<Value>>,
}

macro_rules! metaschema {
    ($uri:literal, $file:literal) => {
        Metaschema {
            uri: $uri,
            text: include_str!(concat!("metaschema/", $file)),
            value: OnceLock::new(),
        }
    };
}

static METASCHEMAS: [Metaschema; 19] = [
    metaschema!("http://json-schema.org/draft-04/schema", "draft4.json"),
    metaschema!("http://json-schema.org/draft-06/schema", "draft6.json"),
    metaschema!("http://json-schema.org/draft-07/schema", "draft7.json"),
    metaschema!(
        "https://json-schema.org/draft/2019-09/schema",
        "draft2019-09/schema.json"
    ),
    metaschema!(
        "https://json-schema.org/draft/2019-09/meta/applicator",
        "draft2019-09/meta/applicator.json"
    ),
    metaschema!(
        "https://json-schema.org/draft/2019-09/meta/content",
        "draft2019-09/meta/content.json"
    ),
    metaschema!(
        "https://json-schema.org/draft/2019-09/meta/core",
        "draft2019-09/meta/core.json"
    ),
    metaschema!(
        "https://json-schema.org/draft/2019-09/meta/format",
        "draft2019-09/meta/format.json"
    ),
    metaschema!(
        "https://json-schema.org/draft/2019-09/meta/meta-data",
        "draft2019-09/meta/meta-data.json"
    ),
    metaschema!(
        "https://json-schema.org/draft/2019-09/meta/validation",
        "draft2019-09/meta/validation.json"
    ),
    metaschema!(
        "https://json-schema.org/draft/2020-12/schema",
        "draft2020-12/schema.json"
    ),
    metaschema!(
        "https://json-schema.org/draft/2020-12/meta/applicator",
        "draft2020-12/meta/applicator.json"
    ),
    metaschema!(
        "https://json-schema.org/draft/2020-12/meta/content",
        "draft2020-12/meta/content.json"
    ),
    metaschema!(
        "https://json-schema.org/draft/2020-12/meta/core",
        "draft2020-12/meta/core.json"
    ),
    metaschema!(
        "https://json-schema.org/draft/2020-12/meta/format-annotation",
        "draft2020-12/meta/format-annotation.json"
    ),
    metaschema!(
        "https://json-schema.org/draft/2020-12/meta/format-assertion",
        "draft2020-12/meta/format-assertion.json"
    ),
    metaschema!(
        "https://json-schema.org/draft/2020-12/meta/meta-data",
        "draft2020-12/meta/meta-data.json"
    ),
    metaschema!(
        "https://json-schema.org/draft/2020-12/meta/unevaluated",
        "draft2020-12/meta/unevaluated.json"
    ),
    metaschema!(
        "https://json-schema.org/draft/2020-12/meta/validation",
        "draft2020-12/meta/validation.json"
    ),
];

/// Returns the metaschema of a URI without a fragment.
pub(super) fn named(uri: &str) -> Option<&'static Value> {
    let found = METASCHEMAS.iter().find(|known| known.uri == uri)?;
    let value = found.value.get_or_init(|| serde_json::from_str(found.text).ok());
    value.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metaschema_is_found_by_its_own_name() {
        for known in &METASCHEMAS {
            let value = named(known.uri).expect("the files are JSON");
            let name = value
                .get("$id")
                .or_else(|| value.get("id"))
                .and_then(Value::as_str);
            assert_eq!(name.map(|name| name.trim_end_matches('#')), Some(known.uri));
        }
        assert!(named("https://example.com/schema").is_none());
    }
}
