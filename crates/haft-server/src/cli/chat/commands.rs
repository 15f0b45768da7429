//! `/help` and the other words of the chat that are not for the model.

use haft::agent::{Conversation, from_prompt, mentioned};
use haft::model::ChatMessage;
use haft::record::{Filter, read};
use haft::text::printable;
use haft::{Content, ResourceInfo, Runtime};
use serde_json::value::to_raw_value;

use super::super::arguments;
use super::super::log::row;
use super::super::prompts::argument_names;
use super::super::servers::state;
use super::super::tools::source;
use crate::console::{self, Paint};

/// How many calls `/log` shows.
const CALLS_MAX: usize = 20;

const HELP: &str = "\
/tools [TEXT]          the tools, or those with TEXT in name or description
/servers               the servers and how each is doing
/prompts               the prompts of the servers
/prompt NAME KEY=VALUE say what a prompt says; KEY='two words'
/resources             the resources of the servers; @URI in a message hands one to the model
/log                   the calls of this conversation
/clear                 begin anew: the model is not told what was said; the file keeps it
/exit                  leave (Ctrl-D)";

/// Every word there is.
const WORDS: [&str; 9] =
    ["/help", "/tools", "/servers", "/prompts", "/prompt", "/resources", "/log", "/clear", "/exit"];

/// What to do with what was typed.
pub(super) enum Next {
    /// It is done.
    Nothing,
    /// Say this to the model.
    Say(Vec<Content>),
    /// The person leaves.
    Leave,
}

/// The words, and what they are about.
pub(super) struct Commands<'a> {
    pub(super) out: Paint,
    pub(super) err: Paint,
    pub(super) runtime: Runtime,
    pub(super) conversation: &'a mut Conversation,
}

impl Commands<'_> {
    pub(super) async fn read(self, line: &str) -> Next {
        if line.is_empty() {
            return Next::Nothing;
        }
        if !line.starts_with('/') {
            return self.say(line).await;
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "/help" | "/?" => console::line(HELP),
            "/tools" => self.tools(rest),
            "/servers" => self.servers(),
            "/prompts" => self.prompts(),
            "/prompt" => return self.prompt(rest).await,
            "/resources" => self.resources().await,
            "/log" => self.log(),
            "/clear" => {
                self.conversation.clear().await;
                console::line(&cleared(self.conversation));
            }
            "/exit" | "/quit" => return Next::Leave,
            unknown => {
                let near =
                    haft::nearest(unknown, WORDS).map(|near| format!("; did you mean {near}?"));
                let near = near.unwrap_or_else(|| "; /help shows what there is".to_owned());
                console::line(&format!("there is no {}{near}", printable(unknown)));
            }
        }
        Next::Nothing
    }

    /// Words for the model, with the resources they mention.
    async fn say(&self, line: &str) -> Next {
        match mentioned(&self.runtime, line).await {
            Ok(mentioned) => Next::Say(mentioned.content),
            Err(failure) => {
                let remedy = "/resources shows what there is";
                console::error(self.err, &failure.to_string(), Some(remedy));
                Next::Nothing
            }
        }
    }

    fn tools(&self, wanted: &str) {
        let wanted = wanted.to_lowercase();
        let fits = |text: &str| text.to_lowercase().contains(&wanted);
        let tools = self.runtime.tools();
        let fitting = tools.iter().filter(|tool| fits(&tool.name) || fits(&tool.description));
        let rows: Vec<Vec<String>> = fitting
            .map(|tool| {
                let about = tool.description.lines().next().unwrap_or_default().to_owned();
                vec![tool.name.clone(), source(tool), about]
            })
            .collect();
        self.table(&["TOOL", "FROM", "DESCRIPTION"], &rows, "no tools");
    }

    fn servers(&self) {
        let servers = self.runtime.servers();
        let rows: Vec<Vec<String>> = servers
            .into_iter()
            .map(|server| {
                let state = state(&server);
                vec![server.name, state, server.reason.unwrap_or_default()]
            })
            .collect();
        self.table(&["SERVER", "STATE", "WHY"], &rows, "no servers");
    }

    fn prompts(&self) {
        let prompts = self.runtime.prompts();
        let rows: Vec<Vec<String>> = prompts
            .into_iter()
            .map(|prompt| {
                let names = argument_names(&prompt);
                vec![prompt.name, prompt.server, names, prompt.description]
            })
            .collect();
        self.table(&["PROMPT", "SERVER", "ARGUMENTS", "DESCRIPTION"], &rows, "no prompts");
    }

    async fn prompt(self, rest: &str) -> Next {
        let words = words(rest);
        let Some((name, words)) = words.split_first() else {
            console::line("which one? /prompts shows them; /prompt NAME KEY=VALUE");
            return Next::Nothing;
        };
        match self.filled(name, words).await {
            Ok(messages) => self.put(messages).await,
            Err(error) => {
                let remedy = "/prompts shows what there is";
                console::error(self.err, &error.to_string(), Some(remedy));
                Next::Nothing
            }
        }
    }

    /// Puts the messages of a prompt into the conversation. The last one is to be answered, if a person says it.
    async fn put(self, mut messages: Vec<ChatMessage>) -> Next {
        let count = messages.len();
        let Some(last) = messages.pop() else {
            console::line("the prompt has no messages; nothing was added to the conversation");
            return Next::Nothing;
        };
        for message in messages {
            self.conversation.push(message).await;
        }
        match last {
            ChatMessage::User { content } => Next::Say(content),
            other => {
                self.conversation.push(other).await;
                let messages = if count == 1 { "1 message" } else { &format!("{count} messages") };
                console::line(&format!(
                    "added {messages} to the conversation; the last one is the assistant's, so the model was not \
                     asked: write what comes next"
                ));
                Next::Nothing
            }
        }
    }

    async fn filled(&self, name: &str, words: &[String]) -> anyhow::Result<Vec<ChatMessage>> {
        let prompts = self.runtime.prompts();
        let found = prompts.iter().find(|prompt| {
            prompt.name == name || format!("{}:{}", prompt.server, prompt.name) == name
        });
        let found = found.ok_or_else(|| anyhow::anyhow!("no prompt is named `{name}`"))?;
        let arguments = to_raw_value(&arguments::texts(words)?)?;
        let messages = self.runtime.prompt(&found.server, &found.name, &arguments).await?;
        Ok(from_prompt(messages))
    }

    async fn resources(&self) {
        let mut rows = Vec::new();
        for server in self.runtime.servers_with("resources") {
            match self.runtime.resources(&server).await {
                Ok(resources) => {
                    rows.extend(resources.into_iter().map(|resource| match resource {
                        ResourceInfo::Resource { server, resource } => {
                            vec![resource.uri, server, resource.description]
                        }
                        ResourceInfo::Template { server, template } => {
                            vec![template.uri_template, server, template.description]
                        }
                    }));
                }
                Err(failure) => rows.push(vec![String::new(), server, failure.to_string()]),
            }
        }
        self.table(&["URI", "SERVER", "DESCRIPTION"], &rows, "no resources");
    }

    fn log(&self) {
        let dir = self.runtime.config().log.dir.value.clone();
        let filter = Filter {
            session: Some(self.conversation.id().to_owned()),
            limit: Some(CALLS_MAX),
            ..Filter::default()
        };
        let calls = match read(&dir, &filter) {
            Ok(calls) => calls,
            Err(error) => return console::error(self.err, &error.problem(), None),
        };
        let mut is_empty = true;
        for call in calls.flatten() {
            is_empty = false;
            console::line(&row(self.out, &call));
        }
        if is_empty {
            console::line("no calls yet");
        }
    }

    fn table(&self, head: &[&str], rows: &[Vec<String>], nothing: &str) {
        if rows.is_empty() {
            console::line(nothing);
        } else {
            console::table(self.out, head, rows);
        }
    }
}

/// The words of a line, as a shell tells them apart: what stands in quotes is one, or part of one. A quote without its
/// other half is a letter.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_inside = false;
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        let quoted = matches!(first, '"' | '\'').then(|| after.split_once(first)).flatten();
        let (piece, left) = match quoted {
            Some((piece, left)) => (piece, left),
            None if first.is_whitespace() => {
                (is_inside, rest) = (false, after);
                continue;
            }
            None => (&rest[..first.len_utf8()], after),
        };
        match words.last_mut().filter(|_| is_inside) {
            Some(word) => word.push_str(piece),
            None => words.push(piece.to_owned()),
        }
        (is_inside, rest) = (true, left);
    }
    words
}

/// What `/clear` does, and what it does not do.
fn cleared(conversation: &Conversation) -> String {
    let cleared = "the model is not told any more what was said";
    if conversation.is_kept() {
        let id = conversation.id();
        format!("{cleared}; the file keeps it until `haft sessions rm {id}` deletes it")
    } else {
        cleared.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_are_told_apart_as_a_shell_does() {
        for (line, expected) in [
            ("", &[][..]),
            ("  a  b\tc ", &["a", "b", "c"]),
            (r#"city="New York" state=NY"#, &["city=New York", "state=NY"]),
            (r#"'a b' "" it's"#, &["a b", "", "it's"]),
            (r#"say="'" 5" tall"#, &["say='", "5\"", "tall"]),
        ] {
            assert_eq!(words(line), expected, "{line}");
        }
    }
}
