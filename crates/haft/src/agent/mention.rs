//! `@resource` in what a person says: the resource is read and handed to the model with the words.

use std::sync::Arc;

use super::resources::{lists, owner};
use crate::backend::mcp::Resources;
use crate::content::Content;
use crate::error::ToolFailure;
use crate::runtime::Runtime;

/// What a person said, with what it mentions.
#[derive(Debug, Clone, PartialEq)]
pub struct Mentioned {
    /// The words, then each resource.
    pub content: Vec<Content>,
    /// The resources that were read.
    pub read: Vec<String>,
}

/// Reads the resources that a text mentions as `@URI` or `@server:URI`. What is no resource stays what it is:
/// an address of mail, a name. What looks like one (`@scheme://...`) and cannot be read is an error.
pub async fn mentioned(runtime: &Runtime, text: &str) -> Result<Mentioned, ToolFailure> {
    let mut content = vec![Content::text(text)];
    let mut read = Vec::new();
    let mut listed = None;
    let words = text.split_whitespace().map(|word| word.trim_start_matches(['(', '"', '\'']));
    for word in words.filter_map(|word| word.strip_prefix('@')) {
        // What ends a sentence may end a URI only by chance.
        let word = word.trim_end_matches(['.', ',', ';', '!', '?', ')', '"', '\'']);
        let Some((server, uri)) = found(runtime, &mut listed, word).await? else { continue };
        let name = format!("{server}:{uri}");
        if read.contains(&name) {
            continue;
        }
        let blocks = runtime.read_resource(&server, &uri).await?;
        // Else a model could not tell which of several is which.
        content.push(Content::text(format!("[{name}]")));
        content.extend(blocks);
        read.push(name);
    }
    Ok(Mentioned { content, read })
}

/// What the servers list, once somebody asked for it.
type Listed = Option<Vec<(String, Arc<Resources>)>>;

async fn found(
    runtime: &Runtime,
    listed: &mut Listed,
    word: &str,
) -> Result<Option<(String, String)>, ToolFailure> {
    if let Some((server, uri)) = word.split_once(':')
        && runtime.servers().iter().any(|known| known.name == server)
    {
        return Ok(Some((server.to_owned(), uri.to_owned())));
    }
    let listed = match listed {
        Some(listed) => listed,
        none => none.insert(runtime.all_resources(|_| true).await),
    };
    let is_listed = listed.iter().any(|(_, resources)| lists(resources, word));
    // One that is not listed may belong to a template of a server.
    if is_listed || word.contains("://") {
        return Ok(Some((owner(listed, word)?, word.to_owned())));
    }
    Ok(None)
}
