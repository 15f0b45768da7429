//! `@resource` in a user message: the resource is read and added to the message.

use std::sync::Arc;

use serde_json::Value;

use super::resources::{offers, owner};
use haft::AccessLists;
use haft::Content;
use haft::Resources;
use haft::Runtime;
use haft::ToolFailure;

/// Maximum number of mentioned resources, and their maximum combined size.
const MENTIONED_MAX: usize = 20;
const MENTIONED_BYTES_MAX: usize = 4 << 20;

/// A user message with its mentioned resources.
#[derive(Debug, Clone, PartialEq)]
pub struct Mentioned {
    /// The words, then each resource.
    pub content: Vec<Content>,
    /// The resources that were read.
    pub read: Vec<String>,
}

/// Reads the resources that a message mentions as `@URI` or `@server:URI`. Other words stay
/// unmodified: an e-mail address, a name. A word that looks like a URI (`@scheme://...`) and cannot
/// be read is an error. Servers that `lists` hides do not exist for the message.
pub async fn mentioned(
    runtime: &Runtime,
    text: &str,
    lists: &AccessLists,
) -> Result<Mentioned, ToolFailure> {
    let mut content = vec![Content::text(text)];
    let mut read = Vec::new();
    let (mut listed, mut bytes) = (None, 0);
    let words = text.split_whitespace().map(|word| word.trim_start_matches(['(', '"', '\'']));
    for word in words.filter_map(|word| word.strip_prefix('@')) {
        // Punctuation at the end of a sentence is rarely part of a URI.
        let word = word.trim_end_matches(['.', ',', ';', '!', '?', ')', '"', '\'']);
        let Some((server, uri)) = found(runtime, lists, &mut listed, word).await? else { continue };
        let name = format!("{server}:{uri}");
        if read.contains(&name) {
            continue;
        }
        if read.len() >= MENTIONED_MAX {
            return Err(too_much(format!("more than {MENTIONED_MAX} resources are mentioned")));
        }
        let blocks = runtime.read_resource(&server, &uri).await?;
        bytes += blocks.iter().map(size).sum::<usize>();
        if bytes > MENTIONED_BYTES_MAX {
            return Err(too_much(format!(
                "what is mentioned has more than {MENTIONED_BYTES_MAX} bytes with `{name}`"
            )));
        }
        // Otherwise a model could not distinguish several resources.
        content.push(Content::text(format!("[{name}]")));
        content.extend(blocks);
        read.push(name);
    }
    Ok(Mentioned { content, read })
}

fn too_much(message: String) -> ToolFailure {
    let remedy = "mention less at once, or let the model read it with `read_resource`";
    ToolFailure::Execution { message, remedy: Some(remedy.into()), details: Value::Null }
}

fn size(block: &Content) -> usize {
    match block {
        Content::Text { text } => text.len(),
        Content::Image { data, .. } | Content::Audio { data, .. } => data.len(),
        Content::Resource { text, data, .. } => {
            text.as_ref().map_or(0, String::len) + data.as_ref().map_or(0, String::len)
        }
    }
}

/// The resource lists of the servers, fetched on first use.
type Listed = Option<Vec<(String, Arc<Resources>)>>;

async fn found(
    runtime: &Runtime,
    lists: &AccessLists,
    listed: &mut Listed,
    word: &str,
) -> Result<Option<(String, String)>, ToolFailure> {
    let listed = match listed {
        Some(listed) => listed,
        none => none.insert(runtime.all_resources(|server| lists.shows_server(server)).await),
    };
    // A URI as a whole comes first: its scheme may be the name of a server.
    let is_known = |(_, resources): &(String, Arc<Resources>)| offers(resources, word);
    if listed.iter().any(is_known) {
        return Ok(Some((owner(listed, word)?, word.to_owned())));
    }
    if let Some((server, uri)) = word.split_once(':')
        && !uri.starts_with("//")
        && lists.shows_server(server)
        && runtime.servers().iter().any(|known| known.name == server)
    {
        return Ok(Some((server.to_owned(), uri.to_owned())));
    }
    // A URI that no list and no template names may still be readable: the only server decides.
    if word.contains("://") {
        return Ok(Some((owner(listed, word)?, word.to_owned())));
    }
    Ok(None)
}
