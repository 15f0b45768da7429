//! The README's way from nothing to a tool of one's own, executed as it is printed.

use std::path::{Path, PathBuf};

use serde_json::Value;
use testkit::{Program, Workspace};

use crate::served::Served;

/// Proves S2-SC-002, S2-US3-T, S2-US3-1: from an empty folder to a tool that works, with the commands of the
/// README and nothing else. Only the port is another.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_minute_is_as_the_readme_prints_it() {
    let served = Served::open(Workspace::new());
    let script = script().replace("localhost:7300", served.url.trim_start_matches("http://"));
    let haft = Path::new(env!("CARGO_BIN_EXE_haft")).parent().unwrap();
    let path = format!("{}:{}", haft.display(), std::env::var("PATH").unwrap());
    let finished = Program::new("bash", &served.workspace)
        .args(&["-euo", "pipefail", "-c", &script])
        .env("PATH", &path)
        .run();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let answers: Vec<Value> = serde_json::Deserializer::from_str(&finished.stdout)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{error}: {}", finished.stdout));
    let [hello, entry, called] = &answers[..] else { panic!("{}", finished.stdout) };
    assert_eq!(hello["data"]["greeting"], "Hello, Ada!");
    assert_eq!(entry["name"], "to_celsius");
    assert_eq!(called["data"]["celsius"], 232.8);
    let file = served.workspace.read(".haft/tools/tools.json").unwrap();
    assert!(file.contains("to_celsius") && file.contains("hello_world"), "{file}");
}

fn script() -> String {
    let readme: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "README.md"].iter().collect();
    let readme = std::fs::read_to_string(readme).unwrap();
    let block = readme.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next());
    block.unwrap().to_owned()
}
