//! `select`.

use std::time::Duration;

use super::service::http_address;
use super::{explicit, pick, span};
use crate::config::place::{At, Place, Problems};
use crate::config::raw::{RawEmbeddings, RawSelect};
use crate::config::secret::Secret;
use crate::config::select::{EmbeddingsConfig, SelectConfig};

/// Long enough for a batch of descriptions, short enough that a person still waits.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn select(raw: Option<RawSelect>, problems: &mut Problems) -> SelectConfig {
    let RawSelect { embeddings, .. } = raw.unwrap_or_else(|| RawSelect::empty(Place::whole("")));
    SelectConfig { embeddings: embeddings.and_then(|at| service(at, problems)) }
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|it| it.is_ascii_graphic())
}

fn service(at: At<RawEmbeddings>, problems: &mut Problems) -> Option<EmbeddingsConfig> {
    let place = at.place;
    let RawEmbeddings { url, model, api_key, timeout, broken, .. } = at.value;
    let (Some(url), Some(model)) = (url, model) else {
        if broken.is_empty() {
            let remedy =
                "write such as `embeddings: {url: 'http://localhost:11434/v1', model: all-minilm}`";
            problems.error(&place, "`embeddings` needs both `url` and `model`", remedy);
        }
        return None;
    };
    if model.value.trim().is_empty() {
        problems.error(&model.place, "`model` names no model", "write such as `model: all-minilm`");
        return None;
    }
    if let Some(key) = &api_key
        && !is_key(&key.value.text)
    {
        let remedy = "write the key alone, such as `api_key: ${EMBEDDINGS_KEY}`";
        problems.error(&key.place, "`api_key` is empty or has characters that no key has", remedy);
        return None;
    }
    let has_credentials = |url: &url::Url| !url.username().is_empty() || url.password().is_some();
    if url::Url::parse(&url.value.text).is_ok_and(|url| has_credentials(&url)) {
        problems.error(&url.place, "`url` has a name or password in it", "use `api_key`");
        return None;
    }
    let wanted = ("a service of embeddings", "write such as http://localhost:11434/v1");
    Some(EmbeddingsConfig {
        url: http_address(url, wanted, problems)?,
        model: explicit(model, |model| model),
        api_key: api_key.map(|key| explicit(key, |key| Secret::new(key.text))),
        timeout: pick(timeout.map(span), TIMEOUT),
    })
}
