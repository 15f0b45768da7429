//! Imported entries in a native file.

use super::{Document, EditError, Syntax};
use crate::config::Imported;
use haft_text::list;

/// Reasons why entries cannot be added to a native file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The file has servers of these names.
    #[error("the file has {} already", list(names))]
    Taken {
        /// The names.
        names: Vec<String>,
    },
    /// The text cannot be changed.
    #[error(transparent)]
    Edit(#[from] EditError),
}

impl Imported {
    /// The entries as a native file.
    pub fn to_yaml(&self) -> String {
        let whole = self.append("", Syntax::Yaml);
        whole.unwrap_or_default()
    }

    /// A native file's text with the entries added to it.
    pub fn append(&self, text: &str, syntax: Syntax) -> Result<String, AppendError> {
        let known = Document::read(text, syntax)?.entries("servers")?;
        let names = self.servers.keys().filter(|name| known.contains_key(*name));
        let names: Vec<String> = names.cloned().collect();
        if !names.is_empty() {
            return Err(AppendError::Taken { names });
        }
        let mut text = text.to_owned();
        for (name, server) in &self.servers {
            text = Document::read(&text, syntax)?.put("servers", name, server)?;
        }
        if !self.tools.is_empty() {
            text = Document::read(&text, syntax)?.append("tools", &self.tools)?;
        }
        Ok(text)
    }
}
