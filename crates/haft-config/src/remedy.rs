//! Remedies as data. The library names the action; the terminal renders it as a command, the API as an endpoint.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::redact::Redactor;

/// The action that fixes an error.
///
/// `Display` is for every reader: it names neither a command nor an endpoint. An edge that offers one of them matches
/// on the variant; the enum is exhaustive, so that an edge renders each. JSON has the text of `Display`, and a remedy
/// that was read from JSON is a [`Remedy::Text`].
///
/// ```
/// use haft_config::Remedy;
///
/// let remedy = Remedy::InspectServer { server: "github".into() };
/// assert_eq!(remedy.to_string(), "look at the state of the server `github`");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// A sentence that reads the same everywhere.
    Text(String),
    /// Choose one of the tools in the toolbox.
    FindTool {
        /// The nearest existing name.
        nearest: Option<String>,
    },
    /// Read the input schema of a tool.
    ReadInputSchema {
        /// The tool.
        tool: String,
    },
    /// Fix a tool or its output schema.
    FixOutput {
        /// The tool.
        tool: String,
    },
    /// Give a tool more time.
    RaiseTimeout {
        /// The tool.
        tool: String,
        /// The MCP server that runs it.
        server: Option<String>,
    },
    /// Choose one of the configured servers.
    FindServer {
        /// The nearest existing name.
        nearest: Option<String>,
    },
    /// Look at the state of a server.
    InspectServer {
        /// The server.
        server: String,
    },
    /// Sign in to a server.
    SignIn {
        /// The server.
        server: String,
    },
    /// Name the server of a resource.
    FindResource,
    /// Read the log entry of an execution.
    ReadExecution {
        /// The execution's id.
        id: String,
    },
    /// Find the rule that denied a call.
    FindRule {
        /// True if the rule itself is at fault.
        is_faulty: bool,
    },
    /// Check the sandboxes of this machine.
    CheckSandbox {
        /// The alternative.
        alternative: Option<String>,
    },
    /// Create the folder of a registry.
    CreateRegistry,
    /// Let people answer in the inbox of a running service.
    UseInbox {
        /// The alternative for this caller.
        alternative: String,
    },
    /// Answer or refuse what waits in the inbox.
    ClearInbox,
    /// Give the value of an input of a configuration file.
    SetInput {
        /// The input's id.
        input: String,
        /// The environment variable that holds its value.
        variable: String,
    },
    /// Name the format of a configuration file.
    NameFormat {
        /// The known formats, as a list in words.
        formats: String,
    },
    /// Move a second document into a file of its own.
    SplitFile,
    /// Use a file as configuration instead of importing it.
    UseFile,
    /// Review the definition of a tool or prompt, and approve it.
    ApproveDefinition {
        /// Its server.
        server: String,
        /// Its name on the server.
        name: String,
    },
    /// Approve everything of a server that is not in the lock file yet.
    ApproveServer {
        /// The server.
        server: String,
    },
    /// Look at what differs from the lock file.
    ReviewDrift,
    /// Write a lock file.
    WriteLock,
    /// Replace a damaged lock file.
    RestoreLock,
}

impl Remedy {
    /// Masks secrets. A remedy that holds one becomes text, so that no edge renders it.
    #[must_use]
    pub fn without_secrets(self, redactor: &Redactor) -> Self {
        let text = self.to_string();
        let masked = redactor.text(&text);
        if masked == text { self } else { Self::Text(masked.into_owned()) }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::FindTool { nearest: Some(nearest) }
            | Self::FindServer { nearest: Some(nearest) } => write!(f, "did you mean `{nearest}`?"),
            Self::FindTool { nearest: None } => {
                f.write_str("use the name of a tool of the toolbox")
            }
            Self::FindServer { nearest: None } => {
                f.write_str("use the name of a configured server")
            }
            Self::ReadInputSchema { tool } => write!(f, "see the input schema of `{tool}`"),
            Self::FixOutput { tool } => {
                write!(f, "fix `{tool}` or its `output_schema`; the execution log has its answer")
            }
            Self::RaiseTimeout { tool, server: None } => write!(f, "raise `timeout` for `{tool}`"),
            Self::RaiseTimeout { tool, server: Some(server) } => {
                write!(f, "raise `timeout` for `{tool}`, or look at its server `{server}`")
            }
            Self::InspectServer { server } => {
                write!(f, "look at the state of the server `{server}`")
            }
            Self::SignIn { server } => write!(
                f,
                "sign in to `{server}`, or set `oauth` or an `Authorization` header for it"
            ),
            Self::FindResource => f.write_str("name the `server` that has it"),
            Self::ReadExecution { id } => {
                write!(f, "the execution log has the result of `{id}`")
            }
            Self::FindRule { is_faulty: false } => f.write_str(
                "change the arguments or do without it; the log entry of the call has the rule",
            ),
            Self::FindRule { is_faulty: true } => {
                f.write_str("let the operator fix the rule; the log entry of the call has it")
            }
            Self::CheckSandbox { alternative } => {
                f.write_str("check what this machine offers for sandboxes")?;
                alternative.iter().try_for_each(|alternative| write!(f, ", or {alternative}"))
            }
            Self::CreateRegistry => f.write_str(
                "create it with a `tools.json` ({\"tools\": []}) and an `mcp.json` ({\"mcp_servers\": {}})",
            ),
            Self::UseInbox { alternative } => {
                write!(f, "{alternative}, or use a service, whose inbox people can see and answer")
            }
            Self::ClearInbox => f.write_str("answer or refuse what waits in the inbox"),
            Self::SetInput { input: _, variable } => write!(f, "set {variable}"),
            Self::NameFormat { formats } => write!(f, "name the format of the file: {formats}"),
            Self::SplitFile => f.write_str("put it into a file of its own and load both"),
            Self::UseFile => f.write_str("use it as it is"),
            Self::ApproveDefinition { .. } => {
                f.write_str("let the operator review the definition and approve it")
            }
            Self::ApproveServer { .. } => f.write_str("approve the server as a whole"),
            Self::ReviewDrift => f.write_str("look at what differs from the lock file"),
            Self::WriteLock => f.write_str("let the operator write a lock file"),
            Self::RestoreLock => f.write_str(
                "take the file from version control again, or delete it, write a new one and review it",
            ),
        }
    }
}

impl From<String> for Remedy {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Remedy {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

// Errors hold a boxed remedy, because most calls have none.
impl From<String> for Box<Remedy> {
    fn from(text: String) -> Self {
        Self::new(Remedy::Text(text))
    }
}

impl From<&str> for Box<Remedy> {
    fn from(text: &str) -> Self {
        Self::new(text.into())
    }
}

impl Serialize for Remedy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Remedy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::Text)
    }
}
