//! Calls of all replicas, from the database. Entries are read in parts, so that few are in memory at a time.

use std::io;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use haft::record::{Filter, LoggedCall};
use haft_postgres::{DatabaseError, FoundCall, PostgresLog, chunks};

use super::Service;
use super::query::Rest;

/// The calls that a filter selects.
pub(super) struct SharedCalls {
    log: PostgresLog,
    /// In the order of the answer.
    found: Vec<FoundCall>,
    is_newest_first: bool,
}

impl SharedCalls {
    /// Finds calls. `None` if the log is not in a database.
    pub(super) async fn find(
        service: &Service,
        filter: &Filter,
        is_newest_first: bool,
    ) -> Option<Result<Self, DatabaseError>> {
        let log = service.log.as_ref()?;
        let found = log.find(filter).await?;
        let log = log.rows()?.clone();
        Some(found.map(|mut found| {
            if !is_newest_first {
                found.reverse();
            }
            Self { log, found, is_newest_first }
        }))
    }

    /// The only call, if there is one.
    pub(super) async fn only(self) -> Result<Option<LoggedCall>, DatabaseError> {
        let entries = self.log.entries(&self.found).await?;
        // A row that is not an entry is as good as none.
        Ok(entries.first().and_then(|(_, entry)| serde_json::from_str(entry).ok()))
    }

    /// The document, part by part, for as long as the client reads.
    pub(super) fn answer(self) -> Response {
        let parts = stream::unfold(Part::Calls { calls: self, done: 0 }, async |part| {
            let (text, next) = part.write().await?;
            Some((Ok::<Bytes, io::Error>(text.into()), next))
        });
        ([(CONTENT_TYPE, "application/json")], Body::from_stream(parts)).into_response()
    }

    /// Reads the next entries, in the order of the answer. Returns how many calls they are for.
    async fn next(&self, done: usize) -> Result<(usize, Vec<String>), DatabaseError> {
        let Some(chunk) = chunks(&self.found[done..]).next() else { return Ok((0, Vec::new())) };
        let entries = self.log.entries(chunk).await?;
        let mut entries: Vec<String> = entries.into_iter().map(|(_, entry)| entry).collect();
        if self.is_newest_first {
            entries.reverse();
        }
        Ok((chunk.len(), entries))
    }
}

/// What is left of the document.
enum Part {
    Calls { calls: SharedCalls, done: usize },
    Nothing,
}

impl Part {
    async fn write(self) -> Option<(String, Self)> {
        let Self::Calls { calls, done } = self else { return None };
        let begun = if done == 0 { "{\"calls\":[" } else { "" };
        let (count, entries, unreadable) = match calls.next(done).await {
            Ok((count, entries)) => (count, entries, Vec::new()),
            Err(error) => (0, Vec::new(), vec![error.to_string()]),
        };
        if count == 0 {
            let rest = serde_json::to_string(&Rest { malformed: 0, unreadable }).ok()?;
            let text = format!("{begun}],{}", rest.strip_prefix('{')?);
            return Some((text, Self::Nothing));
        }
        let comma = if done == 0 || entries.is_empty() { "" } else { "," };
        let text = format!("{begun}{comma}{}", entries.join(","));
        Some((text, Self::Calls { calls, done: done + count }))
    }
}
