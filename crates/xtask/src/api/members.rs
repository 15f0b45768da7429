//! Public methods, fields, variants and implemented traits of items.

use std::collections::HashMap;

use syn::spanned::Spanned;
use syn::{Field, Fields, ImplItem, Item, Signature, TraitItem, Type, Visibility};

use super::krate::{Krate, Names, Target, attributes, is_left_out};

/// The members that `impl` blocks add to types, by where the type is defined.
pub(super) struct Members {
    methods: HashMap<Names, Vec<String>>,
    traits: HashMap<Names, Vec<String>>,
}

impl Members {
    pub(super) fn of(krate: &Krate) -> Self {
        let mut members = Self { methods: HashMap::new(), traits: HashMap::new() };
        // In the order of the modules, so that a listing does not depend on the map.
        let mut modules: Vec<_> = krate.modules.iter().collect();
        modules.sort_by_key(|(path, _)| *path);
        for (module, items) in modules {
            for item in items {
                let Item::Impl(block) = item else { continue };
                let Type::Path(path) = &*block.self_ty else { continue };
                let path: Names =
                    path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
                let Target::Item(target, _) = krate.resolve(module, &path) else { continue };
                if let Some((path, _)) = &block.trait_ {
                    let line = format!("impl {}", source(path));
                    members.traits.entry(target).or_default().push(line);
                } else {
                    let methods = block.items.iter().filter_map(method);
                    members.methods.entry(target).or_default().extend(methods);
                }
            }
        }
        members.traits.values_mut().for_each(|lines| lines.sort());
        members
    }

    /// A line for each public member of an item that is defined at `target`.
    pub(super) fn of_item(&self, target: &Names, item: &Item) -> Vec<String> {
        let mut lines: Vec<String> = match item {
            Item::Struct(it) => it.fields.iter().filter_map(field).collect(),
            Item::Enum(it) => {
                it.variants.iter().map(|it| it.ident.to_string() + &fields(&it.fields)).collect()
            }
            Item::Trait(it) => it.items.iter().filter_map(trait_item).collect(),
            _ => Vec::new(),
        };
        lines.extend(self.methods.get(target).into_iter().flatten().cloned());
        lines.extend(self.traits.get(target).into_iter().flatten().cloned());
        lines
    }
}

/// The traits that an item derives, as `: Debug, Clone`.
pub(super) fn derived(item: &Item) -> String {
    let mut derived = Vec::new();
    for attribute in attributes(item) {
        if attribute.path().is_ident("derive")
            && let syn::Meta::List(list) = &attribute.meta
        {
            derived
                .push(one_line(&list.tokens.to_string()).replace(" :: ", "::").replace(" ,", ","));
        }
    }
    if derived.is_empty() { String::new() } else { format!(": {}", derived.join(", ")) }
}

/// A function's generics, arguments and result.
pub(super) fn signature(signature: &Signature) -> String {
    let text = source(signature);
    let name = format!("fn {}", signature.ident);
    text.split_once(&name).map_or(text.clone(), |(_, rest)| rest.to_owned())
}

fn method(item: &ImplItem) -> Option<String> {
    match item {
        ImplItem::Fn(it) if is_public(&it.vis) && !is_left_out(&it.attrs) => {
            Some(format!("pub {}", source(&it.sig)))
        }
        ImplItem::Const(it) if is_public(&it.vis) && !is_left_out(&it.attrs) => {
            Some(format!("pub const {}: {}", it.ident, source(&it.ty)))
        }
        _ => None,
    }
}

fn trait_item(item: &TraitItem) -> Option<String> {
    match item {
        TraitItem::Fn(it) => {
            let provided = if it.default.is_some() { " { .. }" } else { "" };
            Some(source(&it.sig) + provided)
        }
        TraitItem::Const(it) => Some(format!("const {}: {}", it.ident, source(&it.ty))),
        TraitItem::Type(it) => Some(format!("type {}", it.ident)),
        _ => None,
    }
}

fn field(field: &Field) -> Option<String> {
    is_public(&field.vis).then(|| match &field.ident {
        Some(name) => format!("pub {name}: {}", source(&field.ty)),
        None => format!("pub {}", source(&field.ty)),
    })
}

fn fields(fields: &Fields) -> String {
    let shown = |field: &Field| match &field.ident {
        Some(name) => format!("{name}: {}", source(&field.ty)),
        None => source(&field.ty),
    };
    let all: Vec<String> = fields.iter().map(shown).collect();
    match fields {
        Fields::Unit => String::new(),
        Fields::Named(_) => format!(" {{ {} }}", all.join(", ")),
        Fields::Unnamed(_) => format!("({})", all.join(", ")),
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The source of a part of an item on one line.
pub(super) fn source(part: &impl Spanned) -> String {
    one_line(&part.span().source_text().unwrap_or_default())
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace("( ", "(").replace(", )", ")").replace(",)", ")").replace(" )", ")")
}
