//! Completion with Tab in a chat: commands, tools, prompts, resources and models.

use std::time::Duration;

use haft::{ResourceInfo, Runtime};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::commands::WORDS;
use crate::cli::agent::Complete;
use crate::cli::toolbox;

/// Time for servers to list their resources while a person waits.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);

/// Examples of models, each with the provider's name in front.
const MODELS: [&str; 5] = [
    "anthropic::claude-sonnet-4-5",
    "gemini::gemini-2.5-pro",
    "ollama::qwen3",
    "openai::gpt-5",
    "openai::gpt-5-mini",
];

/// The completions of a conversation with this toolbox.
pub(super) fn complete(runtime: Runtime, handle: Handle) -> Box<Complete> {
    Box::new(move |line, start, word| {
        if start == 0 && word.starts_with('/') {
            return WORDS.iter().map(|word| (*word).to_owned()).collect();
        }
        if word.starts_with('@') {
            // The timer belongs to the runtime and is created in its context: this is the editor's own thread.
            let resources = handle.block_on(async { timeout(LIST_TIMEOUT, uris(&runtime)).await });
            return resources.unwrap_or_default();
        }
        match line.split_whitespace().next() {
            Some("/prompt") => runtime.prompts().into_iter().map(|it| it.name).collect(),
            Some("/model") => {
                let own = runtime.config().agent.model.as_ref().map(|it| it.value.clone());
                MODELS.iter().map(|it| (*it).to_owned()).chain(own).collect()
            }
            _ if word.is_empty() => Vec::new(),
            _ => runtime.tools().into_iter().map(|tool| tool.name).collect(),
        }
    })
}

/// The resources of the connected servers, as a message mentions them.
async fn uris(runtime: &Runtime) -> Vec<String> {
    let servers = runtime.servers();
    let reached = servers.iter().filter(|server| toolbox::answers(server));
    let names: Vec<String> = reached.map(|server| server.name.clone()).collect();
    let lists = toolbox::ask_each(names, |server| {
        let runtime = runtime.clone();
        async move { runtime.resources(&server).await.unwrap_or_default() }
    });
    let uri = |resource: ResourceInfo| match resource {
        ResourceInfo::Resource { resource, .. } => Some(format!("@{}", resource.uri)),
        ResourceInfo::Template { .. } => None,
    };
    lists.await.into_iter().flat_map(|(_, list)| list).filter_map(uri).collect()
}
