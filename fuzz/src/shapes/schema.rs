//! Schemas that are deep, refer in chains, multiply, or hold long lists and huge numbers.

use super::{Draw, joined, nested};

/// What a schema may say of the next one, `§`, and of one further on, `¤`. `@` is the number of the place.
const HOLDERS: [&str; 34] = [
    r#""allOf":[§]"#,
    r#""anyOf":[§,¤]"#,
    r#""oneOf":[§,{"type":"null"}]"#,
    r#""not":§"#,
    r#""properties":{"a":§}"#,
    r#""items":§"#,
    r#""if":§,"then":¤,"else":§"#,
    r#""additionalProperties":§"#,
    r#""prefixItems":[§,¤]"#,
    r#""allOf":[§],"unevaluatedProperties":false"#,
    r#""contains":§"#,
    r#""dependentSchemas":{"a":§}"#,
    r#""propertyNames":§"#,
    r#""patternProperties":{"^a":§,"b$":¤}"#,
    r#""unevaluatedItems":§"#,
    r#""properties":{"p@":§},"required":["p@"]"#,
    r#""allOf":[§,¤]"#,
    r#""anyOf":[§,§]"#,
    r#""oneOf":[§,¤]"#,
    r#""allOf":[§,{"not":¤}]"#,
    r#""properties":{"a":§,"b":§},"additionalProperties":false"#,
    r#""items":§,"uniqueItems":true"#,
    r#""items":§,"minItems":2,"maxItems":40"#,
    r#""type":["object","array"],"additionalProperties":§,"items":¤"#,
    r#""if":{"required":["p@"]},"then":§"#,
    r#""anyOf":[{"properties":{"p@":{"type":"string"}},"required":["p@"]},§]"#,
    r#""unevaluatedProperties":§,"properties":{"p@":¤}"#,
    r#""minContains":3,"maxContains":9,"contains":§"#,
    r#""oneOf":[{"properties":{"p@":{}}},{"properties":{"q@":§}}]"#,
    r#""$anchor":"x@","allOf":[§]"#,
    r#""$id":"https://e.org/@","allOf":[§]"#,
    r##""$dynamicAnchor":"n","properties":{"a":{"$dynamicRef":"#n"},"b":§}"##,
    r#""dependentRequired":{"a":["p@"],"p@":["b"]},"allOf":[§]"#,
    r#""propertyNames":{"pattern":"^[a-c]{0,5}$"},"additionalProperties":§"#,
];
const LEAVES: [&str; 30] = [
    "{}",
    "true",
    "false",
    r#"{"type":"string"}"#,
    r#"{"type":"integer","minimum":-1e400,"maximum":1e400}"#,
    r#"{"type":"integer","multipleOf":123456789012345678901234567890}"#,
    r#"{"type":"number","multipleOf":1e-300}"#,
    r#"{"type":"number","exclusiveMinimum":0.1,"exclusiveMaximum":0.10000000000000000000000000000000001}"#,
    r#"{"minLength":1000000000000}"#,
    r#"{"type":"string","minLength":500,"maxLength":90000}"#,
    r#"{"type":"array","minItems":9007199254740993}"#,
    r#"{"type":"array","items":{"type":"boolean"},"maxItems":100000}"#,
    r#"{"enum":[1,"a",null,[1],{"a":2}]}"#,
    r#"{"const":{"a":[1,{"b":null}]}}"#,
    r#"{"pattern":"^(a|b)*a(a|b){12}$"}"#,
    r#"{"pattern":"^[a-z]{3,200}$","maxLength":77}"#,
    r#"{"format":"email"}"#,
    r#"{"format":"date-time"}"#,
    r#"{"format":"uri"}"#,
    r#"{"format":"idn-hostname"}"#,
    r#"{"type":"object","required":["x"],"properties":{"x":{}}}"#,
    r#"{"properties":{"x":{}}}"#,
    r#"{"type":"object","minProperties":3,"maxProperties":5}"#,
    r##"{"$ref":"#"}"##,
    r#"{"uniqueItems":true,"items":{"enum":[1,2,3,4,5,6,7,8,9]}}"#,
    r#"{"contains":{"const":1},"minContains":1000}"#,
    r#"{"type":"string","contentEncoding":"base64"}"#,
    r#"{"not":{"type":"string"}}"#,
    r#"{"patternProperties":{"^x":{"type":"integer"}},"unevaluatedProperties":false}"#,
    r#"{"minimum":1E1000000000}"#,
];
/// What stands at the top beside all of it.
const TOPS: [&str; 9] = [
    "",
    r#","unevaluatedProperties":false"#,
    r#","unevaluatedItems":false"#,
    r#","additionalProperties":false"#,
    r#","required":["p0","a"]"#,
    r#","minProperties":4"#,
    r#","uniqueItems":true"#,
    r#","type":"object","unevaluatedProperties":{"type":"integer"}"#,
    r#","$schema":"http://json-schema.org/draft-07/schema#""#,
];

pub(super) fn source(draw: &mut Draw<'_>) -> String {
    match draw.roll(8) {
        0 | 1 => chain(draw),
        2 => deep(draw),
        3 | 4 => product(draw),
        5 => list(draw),
        6 => patterns(draw),
        _ => {
            let body = random(draw, 4);
            format!(
                "{{\"allOf\":[{body}],\"$defs\":{{\"x\":{}}}{}}}",
                random(draw, 2),
                draw.pick(&TOPS)
            )
        }
    }
}

/// Definitions that each refer to the next.
fn chain(draw: &mut Draw<'_>) -> String {
    let kinds: Vec<&str> = (0..1 + draw.roll(3)).map(|_| draw.pick(&HOLDERS)).collect();
    let (count, further) = (draw.size(), 1 + draw.few());
    let is_ring = draw.roll(6) == 5;
    let place = |at: usize| match at {
        at if at < count => format!("{{\"$ref\":\"#/$defs/a{at}\"}}"),
        _ if is_ring => "{\"$ref\":\"#/$defs/a0\"}".to_owned(),
        _ => "{\"$ref\":\"#/$defs/last\"}".to_owned(),
    };
    let defs = (0..count).map(|at| {
        format!(
            "\"a{at}\":{{{}}}",
            filled(kinds[at % kinds.len()], at, &place(at + 1), &place(at + further))
        )
    });
    let defs = joined(defs, ",");
    format!(
        "{{\"$ref\":\"#/$defs/a0\",\"$defs\":{{{defs},\"last\":{}}}{}}}",
        leaf(draw),
        draw.pick(&TOPS)
    )
}

fn filled(holder: &str, at: usize, next: &str, further: &str) -> String {
    holder
        .replace('@', &at.to_string())
        .replace('§', next)
        .replace('¤', further)
}

/// The same written inside one another.
fn deep(draw: &mut Draw<'_>) -> String {
    let holder = draw
        .pick(&HOLDERS)
        .replace('@', "0")
        .replace('¤', "{\"type\":\"integer\"}");
    let leaf = leaf(draw);
    let (before, after) = holder.split_once('§').unwrap_or((&holder, ""));
    let after = after.replace('§', "true");
    let core = nested(
        &format!("{{{before}"),
        &leaf,
        &format!("{after}}}"),
        draw.size().min(2_000),
    );
    match core.strip_prefix('{') {
        Some(_) => format!("{{\"allOf\":[{core}]{}}}", draw.pick(&TOPS)),
        None => core,
    }
}

/// Many choices that all hold at once.
fn product(draw: &mut Draw<'_>) -> String {
    let keyword = draw.pick(&["anyOf", "oneOf", "if"]);
    let branch = draw.roll(7);
    let (count, ways) = (draw.size().min(4_000), 1 + draw.few());
    let part = |at: usize, way: usize| match branch {
        0 => format!("{{\"properties\":{{\"p{way}x{at}\":{{}}}}}}"),
        1 => format!(
            "{{\"properties\":{{\"p{way}x{at}\":{{\"type\":\"integer\"}}}},\"required\":[\"p{way}x{at}\"]}}"
        ),
        2 => format!("{{\"required\":[\"p{way}x{at}\"]}}"),
        3 => format!("{{\"minimum\":{at},\"multipleOf\":{}}}", way + 2),
        4 => format!("{{\"pattern\":\"w{at}.*{way}\"}}"),
        5 => format!("{{\"prefixItems\":[{{\"const\":{at}}},{{\"type\":\"integer\"}}],\"minItems\":{way}}}"),
        _ => format!("{{\"not\":{{\"properties\":{{\"p{at}\":{{\"const\":{way}}}}}}}}}"),
    };
    let all = (0..count).map(|at| {
        if keyword == "if" {
            return format!(
                "{{\"if\":{},\"then\":{},\"else\":{}}}",
                part(at, 0),
                part(at, 1),
                part(at, 2)
            );
        }
        format!(
            "{{\"{keyword}\":[{}]}}",
            joined((0..ways).map(|way| part(at, way)), ",")
        )
    });
    format!("{{\"allOf\":[{}]{}}}", joined(all, ","), draw.pick(&TOPS))
}

/// Long lists of one keyword.
fn list(draw: &mut Draw<'_>) -> String {
    let (count, kind) = (draw.size(), draw.roll(12));
    let leaf = leaf(draw);
    let every = |entry: &dyn Fn(usize) -> String| joined((0..count).map(entry), ",");
    let body = match kind {
        0 => format!("\"enum\":[{}]", every(&|at| format!("\"value {at}\""))),
        1 => format!("\"enum\":[{}]", every(&|at| (at * 7919).to_string())),
        2 => format!(
            "\"enum\":[{}]",
            every(&|at| format!("{{\"a\":{at},\"b\":[{at}]}}"))
        ),
        3 => format!("\"required\":[{}]", every(&|at| format!("\"k{at}\""))),
        4 => format!("\"properties\":{{{}}}", every(&|at| format!("\"k{at}\":{leaf}"))),
        5 => format!(
            "\"patternProperties\":{{{}}}",
            every(&|at| format!("\"^k{at}\":{leaf}"))
        ),
        6 => format!("\"prefixItems\":[{}]", every(&|_| leaf.clone())),
        7 => format!(
            "\"anyOf\":[{}]",
            every(&|at| format!("{{\"properties\":{{\"k{at}\":{leaf}}},\"required\":[\"k{at}\"]}}"))
        ),
        8 => format!(
            "\"dependentRequired\":{{{}}}",
            every(&|at| format!("\"k{at}\":[\"k{}\",\"z\"]", at + 1))
        ),
        9 => format!(
            "\"oneOf\":[{}]",
            every(&|at| format!("{{\"minLength\":{at},\"pattern\":\"a\"}}"))
        ),
        10 => format!(
            "\"allOf\":[{}]",
            every(&|at| format!("{{\"multipleOf\":{}}}", at * 2 + 1))
        ),
        _ => format!(
            "\"allOf\":[{}]",
            every(&|at| format!("{{\"contains\":{{\"const\":{at}}}}}"))
        ),
    };
    format!("{{{body}{}}}", draw.pick(&TOPS))
}

/// Patterns that all hold at once, or of which none may.
fn patterns(draw: &mut Draw<'_>) -> String {
    let keyword = draw.pick(&["allOf", "anyOf", "oneOf"]);
    let is_denied = draw.roll(3) == 2;
    let patterns: Vec<String> = (0..draw.size().min(60))
        .map(|_| {
            let pattern = super::regex::source(draw);
            let pattern: String = pattern.chars().take(2_000).collect();
            let schema = serde_json::json!({ "pattern": pattern }).to_string();
            if is_denied {
                format!("{{\"not\":{schema}}}")
            } else {
                schema
            }
        })
        .collect();
    format!(
        "{{\"type\":\"string\",\"{keyword}\":[{}],\"maxLength\":{}}}",
        joined(patterns.into_iter(), ","),
        draw.size()
    )
}

/// Keywords at random, a few levels of them.
fn random(draw: &mut Draw<'_>, depth: usize) -> String {
    if depth == 0 || draw.is_empty() {
        return leaf(draw);
    }
    let holders: Vec<String> = (0..1 + draw.roll(3))
        .map(|at| {
            let holder = draw.pick(&HOLDERS);
            filled(holder, at, &random(draw, depth - 1), &random(draw, depth - 1))
        })
        .collect();
    format!("{{{}}}", joined(holders.into_iter(), ","))
}

fn leaf(draw: &mut Draw<'_>) -> String {
    match draw.roll(4) {
        0 => {
            let number = ["1e", "-1e", "0.", "1e-"][draw.roll(4)];
            let digits = "9".repeat(draw.size().min(3_000));
            let keyword = draw.pick(&[
                "minimum",
                "multipleOf",
                "const",
                "maxLength",
                "minItems",
                "maximum",
            ]);
            format!("{{\"{keyword}\":{number}{digits}}}")
        }
        _ => draw.pick(&LEAVES).to_owned(),
    }
}
