//! The paths that the items of one module name: imports, expressions, types, and what stands in macros.

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Item, ItemMod, ItemUse, Macro, UseTree};

/// One path, from the crate's root.
pub(super) struct Reference {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    /// The name under which a `use` item brings it into the module.
    pub(super) imported_as: Option<String>,
}

/// The paths in `items` of the module at `path` with these child modules. Paths into other crates are left out.
pub(super) fn collect(items: &[&Item], path: &[String], children: &[String]) -> Vec<Reference> {
    let mut collector = Collector { path, children, found: Vec::new() };
    for item in items {
        // A child module is visited by itself.
        if !matches!(item, Item::Mod(_)) {
            collector.visit_item(item);
        }
    }
    collector.found
}

struct Collector<'a> {
    path: &'a [String],
    children: &'a [String],
    found: Vec<Reference>,
}

impl Collector<'_> {
    fn add(&mut self, names: &[String], line: usize, imported_as: Option<String>) {
        if let Some(path) = self.absolute(names) {
            self.found.push(Reference { path, line, imported_as });
        }
    }

    fn absolute(&self, names: &[String]) -> Option<Vec<String>> {
        let (first, rest) = names.split_first()?;
        let mut base = self.path.to_vec();
        let mut rest = rest;
        match first.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => {
                base.pop();
                while let Some((_, after)) = rest.split_first().filter(|(next, _)| *next == "super")
                {
                    base.pop();
                    rest = after;
                }
            }
            name if self.children.iter().any(|child| child == name) => rest = names,
            _ => return None,
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    fn add_use(&mut self, tree: &UseTree, before: &mut Vec<String>) {
        let line = tree.span().start().line;
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add_use(&path.tree, before);
                before.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_use(tree, before);
                }
            }
            UseTree::Name(name) if name.ident == "self" => {
                self.add(before, line, before.last().cloned());
            }
            UseTree::Name(name) => {
                self.add_leaf(before, &name.ident.to_string(), &name.ident.to_string(), line);
            }
            UseTree::Rename(rename) => {
                self.add_leaf(before, &rename.ident.to_string(), &rename.rename.to_string(), line);
            }
            UseTree::Glob(_) => self.add(before, line, None),
        }
    }

    fn add_leaf(&mut self, before: &[String], name: &str, imported_as: &str, line: usize) {
        let names: Vec<String> = before.iter().cloned().chain([name.to_owned()]).collect();
        self.add(&names, line, Some(imported_as.to_owned()));
    }

    /// `crate::a::b` in the tokens of a macro, whose inside is not parsed.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut names: Vec<String> = Vec::new();
        let mut line = 0;
        let mut is_separated = false;
        for token in tokens {
            match &token {
                TokenTree::Ident(ident) if !names.is_empty() && is_separated => {
                    names.push(ident.to_string());
                    is_separated = false;
                    continue;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !names.is_empty() => {
                    is_separated = true;
                    continue;
                }
                _ => {}
            }
            self.add(&std::mem::take(&mut names), line, None);
            is_separated = false;
            match token {
                TokenTree::Ident(ident) if ident == "crate" || ident == "super" => {
                    line = ident.span().start().line;
                    names.push(ident.to_string());
                }
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                _ => {}
            }
        }
        self.add(&names, line, None);
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if item.leading_colon.is_none() {
            self.add_use(&item.tree, &mut Vec::new());
        }
    }

    /// `pub(in crate::a)` and `pub(crate)` name a module without needing it.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    /// A module inside a function body has a scope of its own; none is in use.
    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names: Vec<String> = path.segments.iter().map(|it| it.ident.to_string()).collect();
            if names.len() > 1 {
                self.add(&names, path.span().start().line, None);
            }
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        self.visit_path(&item.path);
        self.add_tokens(item.tokens.clone());
    }
}
