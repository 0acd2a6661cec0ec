//! Made-up stores in a temporary folder, some of them broken on purpose.

use super::*;

/// A folder with stores, removed when this value is dropped.
struct Disk(PathBuf);

impl Disk {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("lexiform-source-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        Disk(folder)
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// Creates empty files.
    fn files(&self, paths: &[&str]) {
        paths.iter().for_each(|path| drop(self.write(path, "")));
    }

    fn stores(&self) -> Stores {
        Stores {
            fetched: Some(self.0.join("fetched")),
            hugging_face: Some(self.0.join("hub")),
            ollama: vec![self.0.join("ollama"), self.0.join("ollama-of-system")],
        }
    }

    /// Returns the name and the place of a model, relative to the folder.
    fn find(&self, word: &str) -> Result<(String, PathBuf), String> {
        self.find_wanted(word, Wanted::ToAnswer)
    }

    fn find_wanted(&self, word: &str, wanted: Wanted) -> Result<(String, PathBuf), String> {
        let found = locate(Path::new(word), wanted, &self.stores());
        let Located { name, place } = found.map_err(|error| self.shortened(&error.to_string()))?;
        match place {
            Place::BuiltIn => Ok((name, PathBuf::new())),
            Place::Disk(path) => Ok((name, path.strip_prefix(&self.0).expect("within").to_owned())),
        }
    }

    fn shortened(&self, text: &str) -> String {
        text.replace(&self.0.display().to_string(), "DISK")
    }

    fn manifest(&self, name: &str, text: &str) {
        self.write(&format!("ollama/manifests/registry.ollama.ai/{name}"), text);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const HASH: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn manifest(digest: &str, size: usize) -> String {
    format!(
        r#"{{"schemaVersion":2,"layers":[{{"mediaType":"application/vnd.ollama.image.template","digest":"sha256:1"}},
        {{"mediaType":"application/vnd.ollama.image.model","digest":"{digest}","size":{size}}}]}}"#
    )
}

/// The folders of models with their files.
const STORED: [(&str, &[&str]); 8] = [
    (
        "hub/models--owner--name/snapshots/abc",
        &["config.json", "tokenizer.json", "model.safetensors"],
    ),
    ("hub/models--owner--name/snapshots/older", &["config.json"]),
    (
        "hub/models--gpt2/snapshots/1",
        &["config.json", "tokenizer.json", "model.safetensors.index.json"],
    ),
    (
        "hub/models--o--one/snapshots/1",
        &["README.md", "config.json", "one-Q8_0.gguf", "mmproj-one-f16.gguf"],
    ),
    (
        "hub/models--o--some/snapshots/1",
        &[
            "some.Q4_1.gguf",
            "some-UD-q4_k_m.gguf",
            "BF16/some-BF16-00001-of-00002.gguf",
            "BF16/some-BF16-00002-of-00002.gguf",
        ],
    ),
    ("fetched/smollm2-135m-instruct", &["LICENSE", "SmolLM2.gguf"]),
    (
        "folder",
        &["config.json", "tokenizer.json", "model.safetensors", "also.gguf"],
    ),
    ("mine", &["only.gguf"]),
];

/// Words, each with the name of its model and the place of its files.
const NAMED: [(&str, &str, &str); 13] = [
    ("demo", "demo", ""),
    (
        "owner/name",
        "owner/name",
        "hub/models--owner--name/snapshots/abc",
    ),
    ("gpt2", "gpt2", "hub/models--gpt2/snapshots/1"),
    ("o/one", "o/one", "hub/models--o--one/snapshots/1/one-Q8_0.gguf"),
    (
        "o/some:some.Q4_1.gguf",
        "o/some:some.Q4_1.gguf",
        "hub/models--o--some/snapshots/1/some.Q4_1.gguf",
    ),
    (
        "o/some:Q4_K_M",
        "o/some:Q4_K_M",
        "hub/models--o--some/snapshots/1/some-UD-q4_k_m.gguf",
    ),
    (
        "o/some:bf16",
        "o/some:bf16",
        "hub/models--o--some/snapshots/1/BF16/some-BF16-00001-of-00002.gguf",
    ),
    (
        "smollm2-135m-instruct",
        "smollm2-135m-instruct",
        "fetched/smollm2-135m-instruct/SmolLM2.gguf",
    ),
    ("ollama:qwen3:0.6b", "qwen3:0.6b", "ollama/blobs/sha256-HASH"),
    ("ollama:me/own", "me/own", "ollama/blobs/sha256-HASH"),
    ("DISK/folder", "folder", "folder"),
    ("DISK/mine", "mine", "mine/only.gguf"),
    ("DISK/mine/only.gguf", "only", "mine/only.gguf"),
];

#[test]
fn what_a_word_names() {
    let disk = Disk::new("named");
    let hub = "hub/models--owner--name";
    disk.write(&format!("{hub}/refs/main"), "abc\n");
    for (folder, files) in STORED {
        files
            .iter()
            .for_each(|file| disk.files(&[&format!("{folder}/{file}")]));
    }
    disk.manifest("library/qwen3/0.6b", &manifest(&format!("sha256:{HASH}"), 3));
    disk.manifest("me/own/latest", &manifest(&format!("sha256:{HASH}"), 3));
    disk.write(&format!("ollama/blobs/sha256-{HASH}"), "abc");
    let path = |below: &str| disk.0.join(below).display().to_string();
    for (word, name, place) in NAMED {
        let word = word.replace("DISK", &disk.0.display().to_string());
        let place = PathBuf::from(place.replace("HASH", HASH));
        assert_eq!(disk.find(&word), Ok((name.to_owned(), place)), "{word}");
    }
    assert_eq!(usual(Wanted::ToAnswer, &disk.stores()).name, FETCHED);
    assert_eq!(usual(Wanted::ForItsTokens, &disk.stores()), built_in());
    assert_eq!(usual(Wanted::ToAnswer, &Stores::default()), built_in());
    // A draft model may share the tokenizer, and a model of random weights needs nothing else.
    disk.files(&[
        "draft/config.json",
        "draft/model.safetensors",
        "tokens/tokenizer.json",
    ]);
    assert!(disk.find(&path("draft")).is_err());
    assert!(disk.find_wanted(&path("draft"), Wanted::ToDraft).is_ok());
    assert!(disk.find_wanted(&path("tokens"), Wanted::ForItsTokens).is_ok());
}

/// Words, with the error for each; `DISK` is the folder of the stores, `HASH` the name of a blob.
const MISSING: [(&str, &str); 20] = [
    (
        "gpt-4o",
        "there is no model 'gpt-4o' on this disk: it is no file or folder, and not in the Hugging Face cache. Models are not \
             downloaded: `hf download OWNER/NAME` or `ollama pull NAME` brings one, and `lexiform models` lists those on this disk",
    ),
    (
        "llama3.2:1b",
        "there is no model 'llama3.2:1b' on this disk: it is no file or folder, and not in the Hugging Face cache (Ollama has it: \
             type ollama:llama3.2:1b). Models are not downloaded: `hf download OWNER/NAME` or `ollama pull NAME` brings one, and \
             `lexiform models` lists those on this disk",
    ),
    (
        "Qwen/Qwen3-0.6B",
        "Qwen/Qwen3-0.6B is not in the Hugging Face cache DISK/hub; `hf download Qwen/Qwen3-0.6B` brings it, and `lexiform models` \
             lists what is here",
    ),
    (
        "o/bare",
        "the Hugging Face cache has no files of o/bare: DISK/hub/models--o--bare/snapshots has no revision; `hf download o/bare` \
             brings them",
    ),
    (
        "o/many",
        "the Hugging Face cache has no files of o/many: DISK/hub/models--o--many/snapshots has several revisions, and none of them is \
             main; `hf download o/many` brings them",
    ),
    (
        "o/up",
        "the Hugging Face cache has no files of o/up: DISK/hub/models--o--up/refs/main names no revision; `hf download o/up` brings them",
    ),
    (
        "o/gone",
        "the Hugging Face cache has no files of o/gone: DISK/hub/models--o--gone/snapshots/abc is not there; `hf download o/gone` \
             brings them",
    ),
    (
        "o/one:Q4_0",
        "DISK/hub/models--o--one/snapshots/1 has no GGUF file 'Q4_0'; there is o/one:one-Q8_0.gguf",
    ),
    (
        "./nowhere.gguf",
        "there is no file or folder ./nowhere.gguf; `lexiform models` lists the models on this disk",
    ),
    (
        "a/b/c",
        "there is no file or folder a/b/c; `lexiform models` lists the models on this disk",
    ),
    (
        "nowhere.gguf",
        "there is no file or folder nowhere.gguf; `lexiform models` lists the models on this disk",
    ),
    (
        "DISK/empty",
        "DISK/empty is empty; expected a GGUF file, or the files of a Hugging Face model (config.json, tokenizer.json, *.safetensors)",
    ),
    (
        "DISK/weights",
        "DISK/weights has no model.safetensors; there is config.json, pytorch_model.bin, tokenizer.json",
    ),
    (
        "DISK/untokenized",
        "DISK/untokenized has no tokenizer.json; there is config.json, model.safetensors",
    ),
    (
        "DISK/two",
        "DISK/two holds several GGUF files; name one of them: DISK/two/a.gguf, DISK/two/b.gguf",
    ),
    (
        "DISK/loop",
        "cannot read DISK/loop: too many levels of symbolic links",
    ),
    ("/dev/null", "/dev/null is neither a file nor a folder"),
    (
        "ollama:llama3.2",
        "llama3.2:latest is not in Ollama's store (there is ollama:llama3.2:1b); `ollama pull llama3.2:latest` brings it",
    ),
    (
        "ollama:llama3.2:1b",
        "the weights of llama3.2:1b are not in Ollama's store: DISK/ollama/blobs/sha256-HASH is not there; `ollama pull \
                 llama3.2:1b` brings them",
    ),
    (
        "ollama:../../etc:passwd",
        "'../../etc:passwd' is no name of a model in Ollama's store: expected ollama:NAME, ollama:NAME:TAG or ollama:USER/NAME:TAG",
    ),
];

/// Each error is one sentence, or two, that say what is there or what to type.
#[test]
fn what_is_not_there_is_said_with_what_to_type() {
    let disk = Disk::new("missing");
    std::fs::create_dir_all(disk.0.join("empty")).expect("a folder");
    disk.files(&[
        "weights/pytorch_model.bin",
        "weights/config.json",
        "weights/tokenizer.json",
        "untokenized/config.json",
        "untokenized/model.safetensors",
        "two/b.gguf",
        "two/a.gguf",
        "two/\u{1b}[2J.gguf",
        "hub/models--o--bare/blobs/x",
        "hub/models--o--many/snapshots/1/a",
        "hub/models--o--many/snapshots/2/a",
        "hub/models--o--one/snapshots/1/one-Q8_0.gguf",
    ]);
    disk.write("hub/models--o--up/refs/main", "../../../..");
    disk.write("hub/models--o--gone/refs/main", "abc");
    disk.manifest("library/llama3.2/1b", &manifest(&format!("sha256:{HASH}"), 3));
    std::os::unix::fs::symlink("loop", disk.0.join("loop")).expect("a link");
    for (word, expected) in MISSING {
        let word = word.replace("DISK", &disk.0.display().to_string());
        assert_eq!(disk.find(&word), Err(expected.replace("HASH", HASH)), "{word}");
    }
}

#[test]
fn manifests_that_are_none_are_refused() {
    let disk = Disk::new("hostile");
    let kind = "application/vnd.ollama.image";
    let digest = format!("sha256:{HASH}");
    let cases = [
        (String::new(), "is not JSON"),
        ("[".repeat(100_000), "is not JSON"),
        (" ".repeat(2 << 20), "it is longer than 1048576 bytes"),
        ("{}".to_owned(), "it has no list \"layers\""),
        (r#"{"layers":[7,null,{}]}"#.to_owned(), "it names no GGUF file"),
        (
            manifest("sha256:../../../../etc/passwd", 3),
            "its digest is \"sha256:../",
        ),
        (manifest(&"x".repeat(10_000), 3), " …, and no SHA-256"),
        (manifest(&format!("sha256:{HASH}0"), 3), "and no SHA-256"),
        (manifest(&digest, 4), "has 3 bytes of 4"),
        (
            format!(
                r#"{{"layers":[{{"mediaType":"{kind}.model","digest":"{digest}"}},{{"mediaType":"{kind}.adapter"}}]}}"#
            ),
            "an adapter beside its weights, which is not read",
        ),
        (
            format!(r#"{{"layers":[{{"mediaType":"{kind}.model"}},{{"mediaType":"{kind}.model"}}]}}"#),
            "several GGUF files",
        ),
    ];
    disk.write(&format!("ollama/blobs/sha256-{HASH}"), "abc");
    for (text, expected) in cases {
        disk.manifest("library/x/latest", &text);
        let said = disk.find("ollama:x").expect_err(expected);
        assert!(said.contains(expected) && said.len() < 400, "{expected}: {said}");
    }
    // A folder in place of a blob.
    disk.manifest("library/x/latest", &manifest(&digest, 3));
    assert!(disk.find("ollama:x").is_ok());
    let blob = disk.0.join(format!("ollama/blobs/sha256-{HASH}"));
    std::fs::remove_file(&blob).expect("removed");
    std::fs::create_dir(&blob).expect("a folder");
    assert!(disk.find("ollama:x").expect_err("no file").contains("is no file"));
}

#[test]
fn all_models_are_listed_by_what_to_type() {
    let disk = Disk::new("listed");
    disk.files(&[
        "fetched/smollm2-135m-instruct/SmolLM2.gguf",
        "hub/models--o--some/snapshots/1/some.Q4_1.gguf",
        "hub/models--o--some/snapshots/1/some.Q8_0.gguf",
        "hub/models--o--bare/blobs/x",
        "hub/datasets--o--data/snapshots/1/a.gguf",
        "hub/models--..--up/snapshots/1/a.gguf",
        "ollama/manifests/registry.ollama.ai/library/.hidden/latest",
    ]);
    disk.write("hub/models--o--set/snapshots/1/set-00001-of-00002.gguf", "abc");
    disk.write("hub/models--o--set/snapshots/1/set-00002-of-00002.gguf", "de");
    disk.manifest("library/qwen3/0.6b", &manifest("none", 3));
    let Inventory { models, cut } = inventory(&disk.stores());
    let listed: Vec<_> = models
        .iter()
        .map(|listed| {
            (
                listed.word.as_str(),
                listed.store,
                listed.found.as_ref().map(Place::bytes).ok(),
            )
        })
        .collect();
    let expected = [
        ("demo", "built in", Some(0)),
        ("smollm2-135m-instruct", "fetched", Some(0)),
        ("o/bare", "Hugging Face", None),
        ("o/set", "Hugging Face", Some(5)),
        ("o/some:some.Q4_1.gguf", "Hugging Face", Some(0)),
        ("o/some:some.Q8_0.gguf", "Hugging Face", Some(0)),
        ("ollama:qwen3:0.6b", "Ollama", None),
    ];
    assert_eq!((listed.as_slice(), cut), (&expected[..], Vec::new()));
    for number in 0..LISTED_MODELS + 5 {
        disk.manifest(&format!("library/m{number}/latest"), "");
    }
    let Inventory { models, cut } = inventory(&disk.stores());
    assert_eq!(
        (models.len(), cut),
        (6 + LISTED_MODELS, vec![("Ollama", LISTED_MODELS)])
    );
}

#[test]
fn stores_are_where_the_environment_says() {
    let stores = |variables: &[(&str, &str)]| {
        let value = |name: &str| variables.iter().find(|(variable, _)| *variable == name);
        let Stores {
            fetched,
            hugging_face,
            ollama,
        } = Stores::named_by(|name| value(name).map(|(_, value)| (*value).into()));
        let shown = |path: Option<PathBuf>| path.unwrap_or_default().display().to_string();
        (shown(fetched), shown(hugging_face), ollama)
    };
    let system = PathBuf::from(OLLAMA_OF_SYSTEM);
    let of_home = vec!["/h/.ollama/models".into(), system.clone()];
    let of = |fetched: &str, hub: &str, ollama| (fetched.to_owned(), hub.to_owned(), ollama);
    let fetched = "/h/.cache/lexiform/models";
    for (variables, expected) in [
        (
            &[("HOME", "/h")][..],
            of(fetched, "/h/.cache/huggingface/hub", of_home.clone()),
        ),
        (
            &[("HOME", "/h"), ("HF_HOME", "~/x"), ("OLLAMA_MODELS", "/o")],
            of(fetched, "/h/x/hub", vec!["/o".into()]),
        ),
        (
            &[("HOME", "/h"), ("HF_HOME", "/x"), ("HF_HUB_CACHE", "/y")],
            of(fetched, "/y", of_home.clone()),
        ),
        (
            &[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")],
            of("/c/lexiform/models", "/c/huggingface/hub", of_home.clone()),
        ),
        (
            &[("HOME", "/h"), ("XDG_CACHE_HOME", "c"), ("HF_HOME", "")],
            of(fetched, "/h/.cache/huggingface/hub", of_home),
        ),
        (&[], of("", "", vec![system])),
    ] {
        assert_eq!(stores(variables), expected, "{variables:?}");
    }
}
