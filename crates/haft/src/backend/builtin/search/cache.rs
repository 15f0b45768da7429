//! A time-limited cache of answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use super::answer::Found;
use super::question::Question;

/// Maximum number of cached questions.
const QUESTIONS_MAX: usize = 256;

pub(super) struct Cache {
    kept_for: Duration,
    entries: Mutex<HashMap<Question, Entry>>,
}

struct Entry {
    since: Instant,
    found: Arc<Vec<Found>>,
}

impl Cache {
    pub(super) fn new(kept_for: Duration) -> Self {
        Self { kept_for, entries: Mutex::default() }
    }

    pub(super) fn get(&self, question: &Question) -> Option<Arc<Vec<Found>>> {
        let entries = self.entries();
        let entry = entries.get(question).filter(|entry| entry.since.elapsed() < self.kept_for)?;
        Some(Arc::clone(&entry.found))
    }

    pub(super) fn put(&self, question: Question, found: Arc<Vec<Found>>) {
        let mut entries = self.entries();
        entries.retain(|_, entry| entry.since.elapsed() < self.kept_for);
        if entries.len() >= QUESTIONS_MAX {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.since);
            if let Some(oldest) = oldest.map(|(question, _)| question.clone()) {
                entries.remove(&oldest);
            }
        }
        entries.insert(question, Entry { since: Instant::now(), found });
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Question, Entry>> {
        self.entries.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(number: usize) -> Question {
        let query = number.to_string();
        Question { query, max_results: 5, time_range: None }
    }

    #[test]
    fn the_oldest_question_makes_room() {
        let cache = Cache::new(Duration::from_mins(1));
        for number in 0..=QUESTIONS_MAX {
            cache.put(question(number), Arc::default());
        }
        assert_eq!(cache.entries().len(), QUESTIONS_MAX);
        assert!(cache.get(&question(0)).is_none() && cache.get(&question(1)).is_some());
    }

    #[test]
    fn nothing_is_kept_for_no_time() {
        let cache = Cache::new(Duration::ZERO);
        cache.put(question(1), Arc::default());
        assert!(cache.get(&question(1)).is_none());
    }
}
