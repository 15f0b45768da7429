//! Counts messages of a server that no request could use, so that a request without an answer can
//! report the reason.
//!
//! The text of stray lines goes to the log alone: a server is shared, and a line may concern the
//! call of another caller.

use std::time::Instant;

use haft_mcp::Anomaly;
use parking_lot::{Mutex, MutexGuard};

use crate::config::model::Endpoint;
use crate::error::Diagnosis;
use crate::record::Redactor;
use haft_text::printable;

/// The stray lines that are logged one by one. Of those that follow, only some are.
const LOGGED_MAX: u64 = 100;
/// The part of a stray line or a foreign id that is shown.
const SHOWN_CHARS_MAX: usize = 200;

/// The anomalies of one server, for as long as the toolbox lives.
#[derive(Default)]
pub(super) struct Anomalies(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    stray: Stray,
    /// The time and id of the last response with an unknown id.
    foreign: Option<(Instant, String)>,
}

#[derive(Default)]
struct Stray {
    count: u64,
    last: Option<Instant>,
    /// True if the last line has the zero bytes of UTF-16.
    is_wide: bool,
}

impl Anomalies {
    /// Counts one, and logs a stray line.
    pub(super) fn note(&self, server: &str, anomaly: Anomaly<'_>, redactor: &Redactor) {
        match anomaly {
            // An empty line is harmless.
            Anomaly::Stray(line) if line.trim_ascii().is_empty() => {}
            Anomaly::Stray(line) => {
                let count = self.lock().stray.note(line);
                if count <= LOGGED_MAX || count.is_power_of_two() {
                    let text = shown(&redactor.text(&String::from_utf8_lossy(line)));
                    tracing::debug!(
                        server,
                        count,
                        "the server wrote a line that is not a message: {text}"
                    );
                }
            }
            Anomaly::ForeignId(id) => self.lock().foreign = Some((Instant::now(), shown(id))),
        }
    }

    /// Number of lines that were not messages.
    pub(super) fn stray_lines(&self) -> u64 {
        self.lock().stray.count
    }

    /// The likely reason why a request got no answer since `began`.
    pub(super) fn since(
        &self,
        began: Instant,
        server: &str,
        endpoint: &Endpoint,
    ) -> Option<Diagnosis> {
        let seen = self.lock();
        if let Some((_, id)) = seen.foreign.as_ref().filter(|(at, _)| *at >= began) {
            return Some(Diagnosis {
                problem: format!(
                    "meanwhile the server sent a response with the id `{id}`, which no request has"
                ),
                remedy: id_remedy(server).into(),
            });
        }
        seen.stray.last.filter(|at| *at >= began)?;
        Some(stray_diagnosis(seen.stray.is_wide, server, endpoint))
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock()
    }
}

impl Stray {
    fn note(&mut self, line: &[u8]) -> u64 {
        self.count += 1;
        self.last = Some(Instant::now());
        self.is_wide = line.contains(&0);
        self.count
    }
}

/// The remedy for a response with a wrong id.
pub(super) fn id_remedy(server: &str) -> String {
    format!(
        "the server must return the `id` of the request unmodified: update `{server}`, or report it to its \
         maintainers"
    )
}

/// The remedy for text in another encoding than expected.
pub(super) fn encoding_remedy(server: &str, endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Stdio(_) => format!(
            "set `encoding` of `{server}` to what it writes, such as `latin-1` or `utf-16le`, or let it write UTF-8"
        ),
        Endpoint::Http(_) | Endpoint::Sse(_) | Endpoint::Websocket(_) => {
            format!(
                "the server must send UTF-8: update `{server}`, or report it to its maintainers"
            )
        }
    }
}

fn stray_diagnosis(is_wide: bool, server: &str, endpoint: &Endpoint) -> Diagnosis {
    let encoding = match endpoint {
        Endpoint::Stdio(stdio) => Some(stdio.encoding.value),
        Endpoint::Http(_) | Endpoint::Sse(_) | Endpoint::Websocket(_) => None,
    };
    let wrote = "meanwhile the server wrote lines that are not MCP messages";
    match encoding {
        Some("UTF-8") if is_wide => Diagnosis {
            problem: format!("{wrote} and look like UTF-16"),
            remedy: encoding_remedy(server, endpoint).into(),
        },
        Some(encoding) if encoding != "UTF-8" => Diagnosis {
            problem: format!("{wrote} if they are read as {encoding} (`encoding`)"),
            remedy: encoding_remedy(server, endpoint).into(),
        },
        Some(_) | None => Diagnosis {
            problem: wrote.to_owned(),
            remedy: format!(
                "`{server}` must write nothing but MCP messages to its output, and everything else to standard \
                 error; the log level `debug` shows the lines"
            )
            .into(),
        },
    }
}

fn shown(text: &str) -> String {
    let text: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    printable(&text).into_owned()
}
