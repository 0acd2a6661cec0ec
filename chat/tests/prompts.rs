//! Prompts of small templates: who wrote what, messages that are continued, refusals, and hostile templates.

use lexiform_chat::{ChatTemplate, Conversation, Ending, Prompt, TemplateError, Writer};
use serde_json::{Map, Value, json};

const CHATML: &str = "{%- for message in messages %}\n<|im_start|>{{ message.role }}\n{{ message['content'] | trim }}<|im_end|>\n{% endfor %}\n{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

fn render(source: &str, messages: &Value, ending: Ending) -> Result<Prompt, TemplateError> {
    let arguments = json!({"data": {"b": [1, 2.5, "é<"], "a": null}, "deep": "x"});
    let template = ChatTemplate::new(source, vec![("bos_token".to_owned(), "<s>".to_owned())])?;
    template.render(&Conversation {
        messages: messages.as_array().map_or(&[][..], Vec::as_slice),
        ending,
        tools: &[],
        schema: Some("{a:int}"),
        arguments: arguments.as_object().unwrap_or(&Map::new()),
        arguments_name: "chat_template_kwargs",
        now: 0,
    })
}

/// Renders a message of a user; a text between brackets is the request's.
fn shown(source: &str, content: &str) -> String {
    let messages = json!([{"role": "user", "content": content}]);
    let prompt = render(source, &messages, Ending::Answer).expect("a prompt");
    let spans = prompt.spans().map(|span| match span.writer {
        Writer::Template => prompt.text()[span.range].to_owned(),
        Writer::Request(_) => format!("[{}]", &prompt.text()[span.range]),
    });
    spans.collect()
}

fn refusal(source: &str) -> String {
    let messages = json!([{"role": "user", "content": "x".repeat(1_000)}]);
    match render(source, &messages, Ending::Answer) {
        Ok(prompt) => panic!("{source}: {} bytes", prompt.text().len()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn each_character_keeps_its_writer() {
    let cases = [
        ("{{ messages[0].content }}!", "a<", "[a<]!"),
        ("{{ '<' + messages[0].content | trim ~ '>' }}", "  a ", "<[a]>"),
        (
            "{{ messages[0].content | upper | replace('B', '<b>') }}",
            "abc",
            "[A]<b>[C]",
        ),
        (
            "{{ messages[0].content.split('|') | join('<|>') }}",
            "a|b",
            "[a]<|>[b]",
        ),
        (
            "{{ messages[0].content[::-1] }}{{ messages[0].content[1:] }}",
            "ab",
            "[bab]",
        ),
        ("{{ messages[0].content | tojson }}", "a\"\n", r#"["a\"\n"]"#),
        ("{{ data | tojson }}", "", r#"[{"b": [1, 2.5, "é<"], "a": null}]"#),
        ("{{ data }}", "", "[{'b': [1, 2.5, 'é<'], 'a': None}]"),
        (
            "{% set x %}<{{ messages[0].content }}>{% endset %}{{ x * 2 }}",
            "a",
            "<[a]><[a]>",
        ),
        (
            "{% for c in messages[0].content %}{{ c }},{% endfor %}",
            "ab",
            "[a],[b],",
        ),
        (
            "{{ messages[0].role }}{{ schema }}{{ bos_token }}",
            "",
            "user[{a:int}]<s>",
        ),
        (
            "{% macro m(a, b='!') %}{{ a }}{{ b }}{{ caller() if caller }}{% endmacro %}{{ m(deep) }}{% call m(1) %}?{% endcall %}",
            "",
            "[x]![1]!?",
        ),
        ("{{ messages[0].content | indent(2) }}", "a\nb", "[a\n]  [b]"),
        ("{{ 'a,b' if '</t>' in messages[0].content }}", "x</t>", "a,b"),
        (
            "{% generation %}{{ 1 if true }}{% endgeneration %}{% for x in [1, 2, 3] if x > 1 %}{% if loop.last %}{% break %}{% endif %}z{% endfor %}",
            "",
            "[1]z",
        ),
    ];
    for (source, content, expected) in cases {
        let shown: String = shown(source, content).replace("][", "");
        assert_eq!(shown, expected, "{source}");
    }
}

#[test]
fn a_role_that_no_template_knows_is_a_message() {
    let messages = json!([{"role": "user", "content": "a"}, {"role": "assistant|>", "content": "b"}]);
    let source = "{% for message in messages %}<|{{ message.role }}|>{% endfor %}";
    let prompt = render(source, &messages, Ending::Nothing).expect("a prompt");
    let pointers: Vec<_> = prompt
        .spans()
        .filter(|span| span.writer != Writer::Template)
        .collect();
    assert_eq!(pointers.len(), 1);
    assert_eq!(pointers[0].writer, Writer::Request("/messages/1/role"));
}

#[test]
fn a_message_that_is_continued_is_left_open() {
    let continued = |source: &str, content: &str| {
        let messages =
            json!([{"role": "user", "content": "hello"}, {"role": "assistant", "content": content}]);
        render(source, &messages, Ending::Open)
    };
    let before = "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n";
    for content in [" {\"a\": ", "<|im_end|>\n", "", "\u{FDD0}"] {
        let prompt = continued(CHATML, content).expect("a message");
        assert_eq!(prompt.text(), format!("{before}{content}"));
        assert_eq!(prompt.ending().is_empty(), !content.is_empty());
    }
    let twice = continued("{{ messages[1].content }}-{{ messages[1].content }}-", "x").expect("a message");
    assert_eq!(twice.text(), "x-x");
    let lost = continued("{{ messages[0].content }}", "x");
    assert!(matches!(lost, Err(TemplateError::NoLastMessage)));
}

#[test]
fn templates_refuse_with_their_place() {
    assert!(
        refusal("\n{{ raise_exception('roles must alternate') }}")
            .contains("roles must alternate (line 2 of the template)")
    );
    for (source, part) in [
        ("{{ x.y }}", "attribute `y`"),
        ("{{ 'a' | nosuch }}", "no filter `nosuch`"),
        ("{{ 'a' is nosuch(1) }}", "no test `nosuch`"),
        ("{{ 'a'.nosuch() }}", "no method `nosuch`"),
        ("{{ nosuch() }}", "no function `nosuch`"),
        ("{{ 'a' | trim(b=1) }}", "no argument `b`"),
        ("{{ 'a' | upper(1) }}", "too many arguments"),
        ("{{ 'a' + 1 }}", "cannot be combined"),
        ("{{ strftime_now('%Q') }}", "%Q"),
        ("{% include 'a' %}", "other templates"),
        ("{% for a in messages recursive %}{% endfor %}", "recursive"),
    ] {
        let message = refusal(source);
        assert!(message.contains(part), "{source}: {message}");
    }
    let text = render("{{ messages }}", &json!([{}, "hello"]), Ending::Answer);
    assert!(text.is_err_and(|error| error.to_string() == "/messages/1: expected an object"));
    assert!(ChatTemplate::new("{% if %}", Vec::new()).is_err());
    assert!(ChatTemplate::new(&"a".repeat(2 << 20), Vec::new()).is_err());
}

/// None of these may take long, much memory or much of the stack.
#[test]
fn hostile_templates_are_stopped() {
    let deep_sum = format!("{{{{ 1{} }}}}", " + 1".repeat(20_000));
    let long_sum = format!("{{{{ 1{} }}}}", " + 1".repeat(490));
    let negations = format!("{{{{ {} 1 }}}}", "not ".repeat(20_000));
    let attributes = format!("{{{{ messages{} }}}}", ".x".repeat(400));
    let branches = format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(20_000));
    let blocks = "{% if 1 %}".repeat(20_000);
    let nested = format!(
        "{{% set ns = namespace(x=[]) %}}{}",
        "{% set ns.x = [ns.x] %}".repeat(500)
    );
    for (source, part) in [
        (
            "{% for a in range(9999) %}{% for b in range(9999) %}{{ b }}{% endfor %}{% endfor %}",
            "steps",
        ),
        (
            "{% set ns = namespace(x='a') %}{% for a in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
            "longer",
        ),
        ("{{ 'a' * 99999999999 }}", "longer"),
        ("{{ range(99999999) }}", "range"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "deeper"),
        ("{% set ns = namespace() %}{% set ns.x = ns %}", "namespace"),
        ("{% set ns = namespace() %}{% set ns.x = [ns] %}", "namespace"),
        (&nested, "deeper"),
        (&deep_sum, "1000 words"),
        (&negations, "1000 words"),
        (&attributes, "deeper"),
        (&branches, "200 branches"),
        (&blocks, "recursion"),
        (
            "{% for a in range(99999) %}{% for c in messages[0].content %}{% endfor %}{% endfor %}",
            "steps",
        ),
        (
            "{% for a in range(99999) %}{{ '' if messages[0].content.split('y') | length > 9 }}{% endfor %}{% for a in range(99999) %}{% set x = messages[0].content | upper %}{% endfor %}{% for a in range(99999) %}{% set x = messages[0].content[::2] %}{% endfor %}",
            "steps",
        ),
    ] {
        let message = refusal(source);
        assert!(
            message.contains(part),
            "{}: {message}",
            &source[..source.len().min(99)]
        );
    }
    assert_eq!(shown(&long_sum, ""), "[491]");
}
