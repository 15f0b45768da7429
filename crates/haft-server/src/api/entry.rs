//! An entry of the registry as it is sent: one JSON object, stored unmodified.

use std::collections::HashSet;
use std::fmt;

use axum::http::StatusCode;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::serve::{FieldProblem, Problem};

/// The member that names an entry.
const NAME: &str = "name";

/// Longest name: it appears in addresses, headers and every list.
const NAME_CHARS_MAX: usize = 128;
/// Largest number of members of an entry. Comparing a million would take minutes.
const MEMBERS_MAX: usize = 256;

/// The members of an entry, each key once, in their order.
#[derive(Debug)]
pub(super) struct Entry(Vec<(String, Box<RawValue>)>);

impl Entry {
    /// The name in the entry, if present.
    pub(super) fn name(&self) -> Result<Option<String>, Problem> {
        let Some((_, name)) = self.0.iter().find(|(key, _)| key == NAME) else { return Ok(None) };
        let name = serde_json::from_str::<String>(name.get()).ok().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| wrong_name("the name is not a string", "send a string"))?;
        check_name(&name)?;
        Ok(Some(name))
    }

    /// The name that it must have.
    pub(super) fn required_name(&self) -> Result<String, Problem> {
        self.name()?.ok_or_else(|| wrong_name("there is no name", "add `\"name\": \"...\"`"))
    }

    /// The entry with its name in it, which must be `name` if it has one.
    pub(super) fn named(mut self, name: &str) -> Result<Box<RawValue>, Problem> {
        if !self.require_name(name)? {
            let value = serde_json::value::to_raw_value(name).map_err(|_| Problem::internal())?;
            self.0.insert(0, (NAME.to_owned(), value));
        }
        self.render()
    }

    /// Returns true if it has a name, which must be `name` then.
    pub(super) fn require_name(&self, name: &str) -> Result<bool, Problem> {
        check_name(name)?;
        match self.name()? {
            Some(own) if own != name => {
                let problem = format!("the entry is named `{own}` and the path names `{name}`");
                Err(wrong_name(problem, "leave the name out, or send the same"))
            }
            own => Ok(own.is_some()),
        }
    }

    /// The entry without its name, for a document where the name stands outside.
    pub(super) fn unnamed(mut self) -> Result<Box<RawValue>, Problem> {
        self.0.retain(|(key, _)| key != NAME);
        self.render()
    }

    fn render(&self) -> Result<Box<RawValue>, Problem> {
        let member = |(key, value): &(String, Box<RawValue>)| {
            format!("{}:{value}", serde_json::Value::from(key.as_str()))
        };
        let members: Vec<String> = self.0.iter().map(member).collect();
        // Made of parts that are JSON.
        RawValue::from_string(format!("{{{}}}", members.join(","))).map_err(|_| Problem::internal())
    }
}

fn check_name(name: &str) -> Result<(), Problem> {
    if name.chars().count() > NAME_CHARS_MAX {
        let remedy = format!("choose a name of at most {NAME_CHARS_MAX} characters");
        return Err(wrong_name("the name is too long", &remedy));
    }
    if name.chars().any(char::is_control) {
        return Err(wrong_name("the name has control characters", "leave them out"));
    }
    Ok(())
}

fn wrong_name(problem: impl Into<String>, remedy: &str) -> Problem {
    let (title, problem) = ("The entry is not valid", problem.into());
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidEntry", title, problem.clone())
        .remedy(remedy)
        .error(FieldProblem { place: NAME.to_owned(), problem, remedy: Some(remedy.to_owned()) })
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
                let mut members: Vec<(String, Box<RawValue>)> = Vec::new();
                let mut keys = HashSet::new();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    if !keys.insert(key.clone()) {
                        return Err(A::Error::custom(format!("the key `{key}` is there twice")));
                    }
                    if members.len() == MEMBERS_MAX {
                        let problem = format!("an entry has at most {MEMBERS_MAX} members");
                        return Err(A::Error::custom(problem));
                    }
                    members.push((key, value));
                }
                Ok(Entry(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(json: &str) -> Entry {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_name_is_put_in_taken_out_and_compared() {
        let raw = entry(r#"{"z": 1.10, "a": 12345678901234567890}"#).named("t").unwrap();
        assert_eq!(raw.get(), r#"{"name":"t","z":1.10,"a":12345678901234567890}"#);
        let raw = entry(r#"{"a": 1, "name": "t"}"#).named("t").unwrap();
        assert_eq!(raw.get(), r#"{"a":1,"name":"t"}"#);
        assert_eq!(entry(r#"{"name":"s","url":"x"}"#).unnamed().unwrap().get(), r#"{"url":"x"}"#);
        let long = format!(r#"{{"name": "{}"}}"#, "t".repeat(NAME_CHARS_MAX + 1));
        let wrong = [r#"{"name": "other"}"#, r#"{"name": 1}"#, r#"{"name": ""}"#, &long];
        for wrong in wrong.into_iter().chain([r#"{"name": "a\u0000b"}"#]) {
            assert_eq!(entry(wrong).named("t").unwrap_err().document().status, 422, "{wrong}");
        }
    }

    #[test]
    fn a_key_that_is_there_twice_is_refused() {
        for wrong in [r#"{"name":"a","name":"b"}"#, r#"{"x":1,"\u0078":2}"#, "[]", "1"] {
            assert!(serde_json::from_str::<Entry>(wrong).is_err(), "{wrong}");
        }
    }
}
