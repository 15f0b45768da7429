//! Files of other tools as native entries: what is run stays the same.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use haft::config::{Config, Imported, LoadOptions, Masked, import, show};
use haft_config::edit::AppendError;
use haft_config::edit::Syntax;
use serde_json::{Value, json};
use testkit::Workspace;

use crate::config_support::options;

/// Every value of the servers and tools, without its origin. A native server always has a working
/// directory.
fn values(config: &Config, foreign: Option<&Config>) -> BTreeMap<String, Value> {
    let known: Vec<String> =
        foreign.iter().flat_map(|it| show::rows(it)).map(|row| row.path).collect();
    show::rows(config)
        .into_iter()
        .filter(|row| row.path.starts_with("servers.") || row.path.starts_with("tools."))
        .filter(|row| foreign.is_none() || !row.path.ends_with("cwd") || known.contains(&row.path))
        .map(|row| (row.path, row.value))
        .collect()
}

fn imported(workspace: &Workspace, file: &str, environment: &[(&str, &str)]) -> Imported {
    import(&options(workspace, &[file], environment), workspace.path()).unwrap()
}

/// Every valid file of the corpus, turned into a native one elsewhere, runs the same servers with
/// the same secrets.
#[test]
fn a_native_copy_of_every_file_runs_the_same() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/good");
    let variables = std::fs::read_to_string(corpus.join("environment.env")).unwrap();
    let variables = variables.lines().filter_map(|line| line.split_once('='));
    let environment: HashMap<String, String> =
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let listed = std::fs::read_to_string(corpus.join("expected.tsv")).unwrap();
    let rows = listed.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let mut failures = String::new();
    let mut seen = 0;
    for row in rows {
        let mut cells = row.split('\t');
        let (file, dialect) = (cells.next().unwrap(), cells.next().unwrap());
        if dialect == "native" {
            continue;
        }
        let load = LoadOptions {
            files: vec![PathBuf::from(file)],
            environment: environment.clone(),
            cwd: corpus.clone(),
            ..LoadOptions::default()
        };
        let foreign = Config::load(&load).unwrap();
        let target = Workspace::new();
        let copy = match import(&load, target.path()) {
            Ok(copy) => copy,
            Err(error) => {
                writeln!(failures, "{file}: {error}").unwrap();
                continue;
            }
        };
        let yaml = copy.to_yaml();
        target.write("haft.yaml", &yaml);
        let load = LoadOptions {
            files: vec!["haft.yaml".into()],
            cwd: target.path().to_path_buf(),
            ..load
        };
        let native = match Config::load(&load) {
            Ok(native) => native,
            Err(error) => {
                writeln!(failures, "{file}: {error}\n{yaml}").unwrap();
                continue;
            }
        };
        let (mut before, mut after) = (foreign.secrets(), native.secrets());
        before.sort();
        after.sort();
        if values(&foreign, None) != values(&native, Some(&foreign)) || before != after {
            let (before, after) = (values(&foreign, None), values(&native, Some(&foreign)));
            for (path, value) in &before {
                if after.get(path) != Some(value) {
                    writeln!(failures, "{file}: {path}: {value} became {:?}", after.get(path))
                        .unwrap();
                }
            }
            writeln!(failures, "{file} differs:\n{yaml}").unwrap();
        }
        seen += usize::from(!copy.servers.is_empty());
    }
    assert!(failures.is_empty(), "\n{failures}");
    assert!(seen > 25, "{seen} files with servers");
}

/// Variables stay variables, in our spelling, whether they are set or not.
#[test]
fn references_stay_references() {
    let workspace = Workspace::with(&[(
        ".vscode/mcp.json",
        r#"{"inputs": [{"id": "key", "type": "promptString"}, {"id": "zone", "type": "promptString", "default": "eu"}],
            "servers": {"a": {"command": "${env:BIN}", "args": ["${workspaceFolder}/x", "$${NOT}", "${Z:-${Y}}"],
                              "env": {"KEY": "${input:key}", "ZONE": "${input:zone}"}}}}"#,
    )]);
    let copy = imported(&workspace, ".vscode/mcp.json", &[("BIN", "never-shown")]);
    let folder = workspace.path().display();
    assert_eq!(
        copy.servers["a"],
        json!({"command": "${BIN}", "args": [format!("{folder}/x"), "$${NOT}", "${Z:-${Y}}"],
               "env": {"KEY": "${INPUT_KEY}", "ZONE": "${INPUT_ZONE:-eu}"}})
    );
    assert_eq!(copy.unset, ["INPUT_KEY", "Y"]);
}

/// Text that looks like a variable in a format without variables stays literal in the copy.
#[test]
fn texts_without_references_stay_literal() {
    let workspace = Workspace::with(&[(
        "config.toml",
        "[mcp_servers.a]\ncommand = 'x'\nargs = ['${HOME}', '$${B}', '${', 'true', '# no', 'a: b']\nenv_vars = ['SET', 'UNSET']\n",
    )]);
    let copy = imported(&workspace, "config.toml", &[("SET", "1")]);
    assert_eq!(copy.warnings.len(), 1, "{:?}", copy.warnings);
    workspace.write("haft.yaml", copy.to_yaml());
    let native = Config::load(&options(&workspace, &["haft.yaml"], &[("SET", "1")])).unwrap();
    let args: Vec<_> =
        crate::config_support::stdio(&native.servers[0]).args.iter().map(Masked::expose).collect();
    assert_eq!(args, ["${HOME}", "$${B}", "${", "true", "# no", "a: b"]);
    assert_eq!(crate::config_support::stdio(&native.servers[0]).env.len(), 1);
}

/// The error names all taken names; the rest of the file stays unmodified.
#[test]
fn entries_are_added_to_a_native_file() {
    let workspace = Workspace::with(&[(
        "config.toml",
        "[mcp_servers.a]\ncommand = 'x'\n[mcp_servers.a.tools.t]\napproval_mode = 'prompt'\n[mcp_servers.b]\nurl = 'http://h/mcp'\n",
    )]);
    let copy = imported(&workspace, "config.toml", &[]);
    let text = "# mine\nservers:\n  files: {command: f}   # files\n\n# how\ntools:\n- {name: x}\nlog: {dir: l}\n";
    insta::assert_snapshot!(copy.append(text, Syntax::Yaml).unwrap(), @r#"
    # mine
    servers:
      files: {command: f}   # files
      a:
        command: x
        request_timeout: 300s
      b:
        url: "http://h/mcp"
        request_timeout: 300s

    # how
    tools:
    - {name: x}
    - {name: t, mcp: a, approval: ask}
    log: {dir: l}
    "#);
    for text in ["", "# only this\n", "servers:\n", "servers: {}\ntools: []\n", "log: {dir: l}"] {
        let changed = copy.append(text, Syntax::Yaml).unwrap();
        let native = Config::from_yaml(&changed).unwrap();
        assert_eq!((native.servers.len(), native.tools.len()), (2, 1), "{changed}");
    }
    let json = copy.append("{\"log\": {\"dir\": \"l\"}}", Syntax::Json).unwrap();
    assert_eq!(Config::from_yaml(&json).unwrap().servers.len(), 2, "{json}");
    let taken = copy.append("servers: {b: {command: x}, a: {command: x}}", Syntax::Yaml);
    assert_eq!(taken, Err(AppendError::Taken { names: vec!["a".into(), "b".into()] }));
}

/// An invalid file is reported as usual, with the place in that file.
#[test]
fn a_wrong_file_is_refused() {
    let cases = [
        ("both.json", r#"{"servers": {"a": {"command": "x", "url": "http://h/mcp"}}}"#),
        ("haft.yaml", "servers: {a: {command: x}}"),
        ("half.json", r#"{"mcpServers": {"#),
    ];
    let mut told = String::new();
    for (file, text) in cases {
        let workspace = Workspace::with(&[(file, text)]);
        let error = import(&options(&workspace, &[file], &[]), workspace.path()).unwrap_err();
        writeln!(told, "{error}").unwrap();
    }
    insta::assert_snapshot!(told);
}
