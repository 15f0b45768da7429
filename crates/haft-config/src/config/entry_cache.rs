//! The entries of `tools.json` that an earlier load compiled. A load after a change reads and compiles the changed
//! entries alone.
//!
//! An entry is reused if its text is the same, because its result depends on nothing else: one with a reference to a
//! variable or with a warning is compiled by each load, and the default sandbox is applied by each.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_bounds::json::measure;
use parking_lot::Mutex;

use super::entry_shift::Shift;
use super::model::{Config, LocalTool};
use super::node::{Entry as Field, Mark, Node, NodeValue};
use super::parse::{NextEntry, Span, ToolList};
use super::place::Place;

/// Values and keys of `tools.json` beside its entries: the object, the key `tools` and the list.
const NODES_AROUND: usize = 3;
/// From this number of warnings on, some may be left out, so it is not known which entries have one.
const WARNINGS_MAX: usize = 100;

/// The compiled entries of the last `tools.json`. Clones share them.
#[derive(Clone, Default)]
pub struct EntryCache(Arc<Mutex<Option<Arc<Entries>>>>);

impl std::fmt::Debug for EntryCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EntryCache")
    }
}

/// The entries of one text of `tools.json`.
#[derive(Clone)]
pub(super) struct Entries {
    file: Arc<str>,
    folder: PathBuf,
    text: String,
    list: Vec<Entry>,
}

#[derive(Clone)]
struct Entry {
    range: Range<usize>,
    mark: Mark,
    span: Span,
    /// Number of its values and keys.
    nodes: usize,
    hash: u64,
    /// Its result, if that depends on the text alone.
    tool: Option<Arc<LocalTool>>,
}

/// A `tools.json`, parsed as far as it is new.
pub(super) struct SplitFile {
    /// The file without its entries.
    pub(super) root: Node,
    pub(super) entries: Arc<Entries>,
    pub(super) items: Vec<Item>,
}

/// An entry of a file.
#[derive(Clone)]
pub(super) enum Item {
    /// An earlier load compiled it.
    Known(Arc<LocalTool>),
    /// It has to be read.
    New(Node),
}

impl EntryCache {
    /// Splits a `tools.json` that is strict JSON with a list of tools and nothing else. Any other text is left to the
    /// reader of whole files, which can say what is wrong.
    pub(super) fn split(
        &self,
        file: &Arc<str>,
        folder: &Path,
        text: &str,
        nodes_max: usize,
    ) -> Option<SplitFile> {
        let before = self.0.lock().clone();
        let before = before.filter(|known| known.file == *file && known.folder == folder);
        let mut splitter = Splitter::new(text, before.as_deref());
        let root = splitter.read()?;
        let Splitter { entries: list, items, .. } = splitter;
        let nodes = NODES_AROUND + list.iter().map(|entry| entry.nodes).sum::<usize>();
        if nodes > nodes_max {
            return None;
        }
        let (file, folder) = (Arc::clone(file), folder.to_owned());
        let entries = Arc::new(Entries { file, folder, text: text.to_owned(), list });
        Some(SplitFile { root, entries, items })
    }

    /// Keeps the entries of a valid configuration for the next load.
    pub(super) fn learn(&self, entries: Arc<Entries>, config: &Config) {
        *self.0.lock() = Arc::unwrap_or_clone(entries).with_results(config).map(Arc::new);
    }
}

impl Entries {
    /// Adds the results of a valid configuration. `None` if it is not known to which entries they belong.
    fn with_results(mut self, config: &Config) -> Option<Self> {
        if config.warnings.len() >= WARNINGS_MAX {
            return None;
        }
        let Self { file, list, .. } = &mut self;
        let is_here = |place: &&Place| place.file == *file;
        for entry in &mut *list {
            entry.tool = None;
        }
        for tool in config.local.iter().filter(|tool| is_here(&&tool.place)) {
            list.get_mut(position(&tool.place.path)?)?.tool = Some(Arc::clone(tool));
        }
        for place in config.warnings.iter().map(|problem| &problem.place).filter(is_here) {
            list.get_mut(position(&place.path)?)?.tool = None;
        }
        for used in config.variables.iter().filter(|used| used.file == *file) {
            list.get_mut(position(used.path.first()?)?)?.tool = None;
        }
        Some(self)
    }
}

/// The position of the entry that a path leads into: 7 for `tools[7].config`.
fn position(path: &str) -> Option<usize> {
    let (number, _) = path.strip_prefix("tools[")?.split_once(']')?;
    number.parse().ok()
}

/// Splits a file beside the one before.
struct Splitter<'t> {
    text: &'t str,
    before: Option<&'t Entries>,
    /// The position in the file before of the entry that is expected next.
    expected: usize,
    /// Positions in the file before by the hash of the text. Made when an entry is not the expected one.
    by_hash: Option<HashMap<u64, usize>>,
    entries: Vec<Entry>,
    items: Vec<Item>,
}

impl<'t> Splitter<'t> {
    fn new(text: &'t str, before: Option<&'t Entries>) -> Self {
        let expected = before.map_or(0, |before| before.list.len());
        let (entries, items) = (Vec::with_capacity(expected), Vec::with_capacity(expected));
        Self { text, before, expected: 0, by_hash: None, entries, items }
    }

    /// Reads the file. Returns it without its entries.
    fn read(&mut self) -> Option<Node> {
        let mut list = ToolList::open(self.text)?;
        while let NextEntry::At(mark) = list.next_entry()? {
            self.entry(&mut list, mark)?;
        }
        let (root, key, tools) = list.close()?;
        let tools = Node::new(NodeValue::List(Vec::new()), tools);
        let tools = Field { key: "tools".to_owned(), mark: key, value: tools };
        Some(Node::new(NodeValue::Map(vec![tools]), root))
    }

    /// Reads the entry at `mark`, where the reader is.
    fn entry(&mut self, list: &mut ToolList<'_>, mark: Mark) -> Option<()> {
        let start = list.offset();
        if let Some((entry, tool)) = self.expected_at(start) {
            let range = start..start + entry.range.len();
            list.skip(range.len(), entry.span);
            self.reuse(self.expected, entry, tool, range, mark);
            return Some(());
        }
        let node = list.value()?;
        let range = start..list.offset();
        let text = &self.text[range.clone()];
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(text);
        let found = self.find(hash, text);
        if let Some((at, entry, Some(tool))) = found {
            self.reuse(at, entry, tool, range, mark);
            return Some(());
        }
        // Most changes replace an entry, and the one after it stays.
        self.expected = found.map_or(self.expected, |(at, ..)| at) + 1;
        let (span, nodes) = (Span::of(text), measure(text.as_bytes()).nodes);
        self.entries.push(Entry { range, mark, span, nodes, hash, tool: None });
        self.items.push(Item::New(node));
        Some(())
    }

    /// The expected entry, if it begins here. The text of an object ends where the object ends, so nothing can follow
    /// that belongs to it.
    fn expected_at(&self, start: usize) -> Option<(&'t Entry, &'t Arc<LocalTool>)> {
        let before = self.before?;
        let entry = before.list.get(self.expected)?;
        let tool = entry.tool.as_ref()?;
        self.text[start..].starts_with(&before.text[entry.range.clone()]).then_some((entry, tool))
    }

    /// The entry of this text in the file before, at any position.
    fn find(
        &mut self,
        hash: u64,
        text: &str,
    ) -> Option<(usize, &'t Entry, Option<&'t Arc<LocalTool>>)> {
        let before = self.before?;
        let by_hash = self.by_hash.get_or_insert_with(|| {
            before.list.iter().enumerate().map(|(at, entry)| (entry.hash, at)).collect()
        });
        let at = *by_hash.get(&hash)?;
        let entry = &before.list[at];
        (before.text[entry.range.clone()] == *text).then_some((at, entry, entry.tool.as_ref()))
    }

    fn reuse(
        &mut self,
        at: usize,
        entry: &Entry,
        tool: &Arc<LocalTool>,
        range: Range<usize>,
        mark: Mark,
    ) {
        let shift = Shift { from: (at, entry.mark), to: (self.entries.len(), mark) };
        let tool = shift.apply(tool);
        self.expected = at + 1;
        self.entries.push(Entry { range, mark, tool: Some(Arc::clone(&tool)), ..entry.clone() });
        self.items.push(Item::Known(tool));
    }
}
