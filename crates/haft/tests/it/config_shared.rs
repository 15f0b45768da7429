//! `shared` and `registry.store`: what they mean, and what stays hidden. Refusals are tested with `haft check`.

use std::collections::HashMap;
use std::path::PathBuf;

use haft::Config;
use haft::config::choices::StoreKind;
use haft::config::{LoadOptions, RegistryTexts, show};

fn load(yaml: &str, registry: Option<RegistryTexts>) -> Config {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("haft.yaml"), yaml).unwrap();
    let url = "postgres://haft:s3cret-word@db.example.com,db2.example.com/haft";
    let options = LoadOptions {
        files: vec![PathBuf::from("haft.yaml")],
        environment: HashMap::from([("DATABASE_URL".to_owned(), url.to_owned())]),
        cwd: folder.path().to_owned(),
        registry: registry
            .map(|texts| RegistryTexts { dir: folder.path().join(&texts.dir), ..texts }),
        ..LoadOptions::default()
    };
    Config::load(&options).unwrap_or_else(|error| panic!("{error}"))
}

const SHARED: &str = "shared:
  url: ${DATABASE_URL}
  advertise: http://10.0.0.7:7300
registry: {store: shared, dir: tools}
";

#[test]
fn the_address_is_shown_without_its_password() {
    let config = load(SHARED, None);
    let rows = show::rows(&config).into_iter();
    let rows: Vec<String> = rows
        .filter(|row| row.path.starts_with("shared.") || row.path == "registry.store")
        .map(|row| format!("{} = {} ({})", row.path, row.value, row.from))
        .collect();
    insta::assert_snapshot!(rows.join("\n"));
    let written = load(
        "shared: {url: 'postgres://haft:s3cret-word@db/haft'}\nregistry: {store: shared, dir: t}",
        None,
    );
    assert_eq!(written.shared.as_ref().unwrap().url.value.shown(), "postgres://***@db/haft");
    for config in [&config, &written] {
        assert!(!format!("{config:?}").contains("s3cret-word"));
        assert!(config.secrets().iter().any(|secret| secret == "s3cret-word"));
    }
}

/// The folder of a shared registry need not exist, and files in it are not read.
#[test]
fn a_shared_registry_comes_from_the_caller() {
    let config = load(SHARED, None);
    assert_eq!(config.registry_store.value, StoreKind::Shared);
    assert!(config.servers.is_empty());
    let texts = RegistryTexts {
        dir: PathBuf::from("tools"),
        tools: "{\"tools\": []}".to_owned(),
        servers: r#"{"mcp_servers": {"far": {"url": "http://127.0.0.1:1"}}}"#.to_owned(),
    };
    let config = load(SHARED, Some(texts));
    assert_eq!(config.servers[0].name, "far");
    assert!(config.is_registry_file(&config.servers[0].place.file));
}
