//! Tool selection in a running toolbox. The index belongs to one snapshot and reuses entries of the
//! previous one.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use super::Runtime;
use super::snapshot::Snapshot;
use crate::config::Config;
use crate::embeddings::{Embeddings, Without};
use crate::registry::ActiveTool;
use crate::select::{Choices, Decision, Direction, Meanings, Proposal, Ranked, Selector, ToolText};

/// Maximum number of cached partial indexes.
const PARTS_MAX: usize = 64;

/// The index of one snapshot, built on first use.
pub(crate) struct Choice {
    selector: OnceLock<Arc<Selector>>,
    before: Option<Arc<Selector>>,
    /// Partial indexes, by the positions of their tools.
    parts: Mutex<HashMap<Vec<usize>, Arc<Selector>>>,
    embeddings: Option<Arc<Embeddings>>,
    /// Embeddings of the tools, from the embedding service.
    meanings: ArcSwapOption<Meanings>,
}

impl Choice {
    /// Creates the index of a new snapshot. Entries of unchanged tools are reused.
    pub(super) fn new(config: &Config, old: Option<&Self>) -> Self {
        let before = old.and_then(|old| old.selector.get().or(old.before.as_ref()).cloned());
        Self {
            selector: OnceLock::new(),
            before,
            parts: Mutex::default(),
            embeddings: Embeddings::new(
                config.select.embeddings.as_ref(),
                &config.state_dir.value,
                old.and_then(|old| old.embeddings.as_ref()),
            ),
            meanings: ArcSwapOption::empty(),
        }
    }
}

/// The embeddings of the tools and of a request.
type Answers = (Arc<Meanings>, Vec<(String, Direction)>);

impl Runtime {
    /// Returns the best `count` tools for a request in natural language, best first, with the
    /// reasons of each score. Needs no model, and no network unless an embedding service is
    /// configured.
    pub async fn select(&self, request: &str, count: usize) -> Vec<Ranked> {
        let snapshot = self.inner.snapshot.load_full();
        let positions = for_models(&snapshot, |_, _| true);
        let selector = part(&snapshot, &positions).await;
        match meanings(&snapshot, &selector, request).await {
            Some((tools, request)) => selector.select_by(&tools.only(&positions), &request, count),
            None => selector.select(request, count),
        }
    }

    /// Decides if a request needs a tool, no tool, or a clarifying question.
    pub async fn decide(&self, request: &str, count: usize) -> Decision {
        let snapshot = self.inner.snapshot.load_full();
        let positions = for_models(&snapshot, |_, _| true);
        let selector = part(&snapshot, &positions).await;
        match meanings(&snapshot, &selector, request).await {
            Some((tools, request)) => selector.decide_by(&tools.only(&positions), &request, count),
            None => selector.decide(request, count),
        }
    }

    /// Returns the best `count` tools for a request among a subset, as if there were no others.
    /// `is_meant` receives a tool's server (`None` for a local one) and its name.
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

    /// Proposes examples for tools, from requests and the tools that served them.
    pub async fn propose_examples(&self, served: &[(&str, &str)]) -> Vec<Proposal> {
        selector(&self.inner.snapshot.load_full()).await.propose(served)
    }
}

/// The positions of the selected tools that models may call, by server and name.
fn for_models(snapshot: &Snapshot, is_meant: impl Fn(Option<&str>, &str) -> bool) -> Vec<usize> {
    let tools = snapshot.toolbox.tools().enumerate();
    let chosen = tools.filter(|(_, tool)| {
        !tool.backend.is_app_only() && is_meant(tool.registered.source.server(), tool.name())
    });
    chosen.map(|(position, _)| position).collect()
}

/// Returns the index of a snapshot. Indexing thousands of new tools takes a while, so it runs on a
/// blocking thread.
async fn selector(snapshot: &Arc<Snapshot>) -> Arc<Selector> {
    if let Some(selector) = snapshot.choice.selector.get() {
        return Arc::clone(selector);
    }
    let owned = Arc::clone(snapshot);
    let made = tokio::task::spawn_blocking(move || make_selector(&owned)).await;
    // A runtime that shuts down starts no more threads.
    made.unwrap_or_else(|_| make_selector(snapshot))
}

/// Returns the index of a subset. Word rarity and the calibration of "no tool" depend on the set of
/// tools, so each subset has its own index. Subsets repeat, so it is cached.
async fn part(snapshot: &Arc<Snapshot>, positions: &[usize]) -> Arc<Selector> {
    let whole = selector(snapshot).await;
    if positions.len() == snapshot.toolbox.tools().count() {
        return whole;
    }
    let known = || snapshot.choice.parts.lock();
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
    // A runtime that shuts down starts no more threads.
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

/// Returns the embeddings if a service is configured and answers. The embeddings module logs
/// failures.
async fn meanings(snapshot: &Snapshot, selector: &Selector, request: &str) -> Option<Answers> {
    let embeddings = snapshot.choice.embeddings.as_ref();
    let embeddings = embeddings.filter(|_| !request.trim().is_empty())?;
    let answers = async {
        let tools = tools_meaning(snapshot, embeddings).await?;
        let request = embeddings.request(selector.embedding_inputs(request)).await?;
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
