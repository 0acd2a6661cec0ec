//! The part of RFC 3986 that is needed to find the document and the fragment of a reference.

/// Splits a URI reference into the part before its fragment and the fragment.
pub(crate) fn split_fragment(reference: &str) -> (&str, Option<&str>) {
    match reference.split_once('#') {
        Some((document, fragment)) => (document, Some(fragment)),
        None => (reference, None),
    }
}

struct UriParts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
}

fn split(uri: &str) -> UriParts<'_> {
    let is_scheme = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    };
    let (scheme, rest) = match uri.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
        _ => (None, uri),
    };
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            UriParts {
                scheme,
                authority: Some(&rest[..end]),
                path: &rest[end..],
                query,
            }
        }
        None => UriParts {
            scheme,
            authority: None,
            path: rest,
            query,
        },
    }
}

/// Resolves a reference without a fragment against a base, as RFC 3986 §5.2 does.
pub(crate) fn join(base: &str, reference: &str) -> String {
    if reference.is_empty() {
        return base.to_owned();
    }
    let (b, r) = (split(base), split(reference));
    if r.scheme.is_some() {
        return assemble(r.scheme, r.authority, &remove_dots(r.path), r.query);
    }
    if r.authority.is_some() {
        return assemble(b.scheme, r.authority, &remove_dots(r.path), r.query);
    }
    if r.path.is_empty() {
        return assemble(b.scheme, b.authority, b.path, r.query.or(b.query));
    }
    let path = if r.path.starts_with('/') {
        r.path.to_owned()
    } else if b.authority.is_some() && b.path.is_empty() {
        format!("/{}", r.path)
    } else {
        let folder = b.path.rfind('/').map_or("", |at| &b.path[..=at]);
        format!("{folder}{}", r.path)
    };
    assemble(b.scheme, b.authority, &remove_dots(&path), r.query)
}

fn assemble(scheme: Option<&str>, authority: Option<&str>, path: &str, query: Option<&str>) -> String {
    let mut uri = String::new();
    if let Some(scheme) = scheme {
        uri += scheme;
        uri.push(':');
    }
    if let Some(authority) = authority {
        uri += "//";
        uri += authority;
    }
    uri += path;
    if let Some(query) = query {
        uri.push('?');
        uri += query;
    }
    uri
}

fn remove_dots(path: &str) -> String {
    if !path.split('/').any(|segment| segment == "." || segment == "..") {
        return path.to_owned();
    }
    let rooted = path.starts_with('/');
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(usize::from(rooted)).collect();
    for (at, &segment) in segments.iter().enumerate() {
        let last = at + 1 == segments.len();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    format!("{}{}", if rooted { "/" } else { "" }, kept.join("/"))
}

/// Decodes percent-encoding; returns `None` if it is malformed.
pub(crate) fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = tail;
            continue;
        }
        let hex = std::str::from_utf8(tail.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(hex, 16).ok()?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        let base = "http://a/b/c/d;p?q";
        for (reference, expected) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../../g", "http://a/g"),
            ("g;x=1/../y", "http://a/b/c/y"),
        ] {
            assert_eq!(join(base, reference), expected, "{reference}");
        }
    }

    #[test]
    fn urns_and_relative_bases_work() {
        assert_eq!(join("urn:uuid:deadbeef", ""), "urn:uuid:deadbeef");
        assert_eq!(join("", "node.json"), "node.json");
        assert_eq!(join("root/a.json", "b.json"), "root/b.json");
    }

    #[test]
    fn percent_decoding_is_strict() {
        assert_eq!(percent_decode("a%25%22b").as_deref(), Some("a%\"b"));
        assert_eq!(percent_decode("%2"), None);
        assert_eq!(percent_decode("%zz"), None);
    }
}
