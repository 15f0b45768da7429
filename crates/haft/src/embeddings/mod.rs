//! A stronger sense of meaning by setting: an OpenAI-compatible service of embeddings. What it said of the tools is
//! kept on disk; while it fails, the table in the binary does its work.

mod kept;
mod service;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::config::select::EmbeddingsConfig;
use crate::select::{Direction, Meanings, ToolText};
use kept::{Kept, TextHash, hash};
use service::Service;

/// How long a service that failed is left alone: nobody waits for its timeout at every request.
const PAUSE: Duration = Duration::from_secs(30);
/// How many texts one request holds. Some services take no more.
const BATCH_TEXTS_MAX: usize = 32;

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

/// Why there are no embeddings.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EmbeddingsError {
    /// The service failed a moment ago.
    #[error("it failed a moment ago")]
    Paused,
    /// The service failed.
    #[error("{0}")]
    Failed(String),
}

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

    /// What the service says of tools. Only what it was never asked about is asked for.
    pub(crate) async fn tools(&self, tools: &[ToolText]) -> Result<Meanings, EmbeddingsError> {
        let texts: Vec<Vec<String>> = tools.iter().map(Meanings::texts).collect();
        let mut guard = self.kept.lock().await;
        let mut kept = match guard.take() {
            Some(kept) => kept,
            None => Kept::load(self.file()).await,
        };
        let learned = self.learn(&mut kept, &texts).await;
        let meanings = learned.and_then(|()| kept.meanings(&texts).ok_or_else(mixed));
        *guard = Some(kept);
        meanings
    }

    /// What the service says of a request and its parts.
    pub(crate) async fn request(
        &self,
        texts: Vec<String>,
    ) -> Result<Vec<(String, Direction)>, EmbeddingsError> {
        let directions = self.ask(&texts).await?;
        Ok(texts.into_iter().zip(directions).collect())
    }

    async fn learn(&self, kept: &mut Kept, texts: &[Vec<String>]) -> Result<(), EmbeddingsError> {
        let missing: HashMap<TextHash, &String> = texts
            .iter()
            .flatten()
            .map(|text| (hash(text), text))
            .filter(|(hash, _)| !kept.has(hash))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let missing: Vec<(TextHash, &String)> = missing.into_iter().collect();
        let mut asked = Ok(());
        for batch in missing.chunks(BATCH_TEXTS_MAX) {
            let texts: Vec<&str> = batch.iter().map(|(_, text)| text.as_str()).collect();
            match self.ask(&texts).await {
                Ok(directions) => {
                    kept.add(batch.iter().map(|(hash, _)| *hash).zip(directions));
                }
                Err(error) => {
                    asked = Err(error);
                    break;
                }
            }
        }
        // Also where it failed half-way: what is known is not asked for again.
        if let Err(error) = kept.save(texts.iter().flatten().map(|text| hash(text))).await {
            let file = self.file();
            tracing::warn!("embeddings cannot be kept in `{}`: {error}", file.display());
        }
        asked
    }

    async fn ask<T: AsRef<str> + serde::Serialize + Sync>(
        &self,
        texts: &[T],
    ) -> Result<Vec<Direction>, EmbeddingsError> {
        if self.failed().is_some_and(|since| since.elapsed() < PAUSE) {
            return Err(EmbeddingsError::Paused);
        }
        match self.service.ask(texts).await {
            Ok(directions) => {
                self.works();
                Ok(directions)
            }
            Err(problem) => {
                self.fails(&problem);
                Err(EmbeddingsError::Failed(problem))
            }
        }
    }

    fn failed(&self) -> Option<Instant> {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn works(&self) {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        if failed.is_some() {
            tracing::info!("embeddings come again from {}", self.service.shown);
        }
    }

    /// Says so once for each outage.
    fn fails(&self, problem: &str) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.is_none() {
            tracing::warn!(
                "no embeddings from {}: {problem}; tools are chosen by the table in the binary until it answers",
                self.service.shown
            );
        }
        *failed = Some(Instant::now());
    }

    fn file(&self) -> std::path::PathBuf {
        kept::file(&self.state_dir, &self.service.shown, &self.config.model.value)
    }
}

/// Vectors of two lengths cannot be compared; the next time all are asked for anew.
fn mixed() -> EmbeddingsError {
    EmbeddingsError::Failed("its vectors do not all have one length".to_owned())
}
