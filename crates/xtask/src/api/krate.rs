//! The items of one crate by module, and what a path in a module means.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use syn::{Attribute, Item, Meta, UseTree};

/// Names from the crate's root to a module or an item. Empty for the root.
pub(super) type Names = Vec<String>;

pub(super) struct Krate {
    pub(super) modules: HashMap<Names, Vec<Item>>,
}

/// One name that a `use` item brings into a module.
pub(super) struct Import {
    pub(super) path: Names,
    /// Nothing for `*`.
    pub(super) name: Option<String>,
}

/// The target of a path.
pub(super) enum Target<'a> {
    Module(Names),
    Item(Names, &'a Item),
    /// A path into another crate.
    External(String),
}

impl Krate {
    pub(super) fn read(entry: &Path) -> Result<Self> {
        let mut krate = Self { modules: HashMap::new() };
        krate.read_file(entry, &[], entry.parent().unwrap_or(Path::new("")))?;
        Ok(krate)
    }

    fn read_file(&mut self, file: &Path, path: &[String], folder: &Path) -> Result<()> {
        let text = fs::read_to_string(file)
            .with_context(|| format!("cannot read `{}`", file.display()))?;
        let parsed =
            syn::parse_file(&text).with_context(|| format!("cannot parse `{}`", file.display()))?;
        self.read_items(parsed.items, path, folder)
    }

    fn read_items(&mut self, items: Vec<Item>, path: &[String], folder: &Path) -> Result<()> {
        let items: Vec<Item> =
            items.into_iter().filter(|item| !is_left_out(attributes(item))).collect();
        for item in &items {
            let Item::Mod(child) = item else { continue };
            let name = child.ident.to_string();
            let inner = folder.join(&name);
            let child_path: Names = path.iter().chain([&name]).cloned().collect();
            if let Some((_, items)) = &child.content {
                self.read_items(items.clone(), &child_path, &inner)?;
                continue;
            }
            let files = [folder.join(format!("{name}.rs")), inner.join("mod.rs")];
            let Some(found) = files.iter().find(|file| file.exists()) else {
                bail!("no file for module `{}`", child_path.join("::"));
            };
            self.read_file(found, &child_path, &inner)?;
        }
        self.modules.insert(path.to_vec(), items);
        Ok(())
    }

    /// The target of `path`, which is written in `module`.
    pub(super) fn resolve(&self, module: &[String], path: &[String]) -> Target<'_> {
        // A loop of re-exports does not compile; the depth is a guard against our own mistakes.
        self.resolve_within(module, path, 32).unwrap_or_else(|| Target::External(path.join("::")))
    }

    fn resolve_within(
        &self,
        module: &[String],
        path: &[String],
        depth: usize,
    ) -> Option<Target<'_>> {
        let depth = depth.checked_sub(1)?;
        let mut at = module.to_vec();
        let mut rest = path;
        while let [first, after @ ..] = rest {
            match first.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => {
                    at.pop();
                }
                _ => break,
            }
            rest = after;
        }
        loop {
            let [first, after @ ..] = rest else { return Some(Target::Module(at)) };
            let child: Names = at.iter().chain([first]).cloned().collect();
            if self.modules.contains_key(&child) {
                (at, rest) = (child, after);
                continue;
            }
            return self.in_module(&at, first, after, depth);
        }
    }

    /// The target of a name that is not a child module: an item or an import.
    fn in_module(
        &self,
        module: &[String],
        name: &str,
        after: &[String],
        depth: usize,
    ) -> Option<Target<'_>> {
        let items = self.modules.get(module)?;
        if let Some(item) = items.iter().find(|item| name_of(item).as_deref() == Some(name)) {
            let path = module.iter().cloned().chain([name.to_owned()]).collect();
            return Some(Target::Item(path, item));
        }
        for import in items.iter().flat_map(imports) {
            let mut path = import.path.clone();
            match &import.name {
                Some(imported) if imported == name => {}
                Some(_) => continue,
                None => path.push(name.to_owned()),
            }
            path.extend_from_slice(after);
            // `use name;` of another crate would lead to itself.
            if path.first().is_some_and(|first| first == name) && path.len() == after.len() + 1 {
                return Some(Target::External(path.join("::")));
            }
            match self.resolve_within(module, &path, depth) {
                None if import.name.is_none() => {}
                None => return Some(Target::External(path.join("::"))),
                found => return found,
            }
        }
        None
    }
}

/// The names that an item imports; none unless it is a `use` item.
pub(super) fn imports(item: &Item) -> Vec<Import> {
    let mut found = Vec::new();
    if let Item::Use(item) = item {
        collect(&item.tree, &mut Vec::new(), &mut found);
    }
    found
}

fn collect(tree: &UseTree, path: &mut Names, found: &mut Vec<Import>) {
    match tree {
        UseTree::Path(inner) => {
            path.push(inner.ident.to_string());
            collect(&inner.tree, path, found);
            path.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            found.push(Import { path: path.clone(), name: path.last().cloned() });
        }
        UseTree::Name(name) => {
            let path = path.iter().cloned().chain([name.ident.to_string()]).collect();
            found.push(Import { path, name: Some(name.ident.to_string()) });
        }
        UseTree::Rename(rename) => {
            let mut path = path.clone();
            if rename.ident != "self" {
                path.push(rename.ident.to_string());
            }
            found.push(Import { path, name: Some(rename.rename.to_string()) });
        }
        UseTree::Glob(_) => found.push(Import { path: path.clone(), name: None }),
        UseTree::Group(group) => group.items.iter().for_each(|tree| collect(tree, path, found)),
    }
}

/// The name of an item that has one; modules are looked up by their path.
pub(super) fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(it) => &it.ident,
        Item::Enum(it) => &it.ident,
        Item::Fn(it) => &it.sig.ident,
        Item::Static(it) => &it.ident,
        Item::Struct(it) => &it.ident,
        Item::Trait(it) => &it.ident,
        Item::Type(it) => &it.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

/// Returns true for an item that is for tests, or hidden from the documentation.
pub(super) fn is_left_out(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => {
            let tokens = list.tokens.to_string();
            (list.path.is_ident("cfg") && tokens == "test")
                || (list.path.is_ident("doc") && tokens == "hidden")
        }
        _ => false,
    })
}
