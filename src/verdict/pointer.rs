//! Finds the value of a JSON text that contains a place.

use serde_json::Value;

use super::twice::end_of_string;

/// A container that is open at a place: an array at an item, or an object at the value of a key.
enum OpenPlace {
    Array(usize),
    Object(Option<String>),
}

/// Returns the JSON pointer of the value that contains a place, as far as the text before it is JSON.
/// O(offset).
pub fn pointer(text: &[u8], offset: usize) -> String {
    let before = &text[..offset.min(text.len())];
    let mut open: Vec<OpenPlace> = Vec::new();
    let (mut at, mut last) = (0, None);
    while let Some(&byte) = before.get(at) {
        let mut next = at + 1;
        match byte {
            b'{' => open.push(OpenPlace::Object(None)),
            b'[' => open.push(OpenPlace::Array(0)),
            b'}' | b']' => drop(open.pop()),
            b'"' => {
                next = end_of_string(before, at);
                last = Some(at..next);
            }
            b':' => {
                if let (Some(OpenPlace::Object(key)), Some(string)) = (open.last_mut(), last.take()) {
                    *key = serde_json::from_slice::<Value>(&before[string])
                        .ok()
                        .and_then(|key| Some(key.as_str()?.to_owned()));
                }
            }
            b',' => match open.last_mut() {
                Some(OpenPlace::Array(item)) => *item += 1,
                Some(OpenPlace::Object(key)) => *key = None,
                None => {}
            },
            _ => {}
        }
        at = next;
    }
    let steps = open.iter().map_while(|open| match open {
        OpenPlace::Array(item) => Some(format!("/{item}")),
        OpenPlace::Object(key) => key
            .as_ref()
            .map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1"))),
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_in_the_innermost_value() {
        let text = br#"{"a": [1, {"b/c": "x", "d": 2}], "e": 3}"#;
        let at = |part: &str| {
            let found = text
                .windows(part.len())
                .position(|window| window == part.as_bytes());
            pointer(text, found.expect("a part"))
        };
        assert_eq!(at("{\"a"), "");
        assert_eq!(at("1,"), "/a/0");
        assert_eq!(at("x"), "/a/1/b~1c");
        assert_eq!(at("\"d"), "/a/1");
        assert_eq!(at("2}"), "/a/1/d");
        assert_eq!(at("3}"), "/e");
        assert_eq!(pointer(b"}]:,\"", 99), "");
    }
}
