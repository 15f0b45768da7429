//! One entry of somebody's file, changed: the rest stays as it was, byte for byte.

use haft::edit::{Document, EditError, Syntax};
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

/// Comments, quotes, block texts and order of YAML stay.
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
        // Once more with another value, which replaces the first.
        let replaced = again.put("extensions", "haft", &json!({"cmd": "x"}));
        let is_flow = text.contains("{b") || text.contains("{a:");
        assert_eq!(replaced.is_err(), is_flow, "{text}: {replaced:?}");
    }
}

/// What cannot be changed surely is left alone, and broken files are told.
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
