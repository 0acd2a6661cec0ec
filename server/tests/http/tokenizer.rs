//! A tokenizer small enough to be written here: one token for each byte, then the control tokens.

use serde_json::{Map, json};

/// Opens a message.
pub(crate) const IM_START: u32 = 256;
/// Ends a message, and a text.
pub(crate) const IM_END: u32 = 257;
/// How many tokens there are.
pub(crate) const TOKENS: usize = 259;

/// The chat template that goes with it.
pub(crate) const TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n\
     {{ message.content }}<|im_end|>\n{% endfor %}\
     {% if schema %}<|im_start|>schema\n{{ schema }}<|im_end|>\n{% endif %}\
     {{ '<|im_start|>assistant\\n' }}";

/// A tokenizer with one token for each byte, in the spelling of byte-level models, the control tokens, and
/// more tokens behind them that write their own names, or nothing at all where an exclamation mark before the
/// name makes them special.
pub(crate) fn tokenizer_json_with(more: &[&str]) -> String {
    let mut vocabulary = Map::new();
    let mut shifted = 256;
    for byte in 0..=255_u8 {
        let printable = matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
        let spelling = if printable { u32::from(byte) } else { shifted };
        shifted += u32::from(!printable);
        let spelling = char::from_u32(spelling).expect("a character of the first two planes");
        vocabulary.insert(spelling.to_string(), json!(byte));
    }
    let names = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"];
    let added = names.iter().chain(more).zip(IM_START..).map(|(name, id)| {
        let special = names.contains(name) || name.starts_with('!');
        let name = name.trim_start_matches('!');
        json!({"id": id, "content": name, "single_word": false, "lstrip": false, "rstrip": false,
               "normalized": false, "special": special})
    });
    let byte_level =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": null, "pre_tokenizer": byte_level, "post_processor": null, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocabulary,
                  "merges": []}
    })
    .to_string()
}
