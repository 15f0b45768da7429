//! The public API of the library crates as a listing that is kept in `docs/api`, so that every change of it is seen in
//! review. Read from the source, so it works on the stable compiler.
//!
//! An item is listed under its shortest public path. Items of other crates that are re-exported are one line each.
//! Code for tests and `#[doc(hidden)]` items do not count.

mod krate;
mod listing;
mod members;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::run::{root, shown_path};
use krate::Krate;
use listing::Listing;

/// The crates for programs other than Haft's own.
const CRATES: [&str; 5] = ["haft", "haft-agent", "haft-config", "haft-select", "haft-text"];

/// The most items that `haft` offers, without methods, fields and variants.
const ITEMS_MAX: usize = 200;

/// Fails if a listing differs from the source, or if the library offers more than [`ITEMS_MAX`] items.
pub(crate) fn check() -> Result<()> {
    eprintln!("\n==> public API");
    for name in CRATES {
        let listing = listing_of(&root().join("crates").join(name), name)?;
        let path = kept(name);
        let old = fs::read_to_string(&path).unwrap_or_default();
        if let Some((line, old, new)) = first_difference(&old, &listing.text()) {
            bail!(
                "the public API of `{name}` differs from `{}` at line {line}:\n  - {old}\n  + {new}\n\
                 run `cargo xtask api --write` and review the change",
                shown_path(&path)
            );
        }
        let (items, members) = (listing.items(), listing.members());
        eprintln!("    {name}: {items} items, {members} members");
        if name == "haft" && items > ITEMS_MAX {
            bail!("`{name}` has {items} public items; at most {ITEMS_MAX} are allowed");
        }
    }
    Ok(())
}

/// Writes the listings.
pub(crate) fn write() -> Result<()> {
    for name in CRATES {
        let listing = listing_of(&root().join("crates").join(name), name)?;
        let path = kept(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("")))?;
        fs::write(&path, listing.text())
            .with_context(|| format!("cannot write `{}`", shown_path(&path)))?;
        eprintln!("    {}: {} items", shown_path(&path), listing.items());
    }
    Ok(())
}

/// Prints the listing of the crate in `folder`.
pub(crate) fn print(folder: &str) -> Result<()> {
    let folder = Path::new(folder);
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let listing = listing_of(folder, &name)?;
    print!("{}", listing.text());
    eprintln!("{} items, {} members", listing.items(), listing.members());
    Ok(())
}

fn listing_of(folder: &Path, name: &str) -> Result<Listing> {
    let krate = Krate::read(&folder.join("src/lib.rs"))?;
    Ok(Listing::of(&krate, &name.replace('-', "_")))
}

fn kept(name: &str) -> PathBuf {
    root().join("docs/api").join(format!("{name}.txt"))
}

fn first_difference(old: &str, new: &str) -> Option<(usize, String, String)> {
    let (mut old, mut new) = (old.lines(), new.lines());
    for line in 1.. {
        match (old.next(), new.next()) {
            (None, None) => return None,
            (old, new) if old == new => {}
            (old, new) => {
                let shown = |text: Option<&str>| text.unwrap_or("(nothing)").to_owned();
                return Some((line, shown(old), shown(new)));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(files: &[(&str, &str)]) -> Listing {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join("src").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        listing_of(folder.path(), "planted").unwrap()
    }

    #[test]
    fn items_are_listed_with_their_members_under_the_shortest_path() {
        let listing = listed(&[
            (
                "lib.rs",
                "mod inner;\npub mod open;\npub use inner::{Thing, help as assist};\npub use serde::Serialize;\n",
            ),
            (
                "inner.rs",
                "#[derive(Debug, Clone)]\npub struct Thing<T> { pub size: usize, hidden: T }\n\
                 impl<T> Thing<T> {\n    /// Doc.\n    pub fn grow(&mut self,\n        by: usize) -> usize { by }\n    fn shrink(&self) {}\n}\n\
                 impl<T> Drop for Thing<T> { fn drop(&mut self) {} }\n\
                 pub fn help() {}\npub fn unreachable() {}\n",
            ),
            (
                "open.rs",
                "pub use crate::inner::Thing;\npub enum Kind { One, Two(u8) }\npub trait Act { fn act(&self); }\n\
                 pub const MAX: usize = 3;\n#[doc(hidden)]\npub fn hidden() {}\npub(crate) fn internal() {}\n#[cfg(test)]\npub mod tests;\n",
            ),
        ]);
        let expected = "\
use planted::Serialize = serde::Serialize
struct planted::Thing<T>: Debug, Clone
    pub size: usize
    pub fn grow(&mut self, by: usize) -> usize
    impl Drop
fn planted::assist()
mod planted::open
trait planted::open::Act
    fn act(&self)
enum planted::open::Kind
    One
    Two(u8)
const planted::open::MAX: usize
use planted::open::Thing = planted::Thing
";
        assert_eq!(listing.text(), expected);
        assert_eq!((listing.items(), listing.members()), (8, 5));
    }

    #[test]
    fn a_changed_signature_is_a_difference() {
        let old = listed(&[("lib.rs", "pub fn f(a: u8) {}\npub fn g() {}\n")]).text();
        let new = listed(&[("lib.rs", "pub fn f(a: u16) {}\npub fn g() {}\n")]).text();
        let expected = (1, "fn planted::f(a: u8)".to_owned(), "fn planted::f(a: u16)".to_owned());
        assert_eq!(first_difference(&old, &new), Some(expected));
        assert_eq!(first_difference(&new, &new), None);
    }
}
