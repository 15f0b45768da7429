//! Conditional changes: `If-Match` and `If-None-Match`, so that a client never overwrites a version it has not seen.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use haft::live::{
    Action, Condition, Edit, EditEffect, EditOutcome, Live, RegistryDocument, RegistryEditError,
    Revision,
};
use haft_text::printable;

use super::edit_problem::edit_problem;
use super::remedy::endpoint;
use crate::serve::{Caller, Problem};

/// Number of attempts of an unconditional change.
const TRIES_MAX: usize = 5;

/// The condition of a change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Precondition {
    matches: Option<Tags>,
    must_be_new: bool,
    /// The caller that makes the change.
    by: Option<Arc<str>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Tags {
    Any,
    These(Vec<String>),
}

/// A tag as the header `ETag` carries it.
pub(super) fn etag(tag: &str) -> HeaderValue {
    // Hexadecimal digits; a store with names of its own may have others, which are then left out.
    HeaderValue::from_str(&format!("\"{tag}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

impl<S: Send + Sync> FromRequestParts<S> for Precondition {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let by = parts.extensions.get::<Caller>().map(|caller| Arc::clone(&caller.name));
        Ok(Self { by, ..Self::of(&parts.headers)? })
    }
}

impl Precondition {
    fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let must_be_new = match tags(headers, &IF_NONE_MATCH)? {
            None => false,
            Some(Tags::Any) => true,
            Some(Tags::These(_)) => {
                let detail = "`If-None-Match` of a change can only be `*`";
                return Err(Problem::bad_request(detail)
                    .remedy("send `If-None-Match: *` to create only, or `If-Match` to replace"));
            }
        };
        Ok(Self { matches: tags(headers, &IF_MATCH)?, must_be_new, by: None })
    }

    /// Makes a change of one entry if the condition holds.
    pub(super) async fn edit(&self, live: &Live, mut edit: Edit) -> Result<EditOutcome, Problem> {
        if self.must_be_new {
            edit.action = match edit.action {
                Action::Put(entry) => Action::Add(entry),
                other => other,
            };
        }
        let mut tries = 0;
        loop {
            tries += 1;
            edit.condition = self.condition(live, &edit).await?;
            let error = match live.edit(edit.clone()).await {
                Ok(edited) => {
                    self.note(&edit, &edited);
                    return Ok(edited);
                }
                Err(error) => error,
            };
            let is_any = self.matches == Some(Tags::Any);
            match &error {
                RegistryEditError::Changed { .. } if is_any && tries < TRIES_MAX => {}
                RegistryEditError::Exists { .. } if self.must_be_new => return Err(lost(&error)),
                RegistryEditError::Missing { .. } if self.matches.is_some() => {
                    return Err(lost(&error));
                }
                _ => return Err(edit_problem(&error)),
            }
        }
    }

    /// Changes are as worth knowing as calls.
    fn note(&self, edit: &Edit, edited: &EditOutcome) {
        let what = match (&edit.action, edited.what) {
            (Action::SetDisabled(true), _) => "disabled",
            (Action::SetDisabled(false), _) => "enabled",
            (_, EditEffect::Added) => "added",
            (_, EditEffect::Replaced) => "replaced",
            (_, EditEffect::Removed) => "removed",
        };
        let kind = match edit.document {
            RegistryDocument::Tools => "tool",
            RegistryDocument::Servers => "server",
        };
        let by = self.by.as_deref().unwrap_or_default();
        tracing::info!(by, "{what} {kind} `{}`", printable(&edit.name));
    }

    async fn condition(&self, live: &Live, edit: &Edit) -> Result<Condition, Problem> {
        let Some(tags) = &self.matches else { return Ok(Condition::Always) };
        if let Action::Add(_) = edit.action {
            // What is not there yet has no tag: the whole registry stands for it.
            return Ok(match tags {
                Tags::Any => Condition::Always,
                Tags::These(tags) => {
                    let now = live.status().revision;
                    let now = now.filter(|now| tags.iter().any(|tag| tag == now.as_str()));
                    let asked = tags.first().map(Revision::new);
                    now.or(asked).map_or(Condition::Always, Condition::RegistryIs)
                }
            });
        }
        let entry = live.entry(edit.document, &edit.name).await;
        let now = entry.map_err(|error| edit_problem(&error))?.map(|(_, tag)| tag);
        match (tags, now) {
            (Tags::Any, Some(now)) => Ok(Condition::EntryIs(now)),
            (Tags::These(tags), Some(now)) if tags.contains(&now) => Ok(Condition::EntryIs(now)),
            (Tags::These(_), Some(_)) => {
                Err(edit_problem(&RegistryEditError::Changed { name: edit.name.clone() }))
            }
            (Tags::Any | Tags::These(_), None) => {
                Err(lost(&RegistryEditError::Missing { name: edit.name.clone(), nearest: None }))
            }
        }
    }
}

/// 412 for errors that otherwise have another status.
fn lost(error: &RegistryEditError) -> Problem {
    Problem::precondition_failed(error.to_string()).remedy(endpoint(&error.remedy()))
}

/// The tags of a header. A weak one is never the same as ours, which are all strong.
fn tags(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Tags>, Problem> {
    let mut found = Vec::new();
    for value in headers.get_all(name) {
        let text = value.to_str().unwrap_or_default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if part == "*" {
                return Ok(Some(Tags::Any));
            }
            let strong = part.strip_prefix("W/").unwrap_or(part);
            let tag = strong.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
            let Some(tag) = tag.filter(|tag| !tag.contains('"')) else {
                return Err(Problem::bad_request(format!(
                    "`{name}` holds something else than tags"
                ))
                .remedy("send what `ETag` said, with its quotes, or `*`"));
            };
            found.push(if part.starts_with("W/") { part.to_owned() } else { tag.to_owned() });
        }
    }
    Ok((headers.contains_key(name)).then_some(Tags::These(found)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &[(HeaderName, &'static str)]) -> Result<Precondition, Problem> {
        let pairs =
            headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        Precondition::of(&pairs.collect())
    }

    #[test]
    fn headers_are_read_by_the_letter() {
        let these = |tags: &[&str]| {
            let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
            Precondition { matches: Some(Tags::These(tags)), must_be_new: false, by: None }
        };
        assert_eq!(of(&[]).unwrap(), Precondition::default());
        assert_eq!(of(&[(IF_MATCH, "\"a\", W/\"b\"")]).unwrap(), these(&["a", "W/\"b\""]));
        assert_eq!(of(&[(IF_MATCH, "")]).unwrap(), these(&[]));
        assert_eq!(of(&[(IF_MATCH, "*")]).unwrap().matches, Some(Tags::Any));
        assert!(of(&[(IF_NONE_MATCH, "*")]).unwrap().must_be_new);
        for (name, value) in
            [(IF_MATCH, "a"), (IF_MATCH, "\"a"), (IF_MATCH, "\"a\"b\""), (IF_NONE_MATCH, "\"a\"")]
        {
            assert_eq!(of(&[(name, value)]).unwrap_err().document().status, 400, "{value}");
        }
    }
}
