//! Title, annotations and icons that files and functions declare for tools.

use haft::{Config, FunctionTool, Icon, Runtime, ToolAnnotations, ToolInfo, ToolOutput};
use serde_json::{Value, json};
use testkit::Workspace;

use crate::config_support::{errors, load, native, row, value};

const TOOLS: &str = r#"{"tools": [{
  "name": "greet", "description": "Greets.", "type": "local", "input_schema": {"type": "object"},
  "title": "Greet somebody", "annotations": {"readOnlyHint": true, "openWorldHint": false},
  "icons": [{"src": "https://example.com/greet.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "light"}],
  "config": {"script_path": "greet.py"}
}]}"#;

fn registry(config: &str) -> Workspace {
    Workspace::with(&[
        ("haft.yaml", &format!("registry: {{dir: tools}}\n{config}")),
        ("tools/tools.json", TOOLS),
        ("tools/mcp.json", r#"{"mcp_servers": {}}"#),
        ("tools/greet.py", "def run(args):\n    return {}\n"),
    ])
}

async fn tools_of(config: Config) -> Vec<ToolInfo> {
    let runtime = Runtime::builder(config).dry_run().start().await.unwrap();
    runtime.tools()
}

fn metadata(tool: &ToolInfo) -> Value {
    json!({"title": tool.title, "annotations": tool.annotations, "icons": tool.icons})
}

/// An entry of `tools.json` declares metadata, an entry of `tools` wins over it key by key, and each value
/// is shown with its place.
#[tokio::test]
async fn files_declare_metadata_of_local_tools() {
    let icon = json!({"src": "https://example.com/greet.png", "mimeType": "image/png",
                      "sizes": ["48x48"], "theme": "light"});
    let workspace = registry("");
    let config = load(&workspace, &["haft.yaml"], &[]).unwrap();
    assert_eq!(value(&config, "local.greet.title"), json!("Greet somebody"));
    assert_eq!(value(&config, "local.greet.icons"), json!([icon]));
    let declared = json!({
        "title": "Greet somebody",
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
        "icons": [icon],
    });
    assert_eq!(metadata(&tools_of(config).await[0]), declared);

    let entry = "tools:\n  - name: greet\n    title: Say hello\n    annotations: {openWorldHint: true}\n    icons: []\n";
    let workspace = registry(entry);
    let config = load(&workspace, &["haft.yaml"], &[]).unwrap();
    assert_eq!(value(&config, "tools.greet.annotations"), json!({"openWorldHint": true}));
    assert_eq!(row(&config, "tools.greet.title").from, "haft.yaml:4:12");
    let overridden = json!({
        "title": "Say hello",
        "annotations": {"readOnlyHint": true, "openWorldHint": true},
        "icons": [],
    });
    assert_eq!(metadata(&tools_of(config).await[0]), overridden);
}

/// Values that clients would have to refuse, or that exceed a limit, are refused with their place;
/// a mistyped key gets a suggestion.
#[test]
fn invalid_metadata_is_refused() {
    let text = "tools:
  - name: a
    title: ''
    annotations: {readonlyHint: true, destructiveHint: maybe}
  - name: b
    icons:
      - {src: 'javascript:alert(1)'}
      - {src: 'http://127.0.0.1/icon.png'}
      - {src: 'data:text/html;base64,PGI+'}
      - {src: 'https://example.com/i.png', mimeType: text/html}
      - {src: 'https://example.com/i.png', sizes: [big]}
      - {src: 'https://example.com/i.png', theme: blue}
      - {mimeType: image/png}
      - {source: x}
  - {name: c, icons: [{src: 'https://e.com/1'}, {src: 'https://e.com/2'}, {src: 'https://e.com/3'},
      {src: 'https://e.com/4'}, {src: 'https://e.com/5'}, {src: 'https://e.com/6'}, {src: 'https://e.com/7'},
      {src: 'https://e.com/8'}, {src: 'https://e.com/9'}]}
";
    insta::assert_snapshot!(errors(native(text, &[])));
    let long = format!("tools: [{{name: a, title: '{}'}}]", "x".repeat(201));
    assert!(errors(native(&long, &[])).contains("longer than 200 characters"));
}

/// A known secret that an entry repeats reaches no client.
#[tokio::test]
async fn a_known_secret_in_an_entry_is_masked() {
    let text = "registry: {dir: tools}\nservers: {s: {url: 'http://127.0.0.1:9/', headers: {X: '${KEY}'}, \
                start: lazy}}\ntools: [{name: greet, title: 'With ${KEY}', annotations: {title: '${KEY}'}}]\n";
    let workspace = registry("");
    workspace.write("haft.yaml", text);
    let config = load(&workspace, &["haft.yaml"], &[("KEY", "canary-3f9a1c")]).unwrap();
    let tool = metadata(&tools_of(config).await[0]);
    assert_eq!(tool["title"], "With ***");
    assert!(!tool.to_string().contains("canary"), "{tool}");
}

/// A Rust function declares its own, and the file wins here too.
#[tokio::test]
async fn functions_declare_metadata() {
    let function = || {
        FunctionTool::new("add", "Adds.", json!({"type": "object"}), |_, _| async {
            Ok(ToolOutput::default())
        })
        .with_title("Add")
        .with_annotations(ToolAnnotations::new().read_only(true).idempotent(true))
        .with_icons(vec![Icon::new("data:image/png;base64,iVBORw0KGgo=").unwrap()])
    };
    let started = async |entry: &str| {
        let config = native(&format!("tools: [{entry}]"), &[]).unwrap();
        Runtime::builder(config).tool(function()).dry_run().start().await.unwrap()
    };
    let icons = json!([{"src": "data:image/png;base64,iVBORw0KGgo="}]);
    assert_eq!(
        metadata(&started("{name: add}").await.tools()[0]),
        json!({"title": "Add", "annotations": {"readOnlyHint": true, "idempotentHint": true}, "icons": icons})
    );
    let entry = "{name: add, annotations: {readOnlyHint: false}}";
    assert_eq!(
        metadata(&started(entry).await.tools()[0])["annotations"],
        json!({"readOnlyHint": false, "idempotentHint": true})
    );
}
