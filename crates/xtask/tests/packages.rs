//! Every published crate can be packaged, and has the metadata that crates.io shows.
#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has failed")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The largest package that crates.io accepts.
const PACKAGE_BYTES_MAX: u64 = 10 * 1024 * 1024;

fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    command.args(args).current_dir(root);
    command
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn published() -> Vec<Value> {
    let metadata =
        output(&mut cargo(&["metadata", "--no-deps", "--offline", "--format-version=1"]));
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    // `publish = false` is an empty list of registries.
    packages.filter(|it| it["publish"].is_null()).cloned().collect()
}

#[test]
fn published_crates_have_their_metadata() {
    for package in published() {
        let name = package["name"].as_str().unwrap();
        for key in ["description", "documentation", "license", "readme", "repository"] {
            assert!(package[key].is_string(), "{name} has no `{key}`");
        }
        for key in ["categories", "keywords"] {
            let words = package[key].as_array().unwrap();
            assert!((1..=5).contains(&words.len()), "{name}: crates.io takes 1 to 5 {key}");
        }
        assert!(package["metadata"]["docs"]["rs"].is_object(), "{name} has no settings of docs.rs");
        // A dependency without a version cannot be published; for tests it is left out.
        for dependency in package["dependencies"].as_array().unwrap() {
            let is_for_tests = dependency["kind"] == "dev";
            let has_version = dependency["req"] != "*";
            assert!(has_version || is_for_tests, "{name}: {dependency}");
        }
    }
}

#[test]
fn published_crates_can_be_packaged() {
    let target = tempfile::tempdir().unwrap();
    let packages = published();
    let options = ["package", "--no-verify", "--offline", "--allow-dirty", "--exclude-lockfile"];
    let mut command = cargo(&options);
    command.arg("--target-dir").arg(target.path());
    for package in &packages {
        command.args(["--package", package["name"].as_str().unwrap()]);
    }
    output(&mut command);
    for package in packages {
        let name = format!(
            "{}-{}",
            package["name"].as_str().unwrap(),
            package["version"].as_str().unwrap()
        );
        let file = target.path().join("package").join(format!("{name}.crate"));
        let bytes = std::fs::metadata(&file).unwrap().len();
        assert!(bytes < PACKAGE_BYTES_MAX, "{name} has {bytes} bytes");
        let files = output(Command::new("tar").args(["--list", "--file"]).arg(&file));
        for needed in ["Cargo.toml", "README.md", "src/lib.rs"] {
            assert!(files.lines().any(|line| line == format!("{name}/{needed}")), "{needed}");
        }
        let tests = format!("{name}/tests/");
        assert!(!files.lines().any(|line| line.starts_with(&tests)), "{name} contains tests");
    }
}
