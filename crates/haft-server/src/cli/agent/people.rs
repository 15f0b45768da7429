//! The person at the terminal, who answers what is asked while a turn goes on.

use std::fmt::Write as _;
use std::io::IsTerminal;

use haft::inbox::{Answer, AnswerError, Attendance, Inbox, Item, Kind};
use haft::text::{printable, printable_block};
use serde_json::Value;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::lines::{Lines, Said};
use crate::console::Paint;

/// Who answers at the terminal, where there is one.
const TERMINAL: &str = "terminal";

/// The person at the terminal, if stdin and stderr are one.
pub(in crate::cli) struct People {
    inbox: Inbox,
    paint: Paint,
    lines: Lines,
    /// While this is held, questions wait for an answer instead of failing.
    _attendance: Attendance,
}

impl People {
    /// Whether somebody is there to answer.
    pub(in crate::cli) fn are_there() -> bool {
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }

    /// Attends the inbox.
    pub(in crate::cli) fn attend(inbox: &Inbox, lines: Lines, paint: Paint) -> Self {
        Self { inbox: inbox.clone(), paint, lines, _attendance: inbox.attend() }
    }

    /// Answers questions one after the other for as long as `work` goes on. Ctrl-C at a question cancels
    /// `cancel`, which `work` has to heed.
    pub(in crate::cli) async fn while_working<T>(
        &self,
        cancel: &CancellationToken,
        work: impl Future<Output = T>,
    ) -> T {
        let mut news = self.inbox.subscribe();
        let mut work = std::pin::pin!(work);
        loop {
            let waiting = self.inbox.open().into_iter().next();
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = async {
                    match &waiting {
                        Some(item) => self.put(item, cancel).await,
                        // Whatever happened, what is open is looked at again.
                        None => drop(news.recv().await),
                    }
                } => {}
            }
        }
    }

    /// Puts one question to the person until it is answered or over.
    async fn put(&self, item: &Item, cancel: &CancellationToken) {
        let paint = self.paint;
        eprintln!("{}", shown(paint, item));
        while self.inbox.item(&item.id).is_some() {
            let answer = tokio::select! {
                said = self.lines.ask(hint(item)) => match said {
                    Said::Line(line) => read(item, line.trim()),
                    Said::Interrupted => {
                        cancel.cancel();
                        refused("interrupted")
                    }
                    Said::Closed => refused("the terminal was closed"),
                },
                () = self.over(item) => {
                    eprintln!("{}", paint.dim("the question is over"));
                    return;
                }
            };
            match self.inbox.answer(&item.id, answer, TERMINAL).await {
                Ok(_) | Err(AnswerError::Unknown) => return,
                Err(error @ AnswerError::Invalid { .. }) => {
                    eprintln!("{}", printable(&error.to_string()));
                }
            }
        }
    }

    /// Waits until a question is answered elsewhere, withdrawn or expired.
    async fn over(&self, item: &Item) {
        let mut news = self.inbox.subscribe();
        while self.inbox.item(&item.id).is_some() {
            if let Err(broadcast::error::RecvError::Closed) = news.recv().await {
                return;
            }
        }
    }
}

fn refused(reason: &str) -> Answer {
    Answer::Refused { reason: Some(reason.to_owned()) }
}

fn shown(paint: Paint, item: &Item) -> String {
    let asker = match (&item.server, &item.tool) {
        (Some(server), None) => format!("`{}` asks: ", printable(server)),
        _ => String::new(),
    };
    let mut text = format!("{}{}", paint.bold(&asker), printable_block(&item.question));
    if let Some(arguments) = &item.arguments {
        let _ = write!(text, "\n  {}", printable(arguments.get()));
    }
    if item.kind != Kind::Approval {
        for (at, option) in item.options.iter().enumerate() {
            let _ = write!(text, "\n  {}. {}", at + 1, printable(option));
        }
    }
    if let Some(schema) = &item.schema {
        text.push_str(&paint.dim(&format!("\n  as JSON that fits {schema}")));
    }
    text
}

fn hint(item: &Item) -> &'static str {
    match item.kind {
        Kind::Approval => "[a]llow, al[w]ays, [d]eny? ",
        Kind::Sampling => "[a]llow, [d]eny? ",
        Kind::Question | Kind::Elicitation => "your answer (empty to refuse): ",
    }
}

/// What a line means as an answer.
fn read(item: &Item, line: &str) -> Answer {
    let given = |word: &str| Answer::Given(Value::String(word.to_owned()));
    match (item.kind, line) {
        (Kind::Approval | Kind::Sampling, "a" | "y" | "yes") => given("allow"),
        (Kind::Approval, "w") => given("always"),
        (Kind::Approval | Kind::Sampling, "d" | "n" | "no" | "") => given("deny"),
        (Kind::Question | Kind::Elicitation, "") => Answer::Refused { reason: None },
        (_, line) => {
            let numbered =
                line.parse::<usize>().ok().and_then(|at| item.options.get(at.checked_sub(1)?));
            if let Some(option) = numbered {
                return given(option);
            }
            let json = item.schema.as_ref().and_then(|_| serde_json::from_str(line).ok());
            json.map_or_else(|| given(line), Answer::Given)
        }
    }
}
