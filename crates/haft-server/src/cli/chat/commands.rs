//! `/help` and the other words of the chat that are not for the model.

use haft::record::{Filter, read};
use haft::{AccessLists, Content, ResourceInfo, Runtime};
use haft_agent::model::ChatMessage;
use haft_agent::{Conversation, from_prompt, mentioned};
use haft_text::printable;
use serde_json::value::to_raw_value;

use super::super::arguments;
use super::super::log::row;
use super::super::prompts::argument_names;
use super::super::servers::state;
use super::super::tools::source;
use crate::terminal::{self, Paint};

/// Largest number of calls in `/log`.
const CALLS_MAX: usize = 20;

const HELP: &str = "\
/tools [TEXT]          the tools, or those with TEXT in name or description
/servers               the servers and how each is doing
/prompts               the prompts of the servers
/prompt NAME KEY=VALUE send the messages of a prompt; KEY='two words'
/resources             the resources of the servers; @URI in a message hands one to the model
/model [NAME]          the model, or another one from now on, such as openai::gpt-5
/log                   the calls of this conversation
/clear                 start over: earlier messages are not sent; the file keeps them
/exit                  leave (Ctrl-D)";

/// Every word there is.
pub(super) const WORDS: [&str; 10] = [
    "/help",
    "/tools",
    "/servers",
    "/prompts",
    "/prompt",
    "/resources",
    "/model",
    "/log",
    "/clear",
    "/exit",
];

/// The next step after a typed line.
pub(super) enum Next {
    /// It is done.
    Nothing,
    /// Send this to the model.
    Say(Vec<Content>),
    /// Use this model; with an empty name, show the one in use.
    Model(String),
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
            "/help" | "/?" => terminal::line(HELP),
            "/tools" => self.tools(rest),
            "/servers" => self.servers(),
            "/prompts" => self.prompts(),
            "/prompt" => return self.prompt(rest).await,
            "/resources" => self.resources().await,
            "/model" => return Next::Model(rest.to_owned()),
            "/log" => self.log(),
            "/clear" => {
                self.conversation.clear().await;
                terminal::line(&cleared(self.conversation));
            }
            "/exit" | "/quit" => return Next::Leave,
            unknown => {
                let near = haft_text::nearest(unknown, WORDS)
                    .map(|near| format!("; did you mean {near}?"));
                let near = near.unwrap_or_else(|| "; /help shows what there is".to_owned());
                terminal::line(&format!("there is no {}{near}", printable(unknown)));
            }
        }
        Next::Nothing
    }

    /// Words for the model, with the resources they mention.
    async fn say(&self, line: &str) -> Next {
        match mentioned(&self.runtime, line, &AccessLists::default()).await {
            Ok(mentioned) => Next::Say(mentioned.content),
            Err(failure) => {
                let remedy = "/resources shows what there is";
                terminal::error(self.err, &failure.to_string(), Some(remedy));
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
            terminal::line("which one? /prompts shows them; /prompt NAME KEY=VALUE");
            return Next::Nothing;
        };
        match self.filled(name, words).await {
            Ok(messages) => self.put(messages).await,
            Err(error) => {
                let remedy = "/prompts shows what there is";
                terminal::error(self.err, &error.to_string(), Some(remedy));
                Next::Nothing
            }
        }
    }

    /// Puts the messages of a prompt into the conversation. The model answers the last one if it has the role of the
    /// user.
    async fn put(self, mut messages: Vec<ChatMessage>) -> Next {
        let count = messages.len();
        let Some(last) = messages.pop() else {
            terminal::line("the prompt has no messages; nothing was added to the conversation");
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
                terminal::line(&format!(
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
            Err(error) => return terminal::error(self.err, &error.problem(), None),
        };
        let mut is_empty = true;
        for call in calls.flatten() {
            is_empty = false;
            terminal::line(&row(self.out, &call));
        }
        if is_empty {
            terminal::line("no calls yet");
        }
    }

    fn table(&self, head: &[&str], rows: &[Vec<String>], nothing: &str) {
        if rows.is_empty() {
            terminal::line(nothing);
        } else {
            terminal::table(self.out, head, rows);
        }
    }
}

/// Splits a line into words like a shell: a quoted part is one word, or part of one. An unbalanced quote is an
/// ordinary character.
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

/// Describes the effect of `/clear`.
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
    fn words_are_split_as_a_shell_does() {
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
