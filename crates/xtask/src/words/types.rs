//! Public type names that one crate defines twice.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use syn::{Ident, Item, Meta, Visibility};

/// The places that define each public type, by crate root and name.
#[derive(Default)]
pub(super) struct PublicTypes {
    places: BTreeMap<(String, String), Vec<String>>,
}

impl PublicTypes {
    pub(super) fn add(&mut self, file: &Path, shown: &str, text: &str) -> Result<()> {
        // A module that replaces another when a feature is off defines the same types.
        if shown.contains("_without_") {
            return Ok(());
        }
        let parsed = syn::parse_file(text).with_context(|| format!("cannot parse `{shown}`"))?;
        self.add_items(&crate_root(file), shown, &parsed.items);
        Ok(())
    }

    fn add_items(&mut self, root: &str, shown: &str, items: &[Item]) {
        for item in items {
            match item {
                Item::Struct(it) => self.add_type(root, shown, &it.vis, &it.ident),
                Item::Enum(it) => self.add_type(root, shown, &it.vis, &it.ident),
                Item::Union(it) => self.add_type(root, shown, &it.vis, &it.ident),
                Item::Trait(it) => self.add_type(root, shown, &it.vis, &it.ident),
                Item::Type(it) => self.add_type(root, shown, &it.vis, &it.ident),
                Item::Mod(it) => {
                    let is_for_tests = it.attrs.iter().any(|attribute| {
                        matches!(&attribute.meta, Meta::List(list) if list.path.is_ident("cfg"))
                    });
                    if let (false, Some((_, items))) = (is_for_tests, &it.content) {
                        self.add_items(root, shown, items);
                    }
                }
                _ => {}
            }
        }
    }

    fn add_type(&mut self, root: &str, shown: &str, visibility: &Visibility, name: &Ident) {
        let is_public = match visibility {
            Visibility::Public(_) => true,
            Visibility::Restricted(it) => it.path.is_ident("crate"),
            Visibility::Inherited => false,
        };
        if is_public {
            let place = format!("{shown}:{}", name.span().start().line);
            self.places.entry((root.to_owned(), name.to_string())).or_default().push(place);
        }
    }

    pub(super) fn duplicates(&self) -> Vec<String> {
        let duplicates = self.places.iter().filter(|(_, places)| places.len() > 1);
        duplicates.map(|((_, name), places)| format!("`{name}`: {}", places.join(", "))).collect()
    }
}

/// Each program below `src/bin` is a crate of its own.
fn crate_root(file: &Path) -> String {
    let names: Vec<_> = file.components().map(|it| it.as_os_str().to_string_lossy()).collect();
    let program = names.windows(3).find(|it| it[0] == "src" && it[1] == "bin");
    program.map_or_else(String::new, |it| it[2].trim_end_matches(".rs").to_owned())
}
