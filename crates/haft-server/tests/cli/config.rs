//! `haft config`.

use serde_json::Value;
use testkit::Workspace;

use crate::{haft, run};

const FILE: &str = "defaults: {tool_timeout: 12s}
servers:
  child: {command: npx, args: ['--key', '${KEY}'], env: {TOKEN: literal-secret}, config: {k: config-secret}}
  far: {url: 'https://me:password-secret@h/mcp?token=query-secret', headers: {Authorization: 'Bearer ${KEY}'}}
tools: [{name: t, max_instances: 2}]
";

/// Proves X-6, S3-SC-005: effective values, their origins, no secret.
#[test]
fn show_masks_secrets_and_names_origins() {
    let workspace = Workspace::with(&[("haft.yaml", FILE)]);
    let shown = |args: &[&str]| {
        let program = haft(&workspace, args).env("KEY", "variable-secret");
        let finished = program.env("HAFT__LOG__RETAIN_DAYS", "3").run();
        assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
        assert!(!finished.stdout.contains("secret"), "{}", finished.stdout);
        finished.stdout
    };
    // How wide a column is depends on where the workspace lies.
    let table = workspace.stable(&shown(&["config", "show"]));
    let narrow = |line: &str| {
        let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        cells.collect::<Vec<_>>().join("  ")
    };
    let table: Vec<String> = table.lines().map(narrow).collect();
    insta::assert_snapshot!(table.join("\n"));
    let rows: Value = serde_json::from_str(&shown(&["config", "show", "--json"])).unwrap();
    let row = |path: &str| {
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["path"] == path).unwrap().to_string()
    };
    assert_eq!(
        row("defaults.tool_timeout"),
        r#"{"path":"defaults.tool_timeout","value":"12s","origin":"explicit","from":"haft.yaml:1:26"}"#
    );
    assert_eq!(
        row("log.retain_days"),
        r#"{"path":"log.retain_days","value":3,"origin":"explicit","from":"$HAFT__LOG__RETAIN_DAYS"}"#
    );
}

/// The schema is for editors and needs no configuration.
#[test]
fn schema_needs_no_configuration() {
    let finished = run(&Workspace::new(), &["config", "schema"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
    let schema: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(schema, haft::Config::json_schema());
}
