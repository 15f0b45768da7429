//! A stronger sense of meaning by setting: an OpenAI-compatible service of embeddings. What it said of the tools is
//! kept on disk; while it fails, the table in the binary does its work.

mod kept;
mod service;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::config::select::EmbeddingsConfig;
use crate::error::human;
use crate::select::{CHARS_MAX, Direction, Meanings, ToolText};
use crate::text::beginning;
use kept::{Kept, TextHash, hash};
use service::{Refusal, Service};

/// How long a service that failed is left alone: nobody waits for its timeout at every request.
const PAUSE: Duration = Duration::from_secs(30);
/// How many texts one request holds. Some services take no more.
const BATCH_TEXTS_MAX: usize = 32;
/// What is sent of a text that the service does not take whole.
const SHORT_CHARS_MAX: usize = 300;

/// A service of embeddings, and what it said.
pub(crate) struct Embeddings {
    config: EmbeddingsConfig,
    service: Service,
    /// One at a time, so that two requests do not ask for the same texts.
    kept: tokio::sync::Mutex<Option<Kept>>,
    state_dir: Arc<Path>,
    /// Since when the service fails.
    failed: Mutex<Option<Instant>>,
}

/// There are no embeddings now. Why was logged.
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
            kept: tokio::sync::Mutex::default(),
            state_dir: state_dir.into(),
            failed: Mutex::default(),
        }))
    }

    /// Forgets what is known of tools: it cannot be compared with what the service says now.
    pub(crate) async fn forget(&self) {
        tracing::warn!(
            "the vectors from {} have another length than before: the tools are asked about again",
            self.service.shown
        );
        if let Some(kept) = &mut *self.kept.lock().await {
            kept.forget();
        }
    }

    /// What the service says of a request and its parts.
    pub(crate) async fn request(
        &self,
        texts: Vec<String>,
    ) -> Result<Vec<(String, Direction)>, Without> {
        let sent: Vec<&str> = texts.iter().map(|text| beginning(text, CHARS_MAX)).collect();
        // What one person wrote is no reason to do without the service for all others.
        let directions = self.ask_each(&sent).await?.map_err(|problem| {
            tracing::debug!("{problem}; this request is compared by the table");
            Without
        })?;
        Ok(texts.into_iter().zip(directions).collect())
    }

    /// What the service says of tools. Only what it was never asked about is asked for. A toolbox that takes longer than
    /// the setting allows for one request is gone through over several.
    pub(crate) async fn tools(&self, tools: &[ToolText]) -> Result<Meanings, Without> {
        let texts: Vec<Vec<String>> = tools.iter().map(Meanings::texts).collect();
        let (started, limit) = (Instant::now(), self.config.timeout.value);
        // Somebody else who asks about the tools says what comes of it.
        let locked = tokio::time::timeout(limit, self.kept.lock()).await;
        let mut guard = locked.map_err(|_| Without)?;
        if guard.is_none() {
            *guard = Some(Kept::load(self.file()).await);
        }
        let Some(kept) = &mut *guard else { return Err(Without) };
        let missing: HashMap<TextHash, &str> = texts
            .iter()
            .flatten()
            .map(|text| (hash(text), text.as_str()))
            .filter(|(hash, _)| !kept.has(hash))
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
            kept.add(batch.iter().map(|(hash, _)| *hash).zip(directions));
            // At once, so that it is not asked for again whatever comes.
            if let Err(error) = kept.save(texts.iter().flatten().map(|text| hash(text))).await {
                let file = self.file();
                tracing::warn!("embeddings cannot be kept in `{}`: {error}", file.display());
            }
        }
        let meanings = kept.meanings(&texts);
        meanings.ok_or_else(|| self.fails("its vectors do not all have one length"))
    }

    /// Asks for texts at once; where the service does not take one of them, for each alone, and of that one for its
    /// beginning. The inner error is that it does not take that either.
    async fn ask_each(&self, texts: &[&str]) -> Result<Result<Vec<Direction>, String>, Without> {
        match self.ask(texts).await? {
            Ok(directions) => return Ok(Ok(directions)),
            Err(problem) => tracing::debug!("{problem}; the texts are sent one by one"),
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

    /// Asks once. The inner error is one of the texts, and not of the service.
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

    /// After a pause one request finds out whether the service is back; nobody else waits for that.
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

    /// Says so once for each outage.
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
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self) -> std::path::PathBuf {
        kept::file(&self.state_dir, &self.service.shown, &self.config.model.value)
    }
}
