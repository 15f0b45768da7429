//! Edits of one entry in a file: the rest stays unmodified, byte for byte.

use haft_config::edit::{Document, EditError, Syntax};
use serde_json::{Value, json};

fn entry() -> Value {
    json!({"command": "/usr/bin/haft", "args": ["mcp", "-c", "/a b/haft.yaml"]})
}

fn put(text: &str, syntax: Syntax, section: &str) -> String {
    Document::read(text, syntax).unwrap().put(section, "haft", &entry()).unwrap()
}

fn removed(text: &str, syntax: Syntax, section: &str) -> String {
    Document::read(text, syntax).unwrap().remove(section, "haft").unwrap()
}

/// Comments, order, indentation and trailing commas of JSON stay.
#[test]
fn json_keeps_what_it_does_not_change() {
    let text = "// mine\n{\n    \"theme\": \"dark\", // yes\n    \"mcpServers\": {\n        /* one */\n        \"a\": {\"command\": \"x\"},\n    },\n    \"z\": 1.50\n}\n";
    let changed = put(text, Syntax::Json, "mcpServers");
    insta::assert_snapshot!(changed, @r#"
    // mine
    {
        "theme": "dark", // yes
        "mcpServers": {
            /* one */
            "a": {"command": "x"},
            "haft": {
                "command": "/usr/bin/haft",
                "args": ["mcp", "-c", "/a b/haft.yaml"],
            },
        },
        "z": 1.50
    }
    "#);
    assert_eq!(removed(&changed, Syntax::Json, "mcpServers"), text);
}

/// A file without the section, and one without anything.
#[test]
fn json_gets_the_section_it_lacks() {
    insta::assert_snapshot!(put("", Syntax::Json, "servers"), @r#"
    {
      "servers": {
        "haft": {
          "command": "/usr/bin/haft",
          "args": ["mcp", "-c", "/a b/haft.yaml"]
        }
      }
    }
    "#);
    for text in
        ["{}", "{\"a\": 1}\n", "\u{feff}{\"a\": 1}", "{\"servers\": null}", "{\"servers\": {}}"]
    {
        let changed = put(text, Syntax::Json, "servers");
        let read = Document::read(&changed, Syntax::Json).unwrap().entries("servers").unwrap();
        assert_eq!(Value::Object(read), json!({"haft": entry()}), "{text}");
    }
}

/// Tables, comments and spacing of TOML stay.
#[test]
fn toml_keeps_what_it_does_not_change() {
    let text = "model = \"o3\"   # the best\n\n[mcp_servers.a]\ncommand = 'x'\nargs = [ \"1\",\n  \"2\" ]\n\n# about the profile\n[profiles.deep]\nmodel = \"x\"\n";
    let changed = put(text, Syntax::Toml, "mcp_servers");
    insta::assert_snapshot!(changed, @r#"
    model = "o3"   # the best

    [mcp_servers.a]
    command = 'x'
    args = [ "1",
      "2" ]

    [mcp_servers.haft]
    command = "/usr/bin/haft"
    args = ["mcp", "-c", "/a b/haft.yaml"]

    # about the profile
    [profiles.deep]
    model = "x"
    "#);
    assert_eq!(removed(&changed, Syntax::Toml, "mcp_servers"), text);
    insta::assert_snapshot!(put("", Syntax::Toml, "mcp_servers"), @r#"
    [mcp_servers.haft]
    command = "/usr/bin/haft"
    args = ["mcp", "-c", "/a b/haft.yaml"]
    "#);
    for text in [
        "mcp_servers = {a = {command = 'x'}}\n",
        "mcp_servers.a.command = 'x'\n",
        "[mcp_servers]\n",
        "x = 1\n",
    ] {
        let changed = put(text, Syntax::Toml, "mcp_servers");
        assert_eq!(put(&changed, Syntax::Toml, "mcp_servers"), changed, "{text}");
    }
}

/// Comments, quotes, block strings and order of YAML stay.
#[test]
fn yaml_keeps_what_it_does_not_change() {
    let text = "# goose\nGOOSE_MODEL: 'x'\nextensions:\n  # the first\n  dev: {type: builtin}   # inline\n  talk:\n    type: stdio\n    description: |\n      two\n\n      lines\n\n# the mode\nGOOSE_MODE: auto\n";
    let changed = put(text, Syntax::Yaml, "extensions");
    insta::assert_snapshot!(changed, @r#"
    # goose
    GOOSE_MODEL: 'x'
    extensions:
      # the first
      dev: {type: builtin}   # inline
      talk:
        type: stdio
        description: |
          two

          lines
      haft:
        command: /usr/bin/haft
        args: [mcp, "-c", "/a b/haft.yaml"]

    # the mode
    GOOSE_MODE: auto
    "#);
    assert_eq!(removed(&changed, Syntax::Yaml, "extensions"), text);
}

/// Every way a section may look in YAML.
#[test]
fn yaml_sections_come_in_many_ways() {
    let texts = [
        "",
        "# nothing yet\n",
        "a: 1",
        "a: 1\r\nb: 2\r\n",
        "extensions:\n",
        "extensions:   # none\nb: 1\n",
        "extensions: {}\nb: 1\n",
        "extensions: {a: {type: x}}\n",
        "{a: 1, extensions: {b: {type: x}}}\n",
        "extensions:\n    deep:\n        type: x",
        "a: 1\nextensions:\n  last:\n    text: >\n      folded\n      # no comment\n",
    ];
    for text in texts {
        let changed = put(text, Syntax::Yaml, "extensions");
        let again = Document::read(&changed, Syntax::Yaml).unwrap();
        assert_eq!(again.entries("extensions").unwrap().get("haft"), Some(&entry()), "{text}");
        // A second value replaces the first.
        let replaced = again.put("extensions", "haft", &json!({"cmd": "x"}));
        assert!(replaced.is_ok(), "{text}: {replaced:?}");
    }
}

/// A file that cannot be edited safely is left alone, and invalid files are reported.
#[test]
fn a_file_that_cannot_be_changed_is_refused() {
    let cases = [
        ("{\"servers\": [1]}", Syntax::Json),
        ("[1]", Syntax::Json),
        ("{\"servers\": {\"a\" 1}}", Syntax::Json),
        ("{\"servers\": {}, \"servers\": {}}", Syntax::Json),
        ("servers = 3", Syntax::Toml),
        ("servers = ", Syntax::Toml),
        ("servers: text\n", Syntax::Yaml),
        ("a: [\n", Syntax::Yaml),
        ("a: 1\n...\n", Syntax::Yaml),
    ];
    let told: Vec<String> = cases
        .iter()
        .map(|(text, syntax)| {
            let document = Document::read(text, *syntax);
            let changed = document.and_then(|it| it.put("servers", "haft", &entry()));
            changed.unwrap_err().to_string()
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
    assert_eq!(EditError::Unsure.remedy(), "make the change by hand");
}

/// Odd layouts of YAML end in the right change or in none at all.
#[test]
fn odd_yaml_is_changed_rightly_or_not_at_all() {
    let texts = [
        "---\nextensions:\n  a: {type: x}\n",
        "\"extensions\":\n  a: {type: x}\n# end\n",
        "'extensions' :\n  a: {type: x}\n",
        "base: &base\n  a: {type: x}\nextensions: *base\n",
        "base: &base\n  a: {type: x}\nextensions:\n  <<: *base\n  b: {type: y}\n",
        "extensions: &all\n  a: {type: x}\nother: *all\n",
        "? extensions\n: a: {type: x}\n",
        "extensions:\n- a\n",
        "extensions: !!map\n  a: {type: x}\n",
        "extensions:\n  a: {type: x}\n...\n",
        "extensions:\n  a: {type: x}\n---\nb: 1\n",
        "  extensions:\n    a: {type: x}\n  b: 1\n",
        "extensions: {\n  a: {type: x}, # one\n}\nb: [1,\n 2]\n",
        "extensions:\n  ä: {type: \"ü\"}\n  b:\n    text: |2\n        x\n      # y\nc: 1\n",
        "extensions:\n  a: {type: x}\nc: |\n  extensions:\n    z: 1\n",
        "\u{feff}extensions:\n  a: {type: x}\n",
        "extensions:\r\n  a:\r\n    type: x\r\n# end\r\nb: 1\r\n",
    ];
    let mut refused = Vec::new();
    for text in texts {
        let Ok(document) = Document::read(text, Syntax::Yaml) else {
            refused.push(text);
            continue;
        };
        match document.put("extensions", "haft", &entry()) {
            Err(_) => refused.push(text),
            Ok(changed) => {
                let again = Document::read(&changed, Syntax::Yaml).unwrap();
                assert_eq!(again.entries("extensions").unwrap()["haft"], entry());
                assert_eq!(again.remove("extensions", "haft").as_deref().ok(), Some(text));
            }
        }
    }
    insta::assert_debug_snapshot!(refused);
}

/// Every file of the corpus takes an entry, and is itself again without it.
#[test]
fn every_file_of_the_corpus_takes_an_entry_and_gives_it_back() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/good");
    let listed = std::fs::read_to_string(corpus.join("expected.tsv")).unwrap();
    let mut changed_files = 0;
    for row in listed.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let file = row.split('\t').next().unwrap();
        let text = std::fs::read_to_string(corpus.join(file)).unwrap();
        let syntax = Syntax::of(file);
        let document = Document::read(&text, syntax).unwrap();
        let sections = ["mcpServers", "servers", "mcp_servers", "extensions"];
        let known = |section: &&str| document.entries(section).is_ok_and(|it| !it.is_empty());
        let Some(section) = sections.into_iter().find(|section| known(section)) else { continue };
        let Ok(changed) = document.put(section, "haft-entry", &entry()) else {
            // Documentation prints sections without the braces around them.
            assert!(file.ends_with("seed-1-as-printed.yaml"), "{file}");
            continue;
        };
        let back = Document::read(&changed, syntax).unwrap().remove(section, "haft-entry");
        assert_eq!(back.as_deref(), Ok(text.as_str()), "{file}");
        changed_files += 1;
    }
    assert!(changed_files > 20, "{changed_files}");
}
