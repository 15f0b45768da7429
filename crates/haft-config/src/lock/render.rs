//! Writes a lock file. Comments, order and everything that did not change stay byte for byte.

use std::collections::BTreeMap;

use toml_edit::{DocumentMut, Item, Table, Value, value};

use crate::remedy::Remedy;

use super::{Definition, LOCK_VERSION, Lock, LockProblem, LockedServer, parse, values};

const HEADER: &str = "\
# The approved definitions of the MCP servers. `haft lock` writes this file; review its changes like code.
# `haft lock diff` explains what differs, and `haft lock approve SERVER[/TOOL]` accepts it.
";

/// Changes the text of a lock file to hold `lock`. An empty text gives a new file.
pub fn render(text: &str, lock: &Lock) -> Result<String, LockProblem> {
    let is_new = text.trim().is_empty();
    if !is_new {
        parse(text)?;
    }
    let mut document: DocumentMut = text.parse().map_err(|_| unwritable())?;
    if is_new {
        document.insert("version", value(LOCK_VERSION));
        document.decor_mut().set_prefix(HEADER);
    }
    let servers = section(document.as_table_mut(), "servers").ok_or_else(unwritable)?;
    retain(servers, |name| lock.servers.contains_key(name));
    for (name, server) in &lock.servers {
        if !servers.contains_key(name) {
            let mut table = Table::new();
            table.decor_mut().set_prefix("\n");
            servers.insert_formatted(&values::key(name), Item::Table(table));
        }
        let table = servers.get_mut(name).and_then(Item::as_table_mut).ok_or_else(unwritable)?;
        put_server(table, server).ok_or_else(unwritable)?;
    }
    servers.sort_values();
    let written = document.to_string();
    // Nothing is written that would not be read as what was approved.
    if parse(&written)? == *lock { Ok(written) } else { Err(unwritable()) }
}

fn unwritable() -> LockProblem {
    LockProblem {
        line: 1,
        column: 1,
        path: String::new(),
        problem: "the layout of the lock file cannot be kept".to_owned(),
        remedy: Remedy::RestoreLock,
    }
}

fn put_server(table: &mut Table, server: &LockedServer) -> Option<()> {
    for (key, fact) in server.facts.entries() {
        match fact {
            Some(fact) if table.get(key).and_then(Item::as_str) == Some(fact) => {}
            Some(fact) => put_value(table, key, values::text(fact)),
            None => drop(table.remove(key)),
        }
    }
    match &server.instructions {
        Some(instructions) => put_definition(table, "instructions", instructions)?,
        None => drop(table.remove("instructions")),
    }
    let LockedServer { facts: _, instructions: _, tools, prompts, templates } = server;
    put_items(table, "tools", tools)?;
    put_items(table, "prompts", prompts)?;
    put_items(table, "templates", templates)
}

fn put_items(server: &mut Table, key: &str, items: &BTreeMap<String, Definition>) -> Option<()> {
    if items.is_empty() {
        server.remove(key);
        return Some(());
    }
    let table = section(server, key)?;
    retain(table, |name| items.contains_key(name));
    for (name, definition) in items {
        put_definition(table, name, definition)?;
    }
    table.sort_values();
    Some(())
}

/// Puts a definition in place. An unchanged one is not touched.
fn put_definition(parent: &mut Table, name: &str, definition: &Definition) -> Option<()> {
    if !parent.contains_key(name) {
        let mut table = Table::new();
        table.decor_mut().set_prefix("\n");
        parent.insert_formatted(&values::key(name), Item::Table(table));
    }
    let table = parent.get_mut(name)?.as_table_mut()?;
    if table.get("hash").and_then(Item::as_str) == Some(definition.hash()) {
        return Some(());
    }
    let fields = definition.fields();
    retain(table, |key| key == "hash" || fields.contains_key(key));
    put_value(table, "hash", definition.hash().into());
    for (field, value) in fields {
        let new = match value.as_str().filter(|_| values::is_text(field, value)) {
            Some(text) => values::text(text),
            None => values::json(value),
        };
        let is_same = table.get(field).and_then(Item::as_str) == new.as_str();
        if !is_same {
            put_value(table, field, new);
        }
    }
    Some(())
}

/// Replaces a value and keeps the comments around it.
fn put_value(table: &mut Table, key: &str, mut new: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        None => drop(table.insert_formatted(&values::key(key), Item::Value(new))),
    }
}

/// A table that has no header of its own unless the file gives it one.
fn section<'t>(parent: &'t mut Table, key: &str) -> Option<&'t mut Table> {
    let make = || {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    };
    parent.entry(key).or_insert_with(make).as_table_mut()
}

fn retain(table: &mut Table, is_kept: impl Fn(&str) -> bool) {
    let gone: Vec<String> =
        table.iter().map(|(key, _)| key.to_owned()).filter(|key| !is_kept(key)).collect();
    for key in gone {
        table.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::LockedKind;
    use serde_json::json;

    fn tool(name: &str, description: &str) -> Definition {
        let fields = json!({
            "description": description,
            "inputSchema": {"type": "object", "properties": {"b": {"type": "string"}, "a": {}},
                "description": "a schema long enough for several lines"},
        });
        Definition::new(LockedKind::Tool, name, fields.as_object().cloned().unwrap())
    }

    fn lock(tools: &[(&str, &str)]) -> Lock {
        let tools = tools.iter().map(|(name, text)| ((*name).to_owned(), tool(name, text)));
        let server = LockedServer { tools: tools.collect(), ..LockedServer::default() };
        Lock { servers: [("s".to_owned(), server)].into() }
    }

    #[test]
    fn comments_and_order_survive_a_change() {
        let first = render("", &lock(&[("b", "two"), ("d", "four")])).unwrap();
        let swapped = {
            let (head, tail) = first.split_at(first.find("\n[servers.s.tools.b]").unwrap());
            let (b, d) = tail.split_at(tail.find("\n[servers.s.tools.d]").unwrap());
            format!("{head}{d}\n# Reviewed by Ada.{b}# The end.\n")
        };
        let changed = lock(&[("b", "two"), ("c", "three"), ("d", "4")]);
        let text = render(&swapped, &changed).unwrap();
        let order: Vec<usize> =
            ["tools.d]", "# Reviewed by Ada.", "tools.b]", "tools.c]", "# The end."]
                .map(|it| text.find(it).unwrap_or_else(|| panic!("{it} in {text}")))
                .into();
        assert!(order.is_sorted(), "{text}");
        assert_eq!(render(&text, &changed).unwrap(), text);
    }

    #[test]
    fn hostile_texts_are_read_back_and_visible() {
        let texts = [
            "<<<<<<< HEAD\n=======\n>>>>>>> x",
            "a\u{202e}b\u{200b}",
            "'''\"\"\"\\",
            "\r\n\t\u{0}\u{7f}",
            "# not a comment",
            "",
            "\n",
            "[servers.evil]\nhash = 'x'",
        ];
        for text in texts {
            let lock = lock(&[("a\u{202e}\n.]", text), ("", text)]);
            let written = render("", &lock).unwrap();
            assert!(!written.contains('\u{202e}') && !written.contains('\u{200b}'), "{written}");
            assert_eq!(parse(&written).unwrap(), lock);
            assert_eq!(parse(&written.replace('\n', "\r\n")).unwrap(), lock);
        }
    }
}
