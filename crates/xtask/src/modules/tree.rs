//! The modules of one crate, read from its files.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use syn::{Attribute, Item, ItemMod, Meta};

use super::references::{self, Reference};

/// Names from the crate's root to a module. Empty for the root.
pub(super) type ModulePath = Vec<String>;

/// One module: its file and the paths that it names.
pub(super) struct Module {
    pub(super) file: PathBuf,
    pub(super) references: Vec<Reference>,
}

/// The modules of a crate, without those compiled for tests only.
pub(super) struct Tree {
    pub(super) modules: HashMap<ModulePath, Module>,
}

impl Tree {
    pub(super) fn read(entry: &Path) -> Result<Self> {
        let mut tree = Self { modules: HashMap::new() };
        let folder = entry.parent().unwrap_or(Path::new("")).to_path_buf();
        tree.read_file(entry, &Vec::new(), &folder)?;
        Ok(tree)
    }

    /// The module that `path` leads to: as far as its names are modules, through re-exports.
    pub(super) fn resolve(&self, path: &[String]) -> ModulePath {
        let mut at = Vec::new();
        let mut rest = path.to_vec();
        // A re-export of a re-export is followed; a loop of them does not compile.
        for _ in 0..32 {
            while let Some(name) = rest.first() {
                let child: ModulePath = at.iter().chain([name]).cloned().collect();
                if !self.modules.contains_key(&child) {
                    break;
                }
                at = child;
                rest.remove(0);
            }
            let Some(source) = rest.first().and_then(|name| self.re_export(&at, name)) else {
                break;
            };
            rest = source;
            at = Vec::new();
        }
        at
    }

    fn re_export(&self, module: &ModulePath, name: &str) -> Option<Vec<String>> {
        let module = self.modules.get(module)?;
        let found = module.references.iter().find(|it| it.imported_as.as_deref() == Some(name))?;
        Some(found.path.clone())
    }

    /// `folder` is where the files of the module's children lie.
    fn read_file(&mut self, file: &Path, path: &ModulePath, folder: &Path) -> Result<()> {
        let text = fs::read_to_string(file)
            .with_context(|| format!("cannot read `{}`", file.display()))?;
        let parsed =
            syn::parse_file(&text).with_context(|| format!("cannot parse `{}`", file.display()))?;
        self.read_items(file, path, folder, &parsed.items)
    }

    fn read_items(
        &mut self,
        file: &Path,
        path: &ModulePath,
        folder: &Path,
        items: &[Item],
    ) -> Result<()> {
        let items: Vec<&Item> =
            items.iter().filter(|item| !is_for_tests(attributes(item))).collect();
        let children: Vec<&ItemMod> = items
            .iter()
            .filter_map(|item| if let Item::Mod(child) = item { Some(child) } else { None })
            .collect();
        let names: Vec<String> = children.iter().map(|child| child.ident.to_string()).collect();
        let references = references::collect(&items, path, &names);
        self.modules.insert(path.clone(), Module { file: file.to_path_buf(), references });
        for child in children {
            let name = child.ident.to_string();
            let child_path: ModulePath = path.iter().chain([&name]).cloned().collect();
            let inner = folder.join(&name);
            if let Some((_, items)) = &child.content {
                self.read_items(file, &child_path, &inner, items)?;
                continue;
            }
            let files = [folder.join(format!("{name}.rs")), inner.join("mod.rs")];
            let Some(found) = files.iter().find(|file| file.exists()) else {
                bail!("no file for module `{}` of `{}`", child_path.join("::"), file.display());
            };
            self.read_file(found, &child_path, &inner)?;
        }
        Ok(())
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}
