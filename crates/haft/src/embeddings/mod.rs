//! Optional embeddings from an OpenAI-compatible service. The embeddings of tools are cached on
//! disk; while the service fails, the table in the binary is used.

mod cache;
mod service;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::config::select::EmbeddingsConfig;
use crate::select::{CHARS_MAX, Direction, Meanings, ToolText};
use cache::{EmbeddingCache, TextHash, hash};
use haft_text::{beginning, human};
use service::{Refusal, Service};

/// Pause after a failure, so that requests do not wait for its timeout each time.
const PAUSE: Duration = Duration::from_secs(30);
/// Maximum number of inputs per request. Some services accept no more.
const BATCH_TEXTS_MAX: usize = 32;
/// Length to which an input is shortened if the service rejects it.
const SHORT_CHARS_MAX: usize = 300;

/// An embedding service and its cache.
pub(crate) struct Embeddings {
    config: EmbeddingsConfig,
    service: Service,
    /// Locked by one request at a time, so that two requests do not fetch the same embeddings.
    cache: tokio::sync::Mutex<Option<EmbeddingCache>>,
    state_dir: Arc<Path>,
    /// The time of the first failure of an outage.
    failed: Mutex<Option<Instant>>,
}

/// No embeddings are available now. The reason was logged.
#[derive(Debug)]
pub(crate) struct Without;

impl Embeddings {
    /// The service before is used again where the settings are the same.
    pub(crate) fn new(
        config: Option<&EmbeddingsConfig>,
        state_dir: &Path,
        before: Option<&Arc<Self>>,
    ) -> Option<Arc<Self>> {
        let config = config?;
        let same =
            before.filter(|before| before.config == *config && *before.state_dir == *state_dir);
        if let Some(same) = same {
            return Some(Arc::clone(same));
        }
        let service = match Service::new(config) {
            Ok(service) => service,
            Err(problem) => {
                tracing::warn!(
                    "`select.embeddings` cannot be used: {problem}; tools are chosen by the table in the binary"
                );
                return None;
            }
        };
        Some(Arc::new(Self {
            config: config.clone(),
            service,
            cache: tokio::sync::Mutex::default(),
            state_dir: state_dir.into(),
            failed: Mutex::default(),
        }))
    }

    /// Clears the embeddings of tools, because they cannot be compared with those of the current
    /// model.
    pub(crate) async fn forget(&self) {
        tracing::warn!(
            "the vectors from {} have another length than before: the tools are asked about again",
            self.service.shown
        );
        if let Some(cache) = &mut *self.cache.lock().await {
            cache.forget();
        }
    }

    /// Returns the embeddings of a request and its parts.
    pub(crate) async fn request(
        &self,
        texts: Vec<String>,
    ) -> Result<Vec<(String, Direction)>, Without> {
        let sent: Vec<&str> = texts.iter().map(|text| beginning(text, CHARS_MAX)).collect();
        // A rejected request of one user does not disable the service for others.
        let directions = self.ask_each(&sent).await?.map_err(|problem| {
            tracing::debug!("{problem}; this request is compared by the table");
            Without
        })?;
        Ok(texts.into_iter().zip(directions).collect())
    }

    /// Returns the embeddings of tools. Only missing ones are fetched. A toolbox that takes longer
    /// than the time limit of one request is completed over several.
    pub(crate) async fn tools(&self, tools: &[ToolText]) -> Result<Meanings, Without> {
        let texts: Vec<Vec<String>> = tools.iter().map(Meanings::embedding_inputs).collect();
        let (started, limit) = (Instant::now(), self.config.timeout.value);
        // The request that holds the lock reports the failure.
        let locked = tokio::time::timeout(limit, self.cache.lock()).await;
        let mut guard = locked.map_err(|_| Without)?;
        if guard.is_none() {
            *guard = Some(EmbeddingCache::load(self.file()).await);
        }
        let Some(cache) = &mut *guard else { return Err(Without) };
        let missing: HashMap<TextHash, &str> = texts
            .iter()
            .flatten()
            .map(|text| (hash(text), text.as_str()))
            .filter(|(hash, _)| !cache.has(hash))
            .collect();
        let missing: Vec<(TextHash, &str)> = missing.into_iter().collect();
        for (at, batch) in missing.chunks(BATCH_TEXTS_MAX).enumerate() {
            if at > 0 && started.elapsed() >= limit {
                tracing::warn!(
                    "{} has not seen all tools after {} (`select.embeddings.timeout`); this time they are chosen by the \
                     table in the binary",
                    self.service.shown,
                    human(limit)
                );
                return Err(Without);
            }
            let asked: Vec<&str> = batch.iter().map(|(_, text)| *text).collect();
            let directions = self.ask_each(&asked).await?;
            let directions = directions.map_err(|problem| self.fails(&problem))?;
            cache.add(batch.iter().map(|(hash, _)| *hash).zip(directions));
            // Saved at once, so that it is not fetched again after a failure.
            if let Err(error) = cache.save(texts.iter().flatten().map(|text| hash(text))).await {
                let file = self.file();
                tracing::warn!("embeddings cannot be kept in `{}`: {error}", file.display());
            }
        }
        let meanings = cache.meanings(&texts);
        meanings.ok_or_else(|| self.fails("its vectors do not all have one length"))
    }

    /// Fetches a batch; if the service rejects an input, fetches each alone, and shortens the
    /// rejected one. The inner error is a rejection of the shortened input.
    async fn ask_each(&self, texts: &[&str]) -> Result<Result<Vec<Direction>, String>, Without> {
        match self.ask(texts).await? {
            Ok(directions) => return Ok(Ok(directions)),
            Err(problem) => tracing::debug!("{problem}; the inputs are sent one by one"),
        }
        let mut directions = Vec::with_capacity(texts.len());
        for text in texts {
            let direction = match self.ask(&[text]).await? {
                Ok(direction) => Ok(direction),
                Err(_) => self.ask(&[beginning(text, SHORT_CHARS_MAX)]).await?,
            };
            match direction {
                Ok(direction) => directions.extend(direction),
                Err(problem) => return Ok(Err(problem)),
            }
        }
        Ok(Ok(directions))
    }

    /// Sends one request. The inner error concerns an input, and not the service.
    async fn ask(&self, texts: &[&str]) -> Result<Result<Vec<Direction>, String>, Without> {
        self.may_ask()?;
        match self.service.ask(texts).await {
            Ok(directions) => {
                self.works();
                Ok(Ok(directions))
            }
            Err(Refusal::Text(problem)) => Ok(Err(problem)),
            Err(Refusal::Down(problem)) => Err(self.fails(&problem)),
        }
    }

    /// After a pause one request probes the service; others do not wait for it.
    fn may_ask(&self) -> Result<(), Without> {
        let mut failed = self.failed();
        match *failed {
            Some(since) if since.elapsed() < PAUSE => Err(Without),
            Some(_) => {
                *failed = Some(Instant::now());
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn works(&self) {
        if self.failed().take().is_some() {
            tracing::info!("embeddings come again from {}", self.service.shown);
        }
    }

    /// Logs once per outage.
    fn fails(&self, problem: &str) -> Without {
        let before = self.failed().replace(Instant::now());
        if before.is_none() {
            tracing::warn!(
                "no embeddings from {}: {problem}; tools are chosen by the table in the binary until it answers",
                self.service.shown
            );
        }
        Without
    }

    fn failed(&self) -> MutexGuard<'_, Option<Instant>> {
        self.failed.lock()
    }

    fn file(&self) -> std::path::PathBuf {
        cache::file(&self.state_dir, &self.service.shown, &self.config.model.value)
    }
}
