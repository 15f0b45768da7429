//! The MCP clients, where each keeps its servers, and in which words.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use haft::config::Dialect;
use haft_config::edit::Syntax;
use serde::Serialize;

/// Cline's file in the settings of programs with windows.
const CLINE_FILE: &str =
    "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json";

/// A program that uses MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::cli) enum Client {
    /// Claude Code
    Claude,
    /// Claude Desktop
    ClaudeDesktop,
    /// Visual Studio Code
    Vscode,
    /// Cursor
    Cursor,
    /// Codex
    Codex,
    /// goose
    Goose,
    /// Gemini CLI
    Gemini,
    /// Cline in VS Code
    Cline,
    /// Windsurf
    Windsurf,
    /// Zed
    Zed,
}

/// The audience of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::cli) enum Scope {
    /// This user, in every project
    User,
    /// Everyone who works in the current folder
    Project,
}

/// The folders that the places of clients are found from.
#[derive(Debug)]
pub(in crate::cli) struct Folders {
    pub(in crate::cli) home: Option<PathBuf>,
    pub(in crate::cli) config: Option<PathBuf>,
    pub(in crate::cli) codex: Option<PathBuf>,
    pub(in crate::cli) project: PathBuf,
}

impl Folders {
    /// Those of this process.
    pub(in crate::cli) fn from_process() -> anyhow::Result<Self> {
        let folder = |name: &str| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let home = folder("HOME");
        let in_home = |name: &str| home.as_ref().map(|home| home.join(name));
        Ok(Self {
            config: folder("XDG_CONFIG_HOME").or_else(|| in_home(".config")),
            codex: folder("CODEX_HOME").or_else(|| in_home(".codex")),
            project: std::env::current_dir()?,
            home,
        })
    }
}

impl Client {
    pub(in crate::cli) const ALL: [Self; 10] = [
        Self::Claude,
        Self::ClaudeDesktop,
        Self::Vscode,
        Self::Cursor,
        Self::Codex,
        Self::Goose,
        Self::Gemini,
        Self::Cline,
        Self::Windsurf,
        Self::Zed,
    ];

    /// Its name on the command line.
    pub(in crate::cli) fn word(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Its display name.
    pub(in crate::cli) fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Vscode => "VS Code",
            Self::Cursor => "Cursor",
            Self::Codex => "Codex",
            Self::Goose => "goose",
            Self::Gemini => "Gemini CLI",
            Self::Cline => "Cline",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
        }
    }

    /// The scopes it has a file for; the first is the default.
    pub(in crate::cli) fn scopes(self) -> &'static [Scope] {
        match self {
            Self::Claude | Self::Vscode | Self::Cursor => &[Scope::Project, Scope::User],
            Self::Codex | Self::Gemini | Self::Zed => &[Scope::User, Scope::Project],
            Self::ClaudeDesktop | Self::Goose | Self::Cline | Self::Windsurf => &[Scope::User],
        }
    }

    /// The file of a scope; nothing where it has none, or where there is no home.
    pub(in crate::cli) fn file(self, scope: Scope, folders: &Folders) -> Option<PathBuf> {
        let Folders { home, config, codex, project } = folders;
        let in_home = |path: &str| home.as_ref().map(|home| home.join(path));
        let in_config = |path: &str| config.as_ref().map(|config| config.join(path));
        // Programs with windows keep their settings elsewhere on a Mac.
        let in_app_data = |path: &str| {
            let is_mac = cfg!(target_os = "macos");
            if is_mac {
                in_home(&format!("Library/Application Support/{path}"))
            } else {
                in_config(path)
            }
        };
        match (self, scope) {
            (Self::Claude, Scope::User) => in_home(".claude.json"),
            (Self::Claude, Scope::Project) => Some(project.join(".mcp.json")),
            (Self::ClaudeDesktop, Scope::User) => in_app_data("Claude/claude_desktop_config.json"),
            (Self::Vscode, Scope::User) => in_app_data("Code/User/mcp.json"),
            (Self::Vscode, Scope::Project) => Some(project.join(".vscode/mcp.json")),
            (Self::Cursor, Scope::User) => in_home(".cursor/mcp.json"),
            (Self::Cursor, Scope::Project) => Some(project.join(".cursor/mcp.json")),
            (Self::Codex, Scope::User) => codex.as_ref().map(|codex| codex.join("config.toml")),
            (Self::Codex, Scope::Project) => Some(project.join(".codex/config.toml")),
            (Self::Goose, Scope::User) => in_config("goose/config.yaml"),
            (Self::Gemini, Scope::User) => in_home(".gemini/settings.json"),
            (Self::Gemini, Scope::Project) => Some(project.join(".gemini/settings.json")),
            (Self::Cline, Scope::User) => in_app_data(CLINE_FILE),
            (Self::Windsurf, Scope::User) => in_home(".codeium/windsurf/mcp_config.json"),
            (Self::Zed, Scope::User) => in_config("zed/settings.json"),
            (Self::Zed, Scope::Project) => Some(project.join(".zed/settings.json")),
            (Self::ClaudeDesktop | Self::Goose | Self::Cline | Self::Windsurf, Scope::Project) => {
                None
            }
        }
    }

    /// The key of its file that holds the servers.
    pub(in crate::cli) fn section(self) -> &'static str {
        match self {
            Self::Claude
            | Self::ClaudeDesktop
            | Self::Cursor
            | Self::Gemini
            | Self::Cline
            | Self::Windsurf => "mcpServers",
            Self::Vscode => "servers",
            Self::Codex => "mcp_servers",
            Self::Goose => "extensions",
            Self::Zed => "context_servers",
        }
    }

    /// The syntax of its file.
    pub(in crate::cli) fn syntax(self) -> Syntax {
        match self {
            Self::Codex => Syntax::Toml,
            Self::Goose => Syntax::Yaml,
            Self::Claude
            | Self::ClaudeDesktop
            | Self::Vscode
            | Self::Cursor
            | Self::Gemini
            | Self::Cline
            | Self::Windsurf
            | Self::Zed => Syntax::Json,
        }
    }

    /// The format that Haft reads its file in; one of them it does not read.
    pub(in crate::cli) fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Claude | Self::ClaudeDesktop | Self::Gemini | Self::Cline => {
                Some(Dialect::Claude)
            }
            Self::Vscode => Some(Dialect::Vscode),
            // An address needs no type in either.
            Self::Cursor | Self::Windsurf => Some(Dialect::Cursor),
            Self::Codex => Some(Dialect::Codex),
            Self::Goose => Some(Dialect::Goose),
            Self::Zed => None,
        }
    }

    /// The remaining step after the entry is in the file.
    pub(in crate::cli) fn afterwards(self, scope: Scope) -> &'static str {
        match (self, scope) {
            (Self::Claude, Scope::Project) => {
                "the next `claude` in this folder asks whether you trust it; `/mcp` shows it"
            }
            (Self::Claude, Scope::User) | (Self::Gemini, _) => {
                "the next session has it; `/mcp` shows it"
            }
            (Self::ClaudeDesktop, _) => "restart Claude Desktop",
            (Self::Vscode, _) => "`MCP: List Servers` in VS Code starts and shows it",
            (Self::Cursor, _) => "Cursor's settings show it among the MCP servers",
            (Self::Codex | Self::Goose, _) => "the next session has it",
            (Self::Cline, _) => "Cline shows it among its MCP servers",
            (Self::Windsurf, _) => "refresh the MCP servers in Windsurf's Cascade",
            (Self::Zed, _) => "Zed's settings show it among the MCP servers",
        }
    }
}

/// Every file that a client may keep servers in.
pub(in crate::cli) fn places(folders: &Folders) -> Vec<(Client, Scope, PathBuf)> {
    let all = Client::ALL.into_iter();
    let scoped = all.flat_map(|client| client.scopes().iter().map(move |scope| (client, *scope)));
    scoped
        .filter_map(|(client, scope)| Some((client, scope, client.file(scope, folders)?)))
        .collect()
}

/// A path as people write it, short where it lies in this folder or in the home.
pub(in crate::cli) fn shown(path: &Path, folders: &Folders) -> String {
    let inside = |folder: &Path| Some(path.strip_prefix(folder).ok()?.display().to_string());
    let project = inside(&folders.project);
    let home = folders.home.as_deref().and_then(inside);
    match (project, home) {
        (Some(project), Some(home)) if project.len() > home.len() => format!("~/{home}"),
        (Some(project), _) => project,
        (None, Some(home)) => format!("~/{home}"),
        (None, None) => path.display().to_string(),
    }
}
