//! Choosing tools of a running toolbox: the index belongs to one state, and begins with that of the state before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

#[cfg(feature = "mcp")]
use arc_swap::ArcSwapOption;

use super::Runtime;
use super::snapshot::Snapshot;
use crate::config::Config;
#[cfg(feature = "mcp")]
use crate::embeddings::{Embeddings, Without};
use crate::registry::ActiveTool;
use crate::select::{Choices, Decision, Direction, Meanings, Proposal, Ranked, Selector, ToolText};

/// How many indexes of parts are kept.
const PARTS_MAX: usize = 64;

/// The index of one state, made when it is first asked for.
pub(crate) struct Choice {
    selector: OnceLock<Arc<Selector>>,
    before: Option<Arc<Selector>>,
    /// Indexes of parts, by the places of their tools.
    parts: Mutex<HashMap<Vec<usize>, Arc<Selector>>>,
    #[cfg(feature = "mcp")]
    embeddings: Option<Arc<Embeddings>>,
    /// What the service of embeddings says of the tools.
    #[cfg(feature = "mcp")]
    meanings: ArcSwapOption<Meanings>,
}

impl Choice {
    /// The index of the state after another one. What was computed for tools that stay is used again.
    pub(super) fn new(config: &Config, old: Option<&Self>) -> Self {
        let before = old.and_then(|old| old.selector.get().or(old.before.as_ref()).cloned());
        #[cfg(not(feature = "mcp"))]
        if config.select.embeddings.is_some() && old.is_none() {
            tracing::warn!("`select.embeddings` has no effect: this Haft was built without HTTP");
        }
        Self {
            selector: OnceLock::new(),
            before,
            parts: Mutex::default(),
            #[cfg(feature = "mcp")]
            embeddings: Embeddings::new(
                config.select.embeddings.as_ref(),
                &config.state_dir.value,
                old.and_then(|old| old.embeddings.as_ref()),
            ),
            #[cfg(feature = "mcp")]
            meanings: ArcSwapOption::empty(),
        }
    }
}

/// What a service says of the tools and of a request.
type Answers = (Arc<Meanings>, Vec<(String, Direction)>);

impl Runtime {
    /// The best `count` tools for a request in plain words, best first, and what each rests on. Needs no model, and
    /// no network unless the configuration names a service of embeddings.
    pub async fn select(&self, request: &str, count: usize) -> Vec<Ranked> {
        let snapshot = self.inner.snapshot.load_full();
        let positions = for_models(&snapshot, |_, _| true);
        let selector = part(&snapshot, &positions).await;
        match meanings(&snapshot, &selector, request).await {
            Some((tools, request)) => selector.select_by(&tools.only(&positions), &request, count),
            None => selector.select(request, count),
        }
    }

    /// Whether a request calls for one of the tools, for none, or for asking back.
    pub async fn decide(&self, request: &str, count: usize) -> Decision {
        let snapshot = self.inner.snapshot.load_full();
        let positions = for_models(&snapshot, |_, _| true);
        let selector = part(&snapshot, &positions).await;
        match meanings(&snapshot, &selector, request).await {
            Some((tools, request)) => selector.decide_by(&tools.only(&positions), &request, count),
            None => selector.decide(request, count),
        }
    }

    /// The best `count` tools for a request among some of them, as if there were no others; `is_meant` gets a tool's
    /// server (none for a local one) and its name.
    pub async fn choose_among(
        &self,
        request: &str,
        count: usize,
        is_meant: impl Fn(Option<&str>, &str) -> bool,
    ) -> Choices {
        let snapshot = self.inner.snapshot.load_full();
        let positions = for_models(&snapshot, is_meant);
        let selector = part(&snapshot, &positions).await;
        match meanings(&snapshot, &selector, request).await {
            Some((tools, request)) => {
                let tools = tools.only(&positions);
                Choices::new(selector.decide_by(&tools, &request, count), || {
                    selector.select_by(&tools, &request, count)
                })
            }
            None => {
                Choices::new(selector.decide(request, count), || selector.select(request, count))
            }
        }
    }

    /// Proposes examples for tools, from requests in plain words and the tools that served them.
    pub async fn propose_examples(&self, served: &[(&str, &str)]) -> Vec<Proposal> {
        selector(&self.inner.snapshot.load_full()).await.propose(served)
    }
}

/// The positions of the tools that models may call and that are meant, by their servers and names.
fn for_models(snapshot: &Snapshot, is_meant: impl Fn(Option<&str>, &str) -> bool) -> Vec<usize> {
    let tools = snapshot.toolbox.tools().enumerate();
    let chosen = tools.filter(|(_, tool)| {
        !tool.backend.is_app_only() && is_meant(tool.registered.source.server(), tool.name())
    });
    chosen.map(|(position, _)| position).collect()
}

/// The index of a state. Thousands of new tools take a while, in which nobody else may be kept waiting.
async fn selector(snapshot: &Arc<Snapshot>) -> Arc<Selector> {
    if let Some(selector) = snapshot.choice.selector.get() {
        return Arc::clone(selector);
    }
    let owned = Arc::clone(snapshot);
    let made = tokio::task::spawn_blocking(move || make_selector(&owned)).await;
    // A runtime that is ending makes no more threads.
    made.unwrap_or_else(|_| make_selector(snapshot))
}

/// The index of the tools at these places. How rare a word is, and what "no tool" looks like, depends on which tools
/// there are, so it is one of its own; who asks for a part once does so again.
async fn part(snapshot: &Arc<Snapshot>, positions: &[usize]) -> Arc<Selector> {
    let whole = selector(snapshot).await;
    if positions.len() == snapshot.toolbox.tools().count() {
        return whole;
    }
    let known = || snapshot.choice.parts.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(part) = known().get(positions) {
        return Arc::clone(part);
    }
    let all: Vec<&Arc<ActiveTool>> = snapshot.toolbox.tools().collect();
    let tools: Vec<ToolText> =
        positions.iter().filter_map(|&at| all.get(at)).map(|tool| text(tool)).collect();
    let made = tokio::task::spawn_blocking({
        let (whole, tools) = (Arc::clone(&whole), tools.clone());
        move || whole.updated(&tools)
    });
    // A runtime that is ending makes no more threads.
    let part = Arc::new(made.await.unwrap_or_else(|_| whole.updated(&tools)));
    let mut known = known();
    if known.len() >= PARTS_MAX {
        known.clear();
    }
    known.insert(positions.to_vec(), Arc::clone(&part));
    part
}

fn make_selector(snapshot: &Snapshot) -> Arc<Selector> {
    let Choice { selector, before, .. } = &snapshot.choice;
    let selector = selector.get_or_init(|| {
        let tools = texts(snapshot);
        Arc::new(match before {
            Some(before) => before.updated(&tools),
            None => Selector::new(&tools),
        })
    });
    Arc::clone(selector)
}

/// What the service of embeddings says, where there is one and it answers. That it does not is logged there.
#[cfg(feature = "mcp")]
async fn meanings(snapshot: &Snapshot, selector: &Selector, request: &str) -> Option<Answers> {
    let embeddings = snapshot.choice.embeddings.as_ref();
    let embeddings = embeddings.filter(|_| !request.trim().is_empty())?;
    let answers = async {
        let tools = tools_meaning(snapshot, embeddings).await?;
        let request = embeddings.request(selector.texts(request)).await?;
        if tools.fits(&request) {
            return Ok((tools, request));
        }
        embeddings.forget().await;
        snapshot.choice.meanings.store(None);
        let tools = tools_meaning(snapshot, embeddings).await?;
        if tools.fits(&request) { Ok((tools, request)) } else { Err(Without) }
    };
    answers.await.ok()
}

#[cfg(feature = "mcp")]
async fn tools_meaning(
    snapshot: &Snapshot,
    embeddings: &Embeddings,
) -> Result<Arc<Meanings>, Without> {
    let known = &snapshot.choice.meanings;
    if let Some(known) = known.load_full() {
        return Ok(known);
    }
    let meanings = Arc::new(embeddings.tools(&texts(snapshot)).await?);
    known.store(Some(Arc::clone(&meanings)));
    Ok(meanings)
}

#[cfg(not(feature = "mcp"))]
async fn meanings(_: &Snapshot, _: &Selector, _: &str) -> Option<Answers> {
    None
}

fn texts(snapshot: &Snapshot) -> Vec<ToolText> {
    snapshot.toolbox.tools().map(|tool| text(tool)).collect()
}

fn text(tool: &ActiveTool) -> ToolText {
    let registered = &tool.registered;
    let definition = &registered.definition;
    let mut examples = tool.backend.examples();
    examples.extend(registered.effective.examples.iter().cloned());
    ToolText {
        name: registered.name.clone(),
        server: registered.source.server().map(ToOwned::to_owned),
        title: definition.title.clone(),
        description: definition.description.clone(),
        input_schema: definition.input_schema.clone(),
        examples,
    }
}
