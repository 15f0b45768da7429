//! Ranks the tools for a request: shared words and meaning, for the whole and for its parts.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use super::arguments::Given;
use super::entry::Entry;
use super::expand;
use super::index::Index;
use super::meaning::{Known, on_the_scale_of};
use super::names::{self, Named};
use super::operation;
use super::segment;
use super::text::{self, Word};
use super::values::{self, Chunk};
use super::vector::Vector;
use haft_text::beginning;

/// The scores of a request for each tool.
pub(super) struct Scores {
    pub(super) total: Vec<f32>,
    /// The scores of each part of a request with several parts. The best is in `total`.
    pub(super) parts: Vec<Vec<f32>>,
    /// Shared words, against what a perfect match would share.
    pub(super) lexical: Vec<f32>,
    /// The cosine of the request and the tool or its nearest example.
    pub(super) semantic: Vec<f32>,
    /// The cosines of a service, if configured. They count beside the table's.
    pub(super) known: Option<Vec<f32>>,
    pub(super) words: Vec<Word>,
    /// Tools that the request names.
    pub(super) named: Vec<(usize, Named)>,
}

/// Requests beyond this are cut for the ranking.
const REQUEST_CHARS_MAX: usize = 4000;
/// A part with this many words can stand alone.
const PART_WORDS_MIN: usize = 2;
/// No score to divide by is smaller.
const TOP_MIN: f32 = 0.01;

impl Scores {
    /// The scores of every tool for a request.
    pub(super) fn new(index: &Index, request: &str, known: Option<Known<'_>>) -> Self {
        let request = beginning(request, REQUEST_CHARS_MAX);
        let mut scores = one(index, request, known);
        let parts = parts(index, request);
        scores.parts = add_parts(index, &mut scores.total, &parts, known);
        add_siblings(index, &mut scores.total);
        scores.named = names::named(&index.names, request);
        scores
    }

    /// The order of two tools, by scores that may differ from `total`.
    pub(super) fn order(&self, scores: &[f32], a: usize, b: usize) -> Ordering {
        let naming = |tool: usize| self.named.iter().find(|it| it.0 == tool).map(|it| it.1);
        let named = if self.named.is_empty() { Ordering::Equal } else { naming(b).cmp(&naming(a)) };
        named.then(scores[b].total_cmp(&scores[a])).then(a.cmp(&b))
    }
}

/// The request and its parts, as they are compared with tools.
pub(super) fn texts(index: &Index, request: &str) -> Vec<String> {
    let request = beginning(request, REQUEST_CHARS_MAX);
    std::iter::once(request).chain(parts(index, request)).map(ToOwned::to_owned).collect()
}

fn parts<'a>(index: &Index, request: &'a str) -> Vec<&'a str> {
    segment::parts(request, |part| content(&index.words.of(part)) >= PART_WORDS_MIN)
}

/// Adds the score of the best matching part to each tool. Parts are scaled alike, so that each of
/// them gets its tools among the first. Returns the scores of each part.
fn add_parts(
    index: &Index,
    total: &mut [f32],
    parts: &[&str],
    known: Option<Known<'_>>,
) -> Vec<Vec<f32>> {
    if parts.is_empty() {
        return Vec::new();
    }
    let weights = &index.weights;
    let scale =
        |scores: &[f32]| scores.iter().copied().fold(TOP_MIN, f32::max).powf(weights.part_scale);
    let part = |part: &&str| {
        let mut scores = one(index, part, known).total;
        let factor = weights.part / scale(&scores);
        for score in &mut scores {
            *score *= factor;
        }
        scores
    };
    let parts: Vec<Vec<f32>> = parts.iter().map(part).collect();
    let scale = scale(total);
    for (tool, total) in total.iter_mut().enumerate() {
        let best = parts.iter().map(|part| part[tool]).fold(f32::MIN, f32::max);
        *total = *total / scale + best;
    }
    parts
}

/// A request for one tool of a server often needs another one of it.
fn add_siblings(index: &Index, total: &mut [f32]) {
    let mut best = vec![f32::MIN; total.len()];
    for (score, server) in total.iter().zip(&index.servers) {
        let best = &mut best[*server as usize];
        *best = best.max(*score);
    }
    for (score, server) in total.iter_mut().zip(&index.servers) {
        *score += index.weights.sibling * best[*server as usize];
    }
}

/// Adds the scores of the verb and the values of a request. `say` is the weight of the verb: long
/// requests have many verbs.
fn add_fit(index: &Index, chunks: &[Chunk<'_>], say: f32, total: &mut [f32]) {
    let weights = &index.weights;
    let wanted = operation::of_request(chunks);
    let given = Given::new(index, chunks);
    let agreement = |entry: &Arc<Entry>| operation::agreement(wanted, entry.operations);
    let agreements: Vec<f32> = index.entries.iter().map(agreement).collect();
    // The verb distinguishes the tools of one server, but not the servers.
    let mut best = vec![f32::MIN; total.len()];
    for (agreement, server) in agreements.iter().zip(&index.servers) {
        let best = &mut best[*server as usize];
        *best = best.max(*agreement);
    }
    for (tool, entry) in index.entries.iter().enumerate() {
        let behind = agreements[tool] - best[index.servers[tool] as usize];
        let id = if given.has_id_for(entry) { weights.id } else { 0.0 };
        total[tool] +=
            say * weights.operation * behind + weights.accepted * given.taken_by(entry) + id;
    }
}

fn one(index: &Index, request: &str, known: Option<Known<'_>>) -> Scores {
    let weights = &index.weights;
    let chunks = values::chunks(request);
    let mut words = Vec::new();
    for chunk in &chunks {
        let weight = weights.in_words(chunk);
        words.extend(index.words.of(chunk.text).into_iter().map(|word| Word { weight, ..word }));
    }
    let expanded = expand::expand(request, &words);
    let mut seen: HashSet<String> = HashSet::new();
    // A repeated word counts once, with its higher weight.
    words.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    words.retain(|word| seen.insert(word.stem.clone()));
    #[allow(clippy::cast_precision_loss, reason = "a request has at most thousands of words")]
    let content = content(&words) as f32;
    // Long requests share words by chance with many tools, and with the right one most of all.
    let ramp = ((content - weights.ramp_begin) / weights.ramp_words).clamp(0.0, 1.0);
    let mut lexical = vec![0.0; index.entries.len()];
    let shared = words.iter().map(|word| index.add(&word.stem, word.weight, &mut lexical));
    let ideal: f32 = shared.sum();
    for word in index.words.of(&expanded) {
        if seen.insert(word.stem.clone()) {
            index.add(&word.stem, weights.expanded * (1.0 - ramp), &mut lexical);
        }
    }
    let best = lexical.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    let ideal = ideal.max(f32::MIN_POSITIVE);
    let factor = weights.lexical / ideal + weights.relative * ramp / best;
    let share = weights.expanded_direction * (1.0 - ramp);
    let mut direction = Vector::of_request(request, weights);
    if !expanded.is_empty() {
        direction = Vector::blend(&[(&direction, 1.0), (&Vector::of(&expanded), share)]);
    }
    let near = |entry: &Arc<Entry>| entry.cosine(&direction, weights);
    let semantic: Vec<f32> = index.entries.iter().map(near).collect();
    let known = known.and_then(|known| known.cosines(request, weights));
    // Embeddings of other tools do not apply.
    let known = known.filter(|cosines| cosines.len() == index.entries.len());
    let meant = known.as_ref().map(|known| {
        let known = on_the_scale_of(known, &semantic);
        let both = known.iter().zip(&semantic);
        both.map(|(known, table)| weights.known * known + weights.table * table).collect()
    });
    let meant: &Vec<f32> = meant.as_ref().unwrap_or(&semantic);
    let total = meant.iter().zip(&lexical).map(|(cosine, shared)| cosine + factor * shared);
    let mut total: Vec<f32> = total.collect();
    add_fit(index, &chunks, 1.0 - ramp, &mut total);
    for shared in &mut lexical {
        *shared /= ideal;
    }
    Scores { total, parts: Vec::new(), lexical, semantic, known, words, named: Vec::new() }
}

/// The number of meaningful words.
pub(super) fn content(words: &[Word]) -> usize {
    words.iter().filter(|word| !text::is_stop_word(&word.text)).count()
}
