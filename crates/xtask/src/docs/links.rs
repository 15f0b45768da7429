//! Relative links of Markdown pages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::anchors::{anchors, prose};

/// The problems of all pages. Addresses of other hosts are not opened.
pub(super) fn check(root: &Path, pages: &[PathBuf]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for page in pages {
        let text = read(&root.join(page))?;
        for target in targets(&text).into_iter().filter(|target| is_relative(target)) {
            if let Some(problem) = problem(root, page, &target)? {
                problems.push(format!("{}: {problem}", page.display()));
            }
        }
    }
    Ok(problems)
}

/// The reason that a link leads nowhere.
fn problem(root: &Path, page: &Path, target: &str) -> Result<Option<String>> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = page.parent().unwrap_or(Path::new(""));
    let linked = if path.is_empty() { root.join(page) } else { root.join(folder).join(path) };
    if !linked.exists() {
        return Ok(Some(format!("`{target}` does not exist")));
    }
    if anchor.is_empty() {
        return Ok(None);
    }
    let known = anchors(&read(&linked)?);
    let is_known = known.iter().any(|known| known == anchor);
    Ok((!is_known).then(|| format!("`{target}` has no such heading")))
}

/// The targets of `[text](target)` outside of code.
fn targets(page: &str) -> Vec<String> {
    let text: Vec<String> = prose(page).map(without_code).collect();
    let text = text.join("\n");
    let links = text.split("](").skip(1);
    links.filter_map(|rest| rest.split(')').next()).map(str::to_owned).collect()
}

/// A line without the inside of backticks that hold a link of their own.
fn without_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    let keep = |(at, part): (usize, &&str)| {
        if at % 2 == 1 && part.contains("](") { String::new() } else { (*part).to_owned() }
    };
    parts.iter().enumerate().map(keep).collect::<Vec<_>>().join("`")
}

fn is_relative(target: &str) -> bool {
    !target.contains("://") && !target.starts_with("mailto:")
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_nowhere_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write(
            "a.md",
            "[b](b.md), [c](b.md#here), [web](https://x.example/y)\n```\n[no](no.md)\n```\n`[no](no.md)`\n",
        );
        write("b.md", "# There\n[self](#there) [gone](gone.md)\n");
        let pages = [PathBuf::from("a.md"), PathBuf::from("b.md")];
        let problems = check(folder.path(), &pages).unwrap();
        let expected = ["a.md: `b.md#here` has no such heading", "b.md: `gone.md` does not exist"];
        assert_eq!(problems, expected);
    }
}
