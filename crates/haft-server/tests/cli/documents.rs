//! The documents match the binary.

use std::path::{Path, PathBuf};

use testkit::Workspace;

use crate::{haft, run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn document(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// The fenced blocks of one language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let open = format!("```{language}\n");
    text.split(&open).skip(1).filter_map(|rest| rest.split("```").next()).map(Into::into).collect()
}

/// Proves S0-74: there is a migration guide, and every example configuration is valid.
#[test]
fn every_example_configuration_is_valid() {
    let guide = document("docs/migration.md");
    assert!(guide.contains("## Toolbox files") && guide.contains("mode: strict"));
    let examples = root().join("examples");
    let mut checked = 0;
    for folder in std::fs::read_dir(examples).unwrap() {
        let config = folder.unwrap().path().join("haft.yaml");
        let workspace = Workspace::new();
        let finished = run(&workspace, &["-c", config.to_str().unwrap(), "check"]);
        assert_eq!(finished.code, 0, "{}: {}", config.display(), finished.stderr);
        checked += 1;
    }
    assert!(checked > 0);
}

/// The configuration of the unit and the container is valid, comments included.
#[test]
fn the_configuration_for_services_is_valid() {
    let files =
        [("tools/tools.json", r#"{"tools": []}"#), ("tools/mcp.json", r#"{"mcp_servers": {}}"#)];
    let workspace = Workspace::with(&files);
    let folder = workspace.path().display().to_string();
    let yaml = document("deploy/haft.yaml").replace("/var/lib/haft", &folder);
    let all = yaml.replace("  # tls:", "  tls:").replace("  # allowed_hosts:", "  allowed_hosts:");
    for yaml in [yaml, all.replace("# policy:", "policy:").replace("#   allowed", "  allowed")] {
        std::fs::write(workspace.path().join("haft.yaml"), &yaml).unwrap();
        let finished = run(&workspace, &["check"]);
        assert_eq!((finished.code, finished.stderr.as_str()), (0, ""), "{yaml}");
    }
}

/// The manifests and the compose file for replicas: every named file exists, and the configuration is valid.
#[test]
fn the_deployments_of_replicas_are_valid() {
    for folder in ["deploy/kubernetes", "deploy/replicas"] {
        let workspace = Workspace::with(&[("tools/.keep", "")]);
        let place = workspace.path().display().to_string();
        let yaml = document(&format!("{folder}/haft.yaml")).replace("/var/lib/haft", &place);
        std::fs::write(workspace.path().join("haft.yaml"), &yaml).unwrap();
        let url = "postgres://haft@localhost/haft";
        let program = haft(&workspace, &["check"]).env("DATABASE_URL", url);
        let finished = program.env("POD_IP", "10.0.0.7").env("HOSTNAME", "replica").run();
        assert_eq!((finished.code, complaints(&finished.stderr)), (0, Vec::new()), "{yaml}");
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/kubernetes");
    let kustomization = document("deploy/kubernetes/kustomization.yaml");
    let resources = kustomization.lines().filter_map(|line| line.strip_prefix("  - "));
    let resources: Vec<&str> = resources.filter(|name| name.contains(".yaml")).collect();
    for file in &resources {
        let manifest = document(&format!("deploy/kubernetes/{file}"));
        assert!(manifest.contains("metadata:\n  name: haft\n"), "{file}");
    }
    // The program is not part of Debian; where it is installed, it reads the manifests.
    match std::process::Command::new("kubectl").args(["kustomize", folder]).output() {
        Ok(built) => {
            let text = String::from_utf8_lossy(&built.stdout);
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            assert_eq!(text.matches("\nkind: ").count(), resources.len() + 1, "{text}");
        }
        Err(error) => eprintln!("kubectl is not installed, so kustomize was not run: {error}"),
    }
}

/// The README's servers are a valid configuration, also before the secret is there: readers copy it as it is.
#[test]
fn the_servers_of_the_readme_are_valid() {
    let [servers, profiles] = &blocks(&document("README.md"), "yaml")[..] else { panic!() };
    let workspace = Workspace::with(&[("haft.yaml", &[&**servers, profiles].concat())]);
    let finished = run(&workspace, &["check"]);
    assert_eq!((finished.code, complaints(&finished.stderr)), (0, Vec::new()));
}

/// The errors and warnings. Notes, such as those about versions that are not pinned, are advice.
fn complaints(stderr: &str) -> Vec<&str> {
    let is_complaint = |line: &&str| line.starts_with("error:") || line.starts_with("warning:");
    stderr.lines().filter(is_complaint).collect()
}

/// Every key of the reference is one that Haft knows, with a value that it takes.
#[test]
fn the_reference_configuration_loads() {
    let configuration = document("docs/configuration.md");
    let yaml = configuration.split("## Example with all sections").nth(1).unwrap();
    let yaml = blocks(yaml, "yaml").remove(0);
    let workspace = Workspace::with(&[
        ("haft.yaml", &yaml.replace("${TOKEN}", "${TOKEN:-t}")),
        (".env", "A=1\n"),
        ("tools/tools.json", r#"{"tools": []}"#),
        ("tools/mcp.json", r#"{"mcp_servers": {}}"#),
    ]);
    let finished = crate::haft(&workspace, &["check"]).env("OPENAI_API_KEY", "k").run();
    assert_eq!((finished.code, complaints(&finished.stderr)), (0, Vec::new()));
    // The tool that the documentation writes, with its script.
    let page = document("docs/tools.md");
    let tools = blocks(&page, "json").remove(0);
    let script = blocks(&page, "python").remove(0);
    let workspace = Workspace::with(&[
        ("tools.json", &tools),
        ("mcp.json", r#"{"mcp_servers": {}}"#),
        ("weather.py", &script),
    ]);
    let finished = run(&workspace, &["-c", ".", "call", "get_weather", "city=Seoul", "--json"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert!(finished.stdout.contains("12.5"), "{}", finished.stdout);
}

/// Every key of the agent's reference is one that Haft knows, and those of built-in tools too.
#[test]
fn the_references_of_agent_and_built_in_tools_load() {
    let agent = blocks(&document("docs/agent.md"), "yaml").remove(0);
    let configuration = blocks(&document("docs/configuration.md"), "yaml");
    let builtin = configuration.iter().find(|block| block.starts_with("builtin:")).unwrap();
    let yaml = format!("{agent}{builtin}").replace("_API_KEY}", "_API_KEY:-k}");
    let workspace = Workspace::with(&[("haft.yaml", &yaml)]);
    let finished = run(&workspace, &["check"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
}

/// Proves S0-80: the documents warn that dynamic mode is for trusted servers.
#[test]
fn the_documents_warn_of_dynamic_mode() {
    for path in ["README.md", "docs/configuration.md"] {
        let text = document(path).to_lowercase();
        assert!(text.contains("dynamic mode") && text.contains("servers you trust"), "{path}");
    }
}
