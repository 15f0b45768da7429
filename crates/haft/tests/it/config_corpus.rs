//! Every malformed file is refused with a message that helps, every valid one is accepted.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use haft::config::{Config, ConfigError, Dialect, LoadOptions, Severity};

fn corpus(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(part)
}

fn rows(part: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(corpus(part).join("expected.tsv")).unwrap();
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split('\t').map(ToOwned::to_owned).collect())
        .collect()
}

fn environment() -> HashMap<String, String> {
    let text = std::fs::read_to_string(corpus("good/environment.env")).unwrap();
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn load(file: &str, format: Option<Dialect>, cwd: &Path) -> Result<Config, ConfigError> {
    Config::load(&LoadOptions {
        files: vec![PathBuf::from(file)],
        format,
        environment: environment(),
        cwd: cwd.to_path_buf(),
        ..LoadOptions::default()
    })
}

fn dialect_of(folder: &str) -> Option<Dialect> {
    Dialect::ALL.into_iter().find(|dialect| dialect.word() == folder.replace('_', "-"))
}

/// Proves S0-6, S0-72, S0-73, S0-95, S0-96, S1-12, S2-KE-02, S2-KE-03, S3-REF-1, S3-FR-001, X-15.
#[test]
fn every_valid_file_is_accepted_and_lists_its_servers_and_tools() {
    let mut failures = String::new();
    for row in rows("good") {
        let [file, dialect, servers, tools] = &row[..] else { panic!("{row:?}") };
        match load(file, None, &corpus("good")) {
            Err(error) => writeln!(failures, "{file}: {error}").unwrap(),
            Ok(config) => {
                let found = config.files[0].dialect.word();
                let listed = |names: Vec<String>| match names.len() {
                    0 => "-".to_owned(),
                    _ => names.join(","),
                };
                let found_servers =
                    listed(config.servers.iter().map(|server| server.name.clone()).collect());
                let local = config.local.iter().map(|tool| tool.definition.name.clone());
                let found_tools = listed(
                    local.chain(config.tools.iter().map(|tool| tool.name.clone())).collect(),
                );
                let found = [found, &found_servers, &found_tools];
                if found != [dialect.as_str(), servers, tools] {
                    writeln!(failures, "{file}: {found:?}, expected {:?}", &row[1..]).unwrap();
                }
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// Proves S3-SC-004, S3-FR-026, S0-86, S0-89 and every validation row the corpus names: S0-2,
/// S0-11, S0-13, S0-14, S0-15, S0-16, S0-17, S0-21, S0-46, S0-71, S0-75, S0-78, S0-79, S1-23, S2-EC-06, S2-EC-07.
#[test]
fn every_malformed_file_is_refused_with_place_cause_and_remedy() {
    let mut failures = String::new();
    let mut messages: BTreeMap<String, String> = BTreeMap::new();
    for row in rows("bad") {
        let [file, phrases, line] = &row[..] else { panic!("{row:?}") };
        let folder = file.split('/').next().unwrap();
        let Err(error) = load(file, dialect_of(folder), &corpus("bad")) else {
            writeln!(failures, "{file}: accepted").unwrap();
            continue;
        };
        let errors: Vec<_> =
            error.problems.iter().filter(|problem| problem.severity == Severity::Error).collect();
        let text: String = errors
            .iter()
            .map(|it| {
                format!("line {} {} {} {}\n", it.place.line, it.place.path, it.problem, it.remedy)
            })
            .map(|text| text.to_lowercase())
            .collect();
        for phrase in phrases.split('|').filter(|phrase| !text.contains(&phrase.to_lowercase())) {
            writeln!(failures, "{file}: no `{phrase}` in: {text}").unwrap();
        }
        if line != "-" && !errors.iter().any(|problem| problem.place.line.to_string() == *line) {
            let lines: Vec<_> = errors.iter().map(|problem| problem.place.line).collect();
            writeln!(failures, "{file}: line {line} expected, found {lines:?}: {text}").unwrap();
        }
        for problem in &errors {
            assert!(!problem.remedy.to_string().is_empty(), "{file} has no remedy");
        }
        let shown = error.to_string().replace(&corpus("bad").display().to_string(), "CORPUS");
        writeln!(messages.entry(folder.to_owned()).or_default(), "{shown}\n").unwrap();
    }
    assert!(failures.is_empty(), "\n{failures}");
    for (folder, text) in messages {
        insta::assert_snapshot!(format!("bad_{folder}"), text);
    }
}
