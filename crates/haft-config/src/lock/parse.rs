//! Reads a lock file. Whatever is wrong with it is reported with its line.

use std::collections::BTreeMap;

use serde_json::Map;
use toml_edit::{Document, Item, TableLike, TomlError};

use crate::remedy::Remedy;

use super::{Definition, LOCK_VERSION, Lock, LockProblem, LockedKind, LockedServer, values};

/// Reads the text of a lock file.
pub fn parse(text: &str) -> Result<Lock, LockProblem> {
    // A checkout may have changed the ends of lines. The writer escapes every carriage return of a definition.
    let text = text.replace("\r\n", "\n");
    let reader = Reader { text: &text };
    reader.refuse_conflicts()?;
    let document = Document::parse(text.as_str()).map_err(|error| reader.syntax(&error))?;
    let root = document.as_table();
    reader.check_version(root)?;
    let mut lock = Lock::default();
    for (key, item) in root {
        match key {
            "version" => {}
            "servers" => {
                for (name, item) in reader.table(item, "servers")?.iter() {
                    let path = format!("servers.{name}");
                    lock.servers.insert(name.to_owned(), reader.server(item, &path)?);
                }
            }
            _ => return Err(reader.unknown(item, key)),
        }
    }
    Ok(lock)
}

/// Returns true if a line is one that `git merge` leaves around a conflict.
pub(super) fn is_conflict_marker(line: &str) -> bool {
    ["<<<<<<<", ">>>>>>>", "|||||||"].iter().any(|marker| line.starts_with(marker))
}

struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn refuse_conflicts(&self) -> Result<(), LockProblem> {
        let Some(at) = self.text.lines().position(is_conflict_marker) else { return Ok(()) };
        Err(LockProblem {
            line: u32::try_from(at + 1).unwrap_or(u32::MAX),
            column: 1,
            path: String::new(),
            problem: "the file has the markers of a merge conflict".to_owned(),
            remedy: "resolve the conflict, and keep the definitions that were reviewed".into(),
        })
    }

    fn syntax(&self, error: &TomlError) -> LockProblem {
        let at = error.span().map_or(0, |span| span.start);
        let problem = format!("the lock file is damaged: {}", error.message());
        self.problem(at, "", problem, Remedy::RestoreLock)
    }

    fn check_version(&self, root: &dyn TableLike) -> Result<(), LockProblem> {
        let Some(item) = root.get("version") else {
            return Err(self.problem(
                0,
                "version",
                "the lock file has no `version`",
                Remedy::RestoreLock,
            ));
        };
        match item.as_integer() {
            Some(LOCK_VERSION) => Ok(()),
            Some(version) if version > LOCK_VERSION => {
                let problem = format!(
                    "the lock file has version {version}, and this program reads version {LOCK_VERSION}"
                );
                Err(self.at(
                    item,
                    "version",
                    problem,
                    Remedy::from("use the newer version of Haft that wrote it"),
                ))
            }
            _ => Err(self.at(item, "version", "the `version` is invalid", Remedy::RestoreLock)),
        }
    }

    fn server(&self, item: &Item, path: &str) -> Result<LockedServer, LockProblem> {
        let mut server = LockedServer::default();
        for (key, item) in self.table(item, path)?.iter() {
            let below = format!("{path}.{key}");
            match key {
                "instructions" => {
                    let instructions =
                        self.definition(LockedKind::Instructions, "", item, &below)?;
                    server.instructions = Some(instructions);
                }
                "tools" => server.tools = self.items(LockedKind::Tool, item, &below)?,
                "prompts" => server.prompts = self.items(LockedKind::Prompt, item, &below)?,
                "templates" => {
                    server.templates = self.items(LockedKind::ResourceTemplate, item, &below)?;
                }
                fact => {
                    let text = self.string(item, &below)?.to_owned();
                    if !server.facts.set(fact, text) {
                        return Err(self.unknown(item, &below));
                    }
                }
            }
        }
        Ok(server)
    }

    fn items(
        &self,
        kind: LockedKind,
        item: &Item,
        path: &str,
    ) -> Result<BTreeMap<String, Definition>, LockProblem> {
        let items = self.table(item, path)?;
        let read = |(name, item): (&str, &Item)| {
            let definition = self.definition(kind, name, item, &format!("{path}.{name}"))?;
            Ok((name.to_owned(), definition))
        };
        items.iter().map(read).collect()
    }

    fn definition(
        &self,
        kind: LockedKind,
        name: &str,
        item: &Item,
        path: &str,
    ) -> Result<Definition, LockProblem> {
        let table = self.table(item, path)?;
        let mut fields = Map::new();
        for (field, item) in table.iter().filter(|(field, _)| *field != "hash") {
            let below = format!("{path}.{field}");
            let text = self.string(item, &below)?;
            let value = if values::reads_as_text(field) {
                text.into()
            } else {
                let invalid = |error: String| {
                    self.at(
                        item,
                        &below,
                        format!("the JSON is invalid: {error}"),
                        Remedy::RestoreLock,
                    )
                };
                values::read_json(text).map_err(invalid)?
            };
            fields.insert(field.to_owned(), value);
        }
        let definition = Definition::new(kind, name, fields);
        let Some(hash) = table.get("hash") else {
            return Err(self.at(item, path, "the entry has no `hash`", Remedy::RestoreLock));
        };
        if self.string(hash, path)? != definition.hash() {
            return Err(self.at(
                hash,
                path,
                "the `hash` is not that of the definition: one of them was changed by hand",
                Remedy::RestoreLock,
            ));
        }
        Ok(definition)
    }

    fn table<'i>(&self, item: &'i Item, path: &str) -> Result<&'i dyn TableLike, LockProblem> {
        let wrong = || self.at(item, path, "a table is expected here", Remedy::RestoreLock);
        item.as_table_like().ok_or_else(wrong)
    }

    fn string<'i>(&self, item: &'i Item, path: &str) -> Result<&'i str, LockProblem> {
        item.as_str()
            .ok_or_else(|| self.at(item, path, "a string is expected here", Remedy::RestoreLock))
    }

    fn unknown(&self, item: &Item, path: &str) -> LockProblem {
        self.at(item, path, "a lock file has no such key", Remedy::RestoreLock)
    }

    fn at(
        &self,
        item: &Item,
        path: &str,
        problem: impl Into<String>,
        remedy: Remedy,
    ) -> LockProblem {
        self.problem(item.span().map_or(0, |span| span.start), path, problem, remedy)
    }

    fn problem(
        &self,
        offset: usize,
        path: &str,
        problem: impl Into<String>,
        remedy: Remedy,
    ) -> LockProblem {
        let before = &self.text[..self.text.floor_char_boundary(offset)];
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        LockProblem {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
            path: path.to_owned(),
            problem: problem.into(),
            remedy,
        }
    }
}
