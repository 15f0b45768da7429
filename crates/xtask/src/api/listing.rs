//! The public items of a crate, in the order of their paths.

use std::collections::{BTreeMap, HashMap, VecDeque};

use syn::{Item, Visibility};

use super::krate::{Import, Krate, Names, Target, attributes, imports, is_left_out, name_of};
use super::members::{Members, derived, signature, source};

/// One item: its line, and a line for each of its members.
struct Entry {
    line: String,
    members: Vec<String>,
}

/// The listing of one crate.
pub(super) struct Listing {
    entries: BTreeMap<String, Entry>,
}

impl Listing {
    pub(super) fn of(krate: &Krate, name: &str) -> Self {
        let members = Members::of(krate);
        let mut walk = Walk {
            krate,
            members: &members,
            listed: HashMap::new(),
            open: VecDeque::new(),
            entries: BTreeMap::new(),
        };
        walk.open.push_back((Vec::new(), name.to_owned()));
        // Breadth first, so that an item is listed under its shortest path.
        while let Some((module, path)) = walk.open.pop_front() {
            walk.module(&module, &path);
        }
        Self { entries: walk.entries }
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for Entry { line, members } in self.entries.values() {
            text.push_str(line);
            text.push('\n');
            for member in members {
                text.push_str("    ");
                text.push_str(member);
                text.push('\n');
            }
        }
        text
    }

    /// The number of modules, types, traits, functions, constants and re-exports.
    pub(super) fn items(&self) -> usize {
        self.entries.len()
    }

    /// The number of public methods, fields and variants.
    pub(super) fn members(&self) -> usize {
        let is_member = |member: &&String| !member.starts_with("impl ");
        self.entries.values().map(|entry| entry.members.iter().filter(is_member).count()).sum()
    }
}

struct Walk<'a> {
    krate: &'a Krate,
    members: &'a Members,
    /// Where items are listed, by where they are defined.
    listed: HashMap<Names, String>,
    open: VecDeque<(Names, String)>,
    entries: BTreeMap<String, Entry>,
}

impl Walk<'_> {
    fn module(&mut self, module: &[String], path: &str) {
        let Some(items) = self.krate.modules.get(module) else { return };
        for item in items {
            if !is_public(item) || is_left_out(attributes(item)) {
                continue;
            }
            if let Item::Mod(child) = item {
                let name = child.ident.to_string();
                let target = module.iter().cloned().chain([name.clone()]).collect();
                self.list_module(target, format!("{path}::{name}"));
            } else if let Some(name) = name_of(item) {
                let target = module.iter().cloned().chain([name.clone()]).collect();
                self.list_item(&target, item, format!("{path}::{name}"));
            }
            for import in imports(item) {
                self.list_import(module, path, &import);
            }
        }
    }

    fn list_import(&mut self, module: &[String], path: &str, import: &Import) {
        let target = self.krate.resolve(module, &import.path);
        match (target, &import.name) {
            (Target::Module(target), None) => self.open.push_back((target, path.to_owned())),
            (Target::Module(target), Some(name)) => {
                self.list_module(target, format!("{path}::{name}"));
            }
            (Target::Item(target, item), Some(name)) => {
                self.list_item(&target, item, format!("{path}::{name}"));
            }
            (Target::Item(..), None) => {}
            (Target::External(target), name) => {
                let name = name.as_deref().unwrap_or("*");
                self.insert(format!("{path}::{name}"), "use", &format!(" = {target}"), Vec::new());
            }
        }
    }

    fn list_module(&mut self, target: Names, path: String) {
        self.insert(path.clone(), "mod", "", Vec::new());
        self.open.push_back((target, path));
    }

    fn list_item(&mut self, target: &Names, item: &Item, path: String) {
        if let Some(first) = self.listed.get(target) {
            let first = format!(" = {first}");
            self.insert(path, "use", &first, Vec::new());
            return;
        }
        self.listed.insert(target.clone(), path.clone());
        let derived = derived(item);
        let (kind, rest) = match item {
            Item::Const(it) => ("const", format!(": {}", source(&it.ty))),
            Item::Enum(it) => ("enum", source(&it.generics) + &derived),
            Item::Fn(it) => ("fn", signature(&it.sig)),
            Item::Static(it) => ("static", format!(": {}", source(&it.ty))),
            Item::Struct(it) => ("struct", source(&it.generics) + &derived),
            Item::Trait(it) => ("trait", source(&it.generics)),
            Item::Type(it) => ("type", format!("{} = {}", source(&it.generics), source(&it.ty))),
            _ => return,
        };
        let members = self.members.of_item(target, item);
        self.insert(path, kind, &rest, members);
    }

    fn insert(&mut self, path: String, kind: &str, rest: &str, members: Vec<String>) {
        let line = format!("{kind} {path}{rest}");
        self.entries.entry(path).or_insert(Entry { line, members });
    }
}

fn is_public(item: &Item) -> bool {
    let visibility = match item {
        Item::Const(it) => &it.vis,
        Item::Enum(it) => &it.vis,
        Item::Fn(it) => &it.vis,
        Item::Mod(it) => &it.vis,
        Item::Static(it) => &it.vis,
        Item::Struct(it) => &it.vis,
        Item::Trait(it) => &it.vis,
        Item::Type(it) => &it.vis,
        Item::Use(it) => &it.vis,
        _ => return false,
    };
    matches!(visibility, Visibility::Public(_))
}
