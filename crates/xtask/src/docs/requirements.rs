//! Requirement ids that tests name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::files;

/// The page that explains them.
const PAGE: &str = "docs/requirements.md";

/// A problem for each id that source code names and the page does not explain.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let page = fs::read_to_string(root.join(PAGE))?;
    let rows = page.lines().filter_map(|line| line.strip_prefix("| S"));
    let explained: BTreeSet<String> =
        rows.filter_map(|row| row.split(' ').next()).map(|id| format!("S{id}")).collect();
    let mut named = BTreeSet::new();
    for file in files(root, "rs")? {
        named.extend(ids(&fs::read_to_string(root.join(file))?));
    }
    let missing = named.difference(&explained);
    Ok(missing.map(|id| format!("{PAGE}: {id} is named by a test and not explained")).collect())
}

/// Ids such as `S0-27` and `S2-FR-001` in comments.
fn ids(source: &str) -> BTreeSet<String> {
    let comments = source.lines().filter(|line| line.trim_start().starts_with("//"));
    let words = comments.flat_map(|line| line.split(|it: char| !it.is_alphanumeric() && it != '-'));
    words.filter(|word| is_id(word)).map(str::to_owned).collect()
}

fn is_id(word: &str) -> bool {
    let mut parts = word.split('-');
    let is_source = parts.next().is_some_and(|part| {
        part.len() == 2 && part.starts_with('S') && part.ends_with(|it: char| it.is_ascii_digit())
    });
    let rest: Vec<&str> = parts.collect();
    let is_upper = |part: &&str| {
        !part.is_empty() && part.chars().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit())
    };
    is_source && !rest.is_empty() && rest.iter().all(is_upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_in_comments() {
        let source = "/// Proves S0-27, S2-FR-001 and S3-US4-T.\nlet it = \"S0-99\"; // S1-1\n// UTF-8, S3, S0-x\n";
        let found: Vec<String> = ids(source).into_iter().collect();
        assert_eq!(found, ["S0-27", "S2-FR-001", "S3-US4-T"]);
    }
}
