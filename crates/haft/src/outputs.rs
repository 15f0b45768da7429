//! Results that were too long for their caller, kept for a while so that the caller can read on.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// The name of the tool that reads on.
pub const READ_OUTPUT: &str = "read_output";

/// Maximum number of kept results, and of their bytes. The oldest go first.
const OUTPUTS_MAX: usize = 1000;
const OUTPUT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The kept results of a runtime.
#[derive(Clone, Default)]
pub(crate) struct OutputStore(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    outputs: HashMap<String, Output>,
    oldest_first: VecDeque<String>,
    bytes: usize,
}

struct Output {
    /// Only this caller reads it.
    reader: Option<String>,
    text: Arc<str>,
}

/// A part of a result.
pub(crate) struct OutputPart {
    pub(crate) text: String,
    /// The offset of the next part; `None` at the end.
    pub(crate) next: Option<usize>,
    pub(crate) total: usize,
}

impl OutputStore {
    /// Keeps the whole text of a result for its reader.
    pub(crate) fn keep(&self, execution_id: &str, reader: Option<String>, text: &str) {
        if text.len() > OUTPUT_BYTES_MAX {
            return;
        }
        let mut kept = self.lock();
        while kept.bytes + text.len() > OUTPUT_BYTES_MAX || kept.outputs.len() >= OUTPUTS_MAX {
            let Some(oldest) = kept.oldest_first.pop_front() else { break };
            if let Some(gone) = kept.outputs.remove(&oldest) {
                kept.bytes -= gone.text.len();
            }
        }
        kept.bytes += text.len();
        kept.oldest_first.push_back(execution_id.to_owned());
        kept.outputs.insert(execution_id.to_owned(), Output { reader, text: text.into() });
    }

    /// Returns a part of a result, at most `bytes_max` long. `None` for one that is not kept or belongs to
    /// another caller: both look the same.
    pub(crate) fn read(
        &self,
        execution_id: &str,
        reader: Option<&str>,
        offset: usize,
        bytes_max: usize,
    ) -> Option<OutputPart> {
        let text = {
            let kept = self.lock();
            let output = kept.outputs.get(execution_id)?;
            (output.reader.as_deref() == reader).then(|| Arc::clone(&output.text))?
        };
        let start = text.floor_char_boundary(offset);
        let end = text.floor_char_boundary(start.saturating_add(bytes_max));
        let next = (end < text.len()).then_some(end);
        Some(OutputPart { text: text[start..end].to_owned(), next, total: text.len() })
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock()
    }
}

/// The note that a model reads where its text ends.
pub(crate) fn note(execution_id: &str, left: usize, total: usize, next: usize) -> String {
    format!(
        "\n[{left} of {total} bytes cut here; call `{READ_OUTPUT}` with {{\"execution_id\": \
         \"{execution_id}\", \"offset\": {next}}} to read on]"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_join_to_the_whole_and_only_for_their_reader() {
        let store = OutputStore::default();
        let whole = "äbc".repeat(100);
        store.keep("1", Some("me".into()), &whole);
        let (mut text, mut offset) = (String::new(), Some(0));
        while let Some(at) = offset {
            let part = store.read("1", Some("me"), at, 7).unwrap();
            assert_eq!(part.total, whole.len());
            text.push_str(&part.text);
            offset = part.next;
        }
        assert_eq!(text, whole);
        assert!(store.read("1", Some("you"), 0, 7).is_none());
        assert!(store.read("1", None, 0, 7).is_none() && store.read("2", None, 0, 7).is_none());
        assert_eq!(store.read("1", Some("me"), usize::MAX, 7).unwrap().text, "");
    }

    #[test]
    fn the_oldest_go_first() {
        let store = OutputStore::default();
        for id in 0..=OUTPUTS_MAX {
            store.keep(&id.to_string(), None, "text");
        }
        assert!(store.read("0", None, 0, 1).is_none() && store.read("1", None, 0, 1).is_some());
        store.keep("large", None, &"x".repeat(OUTPUT_BYTES_MAX));
        assert!(store.read("1", None, 0, 1).is_none() && store.read("large", None, 0, 1).is_some());
    }
}
