//! The seeds of the fuzz targets, through the functions that the targets call.

use std::path::Path;

use haft::config::fuzz;

/// Every seed is read or refused as before, and none breaks a promise.
#[test]
fn yaml_seeds_are_read_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/yaml");
    let mut seeds: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    seeds.sort();
    let mut outcomes = String::new();
    for path in seeds {
        let bytes = std::fs::read(&path).unwrap();
        let (name, outcome) = (path.file_name().unwrap().display(), fuzz::yaml(&bytes));
        let outcome: String = outcome.chars().take(120).collect();
        outcomes += &format!("{name}: {outcome}\n");
    }
    insta::assert_snapshot!(outcomes);
}
