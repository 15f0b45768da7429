//! The module graph of every crate, and the check that its top-level modules form no cycle.
//!
//! The graph has an edge for each `use` item and path expression, also inside macros, from the module that
//! contains it to the module that defines its target: re-exports are followed. Code for tests does not count.

mod graph;
mod references;
mod tree;

use std::path::Path;

use anyhow::{Result, bail};

use crate::run::{root, shown_path};
use graph::Graph;
use tree::Tree;

/// Fails if the modules of a crate form a cycle, and prints each cycle with the lines that close it.
pub(crate) fn check() -> Result<()> {
    eprintln!("\n==> module cycles");
    let mut crates: Vec<_> = std::fs::read_dir(root().join("crates"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    crates.sort();
    let mut cycles = Vec::new();
    for folder in &crates {
        cycles.extend(cycles_of(folder)?);
    }
    if cycles.is_empty() {
        eprintln!("    none in {} crates", crates.len());
        return Ok(());
    }
    bail!("modules form cycles:\n\n{}", cycles.join("\n"))
}

fn cycles_of(folder: &Path) -> Result<Vec<String>> {
    let Some(entry) =
        ["src/lib.rs", "src/main.rs"].map(|it| folder.join(it)).into_iter().find(|it| it.exists())
    else {
        bail!("`{}` has neither `src/lib.rs` nor `src/main.rs`", shown_path(folder));
    };
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let tree = Tree::read(&entry)?;
    Ok(Graph::of(&tree).cycles(&name))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn cycles(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join("src").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let prefix = format!("{}/", folder.path().display());
        let name = folder.path().file_name().unwrap().to_string_lossy().into_owned();
        let cycles = cycles_of(folder.path()).unwrap();
        cycles.iter().map(|it| it.replace(&prefix, "").replace(&name, "planted")).collect()
    }

    #[test]
    fn a_planted_cycle_is_found_with_the_lines_that_close_it() {
        let found = cycles(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\npub use b::Thing;\n"),
            ("a.rs", "use crate::Thing;\n"),
            ("b/mod.rs", "mod inner;\npub struct Thing;\n"),
            ("b/inner.rs", "fn f() { println!(\"{}\", crate::c::ONE); }\n"),
            ("c.rs", "pub const ONE: u8 = 1;\npub fn g() { super::a::h() }\n"),
        ]);
        let expected = "planted: a, b, c\n    a -> b  src/a.rs:1\n    b -> c  src/b/inner.rs:1\n    \
                        c -> a  src/c.rs:2\n";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn parents_children_and_tests_form_no_cycle() {
        let found = cycles(&[
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", "mod part { pub use super::One; }\npub struct One;\nuse part::One as Two;\n"),
            ("b.rs", "use crate::a;\n#[cfg(test)]\nmod tests { use crate::a; }\n"),
            ("a/unused.rs", "use crate::b;\n"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
