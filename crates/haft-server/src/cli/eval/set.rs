//! Sets of requests with known answers, and the toolboxes they are about.

use haft_bounds::parse_error::describe;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use haft::select::ToolText;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cli::{EXIT_RUNTIME, Failure};

/// The toolset of the tools that Haft brings itself.
const BUILTINS: &str = "builtins";

/// Requests and what is right for each.
pub(super) struct Set {
    pub(super) name: String,
    pub(super) rows: Vec<Row>,
    folder: PathBuf,
}

/// One request.
#[derive(Deserialize)]
pub(super) struct Row {
    pub(super) query: String,
    pub(super) action: Action,
    /// The right tools, or `"none"`.
    gold: Value,
    pub(super) toolset: String,
    /// The tools that were there when the right answer was written down.
    pub(super) candidates: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Action {
    Tool,
    None,
    AskHuman,
}

#[derive(Deserialize)]
struct RawTool {
    id: Option<String>,
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Value,
    server: Option<String>,
    title: Option<String>,
    #[serde(default)]
    examples: Vec<String>,
}

impl Row {
    pub(super) fn gold(&self) -> Vec<&str> {
        self.gold.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// The sets that are named, in the order of their names within a folder. Files without requests are none.
pub(super) fn find(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut sets = Vec::new();
    for path in paths {
        if !path.is_dir() {
            sets.push(path.clone());
            continue;
        }
        let entries =
            std::fs::read_dir(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut files: Vec<PathBuf> = files.filter(|file| is_set(file)).collect();
        files.sort();
        sets.extend(files);
    }
    if sets.is_empty() {
        return Err(Failure::new(
            EXIT_RUNTIME,
            "there is no set of requests",
            "name a file of JSON lines or a folder with some; see `haft eval --help` for the format",
        )
        .into());
    }
    Ok(sets)
}

/// A toolset may lie beside its sets.
fn is_set(path: &Path) -> bool {
    let is_lines = path.extension().is_some_and(|ending| ending == "jsonl");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    is_lines && text.lines().next().is_some_and(|line| serde_json::from_str::<Row>(line).is_ok())
}

impl Set {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        Ok(Self { name, rows: lines(path)?, folder })
    }

    /// The tools of a toolset, each with its id.
    pub(super) fn tools(&self, toolset: &str) -> anyhow::Result<Vec<(String, ToolText)>> {
        if toolset == BUILTINS && !self.has(toolset) {
            let tools = haft::builtin_tools();
            return Ok(tools.into_iter().map(|tool| (tool.name.clone(), tool)).collect());
        }
        let tools: Vec<RawTool> = lines(&self.file(toolset))?;
        Ok(tools.into_iter().map(RawTool::text).collect())
    }

    /// A set of requests may have the name of the toolset it is about.
    fn has(&self, toolset: &str) -> bool {
        let file = self.file(toolset);
        file.is_file() && !is_set(&file)
    }

    fn file(&self, toolset: &str) -> PathBuf {
        // A path in the file must not lead out of its folder.
        let file = Path::new(toolset).file_name().unwrap_or_default();
        let file = Path::new(file).with_extension("jsonl");
        let places = [self.folder.join("../toolsets").join(&file), self.folder.join(&file)];
        let [beside, here] = places;
        if beside.is_file() { beside } else { here }
    }
}

impl RawTool {
    /// Ids distinguish tools that share a name.
    fn text(self) -> (String, ToolText) {
        let id = self.id.unwrap_or_else(|| self.name.clone());
        let text = ToolText {
            name: self.name,
            server: self.server,
            title: self.title,
            description: self.description.unwrap_or_default(),
            input_schema: self.parameters,
            examples: self.examples,
        };
        (id, text)
    }
}

fn lines<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<T>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read `{}`", path.display()))?;
    let line = |(at, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| anyhow::anyhow!(describe(&error)))
            .with_context(|| format!("line {} of `{}`", at + 1, path.display()))
    };
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(line).collect()
}
