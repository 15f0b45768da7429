//! `If-Match` and `If-None-Match`: a change only where the entry is what the caller thinks it is.

use axum::http::HeaderMap;
use axum::http::header::{ETAG, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use haft::live::{Condition, Document, Live};

use crate::serve::Problem;

/// What a caller wants an entry to be before it is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Whatever it is.
    Anything,
    /// Not there.
    Absent,
    /// There.
    Present,
    /// One of these states.
    OneOf(Vec<String>),
}

impl Wanted {
    /// Reads the two headers.
    pub(super) fn read(headers: &HeaderMap) -> Result<Self, Problem> {
        let matching = tags(headers, &IF_MATCH)?;
        match (matching, tags(headers, &IF_NONE_MATCH)?) {
            (None, None) => Ok(Self::Anything),
            (Some(Tags::Any), None) => Ok(Self::Present),
            (Some(Tags::These(tags)), None) => Ok(Self::OneOf(tags)),
            (None, Some(Tags::Any)) => Ok(Self::Absent),
            (None, Some(Tags::These(_))) => {
                Err(Problem::bad_request("a change takes only `If-None-Match: *`")
                    .remedy("use `If-Match` with the tag that you read"))
            }
            (Some(_), Some(_)) => {
                Err(Problem::bad_request("`If-Match` and `If-None-Match` contradict each other")
                    .remedy("send one of them"))
            }
        }
    }

    /// The same as the registry understands it. `Absent` has no condition: the action says it.
    pub(super) async fn condition(
        self,
        live: &Live,
        document: Document,
        name: &str,
    ) -> Result<Condition, Problem> {
        let wanted = match self {
            Self::Anything | Self::Absent => return Ok(Condition::Always),
            Self::OneOf(tags) => Some(tags),
            Self::Present => None,
        };
        let entry = live.entry(document, name).await?;
        match entry {
            Some((_, tag)) if wanted.is_none_or(|tags| tags.contains(&tag)) => {
                Ok(Condition::EntryIs(tag))
            }
            Some(_) => {
                Err(Problem::precondition_failed(format!("`{name}` was changed in the meantime"))
                    .remedy("read it again and decide anew"))
            }
            None => Err(Problem::precondition_failed(format!("`{name}` is not in the registry"))
                .remedy("read what there is and decide anew")),
        }
    }
}

/// The header that names what an entry says now.
pub(super) fn etag(tag: &str) -> Option<(HeaderName, HeaderValue)> {
    HeaderValue::from_str(&format!("\"{tag}\"")).ok().map(|value| (ETAG, value))
}

enum Tags {
    Any,
    These(Vec<String>),
}

fn tags(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Tags>, Problem> {
    let mut found = Vec::new();
    let mut is_any = false;
    for value in headers.get_all(name) {
        let unclear = || {
            Problem::bad_request(format!("`{name}` is not a list of tags in quotes"))
                .remedy("send the `ETag` as it was answered, with its quotes")
        };
        let text = value.to_str().map_err(|_| unclear())?;
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if part == "*" {
                is_any = true;
                continue;
            }
            // A weak tag never names a state exactly, so it matches none.
            let tag = part.strip_prefix("W/").map_or(Some(part), |_| None);
            let quoted = part.trim_start_matches("W/");
            let inner = quoted.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
            let inner = inner.filter(|it| !it.contains('"')).ok_or_else(unclear)?;
            found.push(tag.map_or_else(String::new, |_| inner.to_owned()));
        }
    }
    Ok(match (is_any, found.is_empty()) {
        (false, true) => None,
        (true, true) => Some(Tags::Any),
        (_, false) => Some(Tags::These(found)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[(HeaderName, &'static str)]) -> Result<Wanted, u16> {
        let value = |(name, value): &(HeaderName, &'static str)| {
            (name.clone(), HeaderValue::from_static(value))
        };
        let headers = headers.iter().map(value).collect();
        Wanted::read(&headers).map_err(|problem| problem.document().status)
    }

    #[test]
    fn headers_say_what_is_wanted() {
        let one = |tag: &str| Ok(Wanted::OneOf(vec![tag.to_owned()]));
        assert_eq!(read(&[]), Ok(Wanted::Anything));
        assert_eq!(read(&[(IF_MATCH, "*")]), Ok(Wanted::Present));
        assert_eq!(read(&[(IF_NONE_MATCH, "*")]), Ok(Wanted::Absent));
        assert_eq!(read(&[(IF_MATCH, "\"a\"")]), one("a"));
        assert_eq!(read(&[(IF_MATCH, "W/\"a\"")]), one(""));
        let two = Wanted::OneOf(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(read(&[(IF_MATCH, "\"a\", \"b\"")]), Ok(two));
        for wrong in ["a", "\"a", "\"a\"b\""] {
            assert_eq!(read(&[(IF_MATCH, wrong)]), Err(400), "{wrong}");
        }
        assert_eq!(read(&[(IF_NONE_MATCH, "\"a\"")]), Err(400));
        assert_eq!(read(&[(IF_MATCH, "*"), (IF_NONE_MATCH, "*")]), Err(400));
    }
}
