//! The person at the terminal, who answers questions during a turn.

use std::fmt::Write as _;
use std::io::IsTerminal;

use haft::human_input::{AnswerError, Attendance, HumanAnswer, HumanInbox, InboxItem, ItemKind};
use haft_text::{printable, printable_block, printable_json};
use serde_json::{Map, Value};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::form::{Entered, Form};
use super::lines::{Lines, Said};
use crate::stderr::say;
use crate::terminal::Paint;

/// The name of the person at the terminal.
const TERMINAL: &str = "terminal";

/// The person at the terminal, if stdin and stderr are one.
pub(in crate::cli) struct People {
    inbox: HumanInbox,
    paint: Paint,
    lines: Lines,
    lasts: Lasts,
    /// While this is held, questions wait for an answer instead of failing.
    _attendance: Attendance,
}

/// True if there is more to come that a person can agree to in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Lasts {
    /// A conversation.
    Conversation,
    /// One call, after which everything is forgotten.
    OneCall,
}

impl People {
    /// Returns true if a person can answer.
    pub(in crate::cli) fn are_there() -> bool {
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }

    /// The reason why no person can answer.
    pub(in crate::cli) fn why_absent() -> &'static str {
        if std::io::stdin().is_terminal() {
            "standard error is not a terminal"
        } else {
            "standard input is not a terminal"
        }
    }

    /// Attends the inbox.
    pub(in crate::cli) fn attend(inbox: &HumanInbox, lines: Lines, paint: Paint) -> Self {
        let lasts = Lasts::Conversation;
        Self { inbox: inbox.clone(), paint, lines, lasts, _attendance: inbox.attend() }
    }

    /// Sets the purpose of the person's presence.
    #[must_use]
    pub(in crate::cli) fn during(mut self, lasts: Lasts) -> Self {
        self.lasts = lasts;
        self
    }

    /// Answers questions one after the other while `work` runs. Ctrl-C at a question cancels `cancel`, which `work`
    /// has to observe; the question is refused once `work` has ended.
    pub(in crate::cli) async fn while_working<T>(
        &self,
        cancel: &CancellationToken,
        work: impl Future<Output = T>,
    ) -> T {
        let mut updates = self.inbox.subscribe();
        let mut work = std::pin::pin!(work);
        loop {
            let waiting = self.inbox.open().into_iter().next();
            let interrupted = tokio::select! {
                biased;
                done = &mut work => return done,
                interrupted = async {
                    if let Some(item) = &waiting {
                        return self.put(item).await.is_err();
                    }
                    // Whatever happened, what is open is looked at again.
                    drop(updates.recv().await);
                    false
                } => interrupted,
            };
            if interrupted {
                cancel.cancel();
                let done = work.await;
                // A refusal that overtakes the cancellation could still end the call as a success.
                if let Some(item) = waiting {
                    let refusal = refused("interrupted");
                    // The end of the call may have withdrawn the question.
                    let _ = self.inbox.answer(&item.id, refusal, TERMINAL).await;
                }
                return done;
            }
        }
    }

    /// Puts one question to the person until it is answered or over.
    async fn put(&self, item: &InboxItem) -> Result<(), Interrupted> {
        let paint = self.paint;
        let form = item.schema.as_ref().filter(|_| item.options.is_empty()).and_then(Form::of);
        say!("{}", shown(paint, item, form.as_ref()));
        while self.inbox.item(&item.id).is_some() {
            let answer = tokio::select! {
                answer = self.answer(item, form.as_ref()) => answer?,
                () = self.over(item) => {
                    say!("{}", paint.dim("the question is over"));
                    return Ok(());
                }
            };
            match self.inbox.answer(&item.id, answer, TERMINAL).await {
                Ok(_) | Err(AnswerError::Unknown) => return Ok(()),
                Err(error @ AnswerError::Invalid { .. }) => {
                    say!("{}", printable(&error.to_string()));
                }
            }
        }
        Ok(())
    }

    async fn answer(
        &self,
        item: &InboxItem,
        form: Option<&Form>,
    ) -> Result<HumanAnswer, Interrupted> {
        if let Some(form) = form {
            return self.fill(form).await;
        }
        let line = line(self.lines.ask(hint(item, self.lasts)).await)?;
        Ok(line.map_or_else(input_ended, |line| read(item, line.trim())))
    }

    /// Asks for the fields of a form, one after the other.
    async fn fill(&self, form: &Form) -> Result<HumanAnswer, Interrupted> {
        let mut filled = Map::new();
        let mut is_first = true;
        for field in &form.fields {
            let explained = field.explained();
            if !explained.is_empty() {
                say!("{explained}");
            }
            loop {
                let prompt = field.prompt();
                let said = if std::mem::take(&mut is_first) {
                    self.lines.ask(&prompt).await
                } else {
                    self.lines.ask_more(&prompt).await
                };
                let Some(line) = line(said)? else { return Ok(input_ended()) };
                match field.read(&line) {
                    Entered::Value(value) => {
                        filled.insert(field.name.clone(), value);
                        break;
                    }
                    Entered::LeftOut => break,
                    Entered::Refused => return Ok(HumanAnswer::Refused { reason: None }),
                    Entered::Wrong(expected) => say!("that does not fit: {expected}, please"),
                    Entered::Unfit(problem) => {
                        say!("that does not fit: {}", printable(&problem));
                    }
                }
            }
        }
        Ok(HumanAnswer::Given(form.answer(filled)))
    }

    /// Waits until a question is answered elsewhere, withdrawn or expired.
    async fn over(&self, item: &InboxItem) {
        let mut updates = self.inbox.subscribe();
        while self.inbox.item(&item.id).is_some() {
            if let Err(broadcast::error::RecvError::Closed) = updates.recv().await {
                return;
            }
        }
    }
}

/// Ctrl-C at a question.
#[derive(Debug)]
struct Interrupted;

/// The line, or none at the end of the input.
fn line(said: Said) -> Result<Option<String>, Interrupted> {
    match said {
        Said::Line(line) => Ok(Some(line)),
        Said::Closed => Ok(None),
        Said::Interrupted => Err(Interrupted),
    }
}

fn input_ended() -> HumanAnswer {
    refused("input ended (Ctrl-D)")
}

fn refused(reason: &str) -> HumanAnswer {
    HumanAnswer::Refused { reason: Some(reason.to_owned()) }
}

fn shown(paint: Paint, item: &InboxItem, form: Option<&Form>) -> String {
    let asker = match (&item.server, &item.tool) {
        // The question has the rest of the server's message.
        (Some(server), None) if item.kind != ItemKind::Sampling => {
            format!("`{}` asks: ", printable(server))
        }
        _ => String::new(),
    };
    let mut text = format!("{}{}", paint.bold(&asker), printable_block(&item.question));
    if let Some(arguments) = &item.arguments {
        let _ = write!(text, "\n  {}", printable(arguments.get()));
    }
    if is_listed(item) {
        for (at, option) in item.options.iter().enumerate() {
            let _ = write!(text, "\n  {}. {}", at + 1, printable(option));
        }
    }
    match (&item.schema, form) {
        (Some(_), Some(form)) if form.how().is_empty() => {}
        (Some(_), Some(form)) => text.push_str(&paint.dim(&format!("\n  {}", form.how()))),
        (Some(schema), None) => {
            let schema = schema.to_string();
            let hint = format!("\n  as JSON that fits {}", printable_json(&schema));
            text.push_str(&paint.dim(&hint));
        }
        (None, _) => {}
    }
    text
}

/// Returns true if the options are numbered; otherwise the prompt has their letters.
fn is_listed(item: &InboxItem) -> bool {
    match item.kind {
        ItemKind::Question | ItemKind::Elicitation | ItemKind::Definition => true,
        ItemKind::Approval | ItemKind::Sampling => false,
    }
}

fn hint(item: &InboxItem, lasts: Lasts) -> &'static str {
    match (item.kind, lasts) {
        (ItemKind::Approval, Lasts::Conversation) => "[a]llow, al[w]ays, [d]eny? ",
        (ItemKind::Approval, Lasts::OneCall) | (ItemKind::Sampling, _) => "[a]llow, [d]eny? ",
        (ItemKind::Question | ItemKind::Elicitation | ItemKind::Definition, _) => {
            "your answer (empty to refuse): "
        }
    }
}

/// Reads a line as an answer.
fn read(item: &InboxItem, line: &str) -> HumanAnswer {
    let given = |word: &str| HumanAnswer::Given(Value::String(word.to_owned()));
    match (item.kind, line) {
        (ItemKind::Approval | ItemKind::Sampling, "a" | "y" | "yes") => given("allow"),
        (ItemKind::Approval, "w") => given("always"),
        (ItemKind::Approval | ItemKind::Sampling, "d" | "n" | "no" | "") => given("deny"),
        (ItemKind::Question | ItemKind::Elicitation | ItemKind::Definition, "") => {
            HumanAnswer::Refused { reason: None }
        }
        (_, line) => {
            let number = line.parse::<usize>().ok().filter(|_| is_listed(item));
            let numbered = number.and_then(|at| item.options.get(at.checked_sub(1)?));
            if let Some(option) = numbered {
                return given(option);
            }
            let json = item.schema.as_ref().and_then(|_| serde_json::from_str(line).ok());
            json.map_or_else(|| given(line), HumanAnswer::Given)
        }
    }
}
