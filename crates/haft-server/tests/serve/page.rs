//! Prometheus's text format, read strictly: what a lenient reader forgives fails the test.

use std::collections::{BTreeMap, HashSet};

/// A page of figures.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Page {
    /// The families by name, with their type.
    pub(crate) kinds: BTreeMap<String, String>,
    /// The samples as they are written, such as `x{a="b"}`.
    pub(crate) samples: BTreeMap<String, f64>,
}

impl Page {
    pub(crate) fn parse(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line has an end");
        let (mut kinds, mut samples) = (BTreeMap::new(), BTreeMap::new());
        let (mut helped, mut family) = (HashSet::new(), String::new());
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, text) = help.split_once(' ').expect("a help has a text");
                assert!(!text.is_empty() && helped.insert(name.to_owned()), "{line}");
                name.clone_into(&mut family);
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a type has a word");
                assert!(["counter", "gauge", "histogram", "summary"].contains(&kind), "{line}");
                assert_eq!(name, family, "the type follows the help");
                assert_eq!(kinds.insert(name.to_owned(), kind.to_owned()), None, "{line}");
            } else {
                let (series, value) = line.rsplit_once(' ').expect("a sample has a value");
                let name = check_series(series);
                let kind = kinds.get(&family).unwrap_or_else(|| panic!("no type before {line}"));
                assert!(belongs(name, &family, kind), "{line} in {family}");
                let value: f64 = value.parse().unwrap();
                assert!(value.is_finite() && value >= 0.0, "{line}");
                assert_eq!(samples.insert(series.to_owned(), value), None, "{line} is there twice");
            }
        }
        Self { kinds, samples }
    }

    /// The value of a sample.
    pub(crate) fn value(&self, series: &str) -> f64 {
        *self.samples.get(series).unwrap_or_else(|| panic!("no `{series}` in {self:#?}"))
    }

    /// The counters that rose since an earlier page, and their differences.
    pub(crate) fn risen_since(&self, earlier: &Self) -> BTreeMap<&str, f64> {
        let rise = |series: &str, value: f64| value - earlier.samples.get(series).unwrap_or(&0.0);
        let all = self.samples.iter().map(|(series, value)| (&**series, rise(series, *value)));
        all.filter(|(_, rise)| *rise != 0.0).collect()
    }
}

/// Returns true if a sample is one of the family that was begun last.
fn belongs(name: &str, family: &str, kind: &str) -> bool {
    let suffixes: &[&str] = match kind {
        "summary" => &["_sum", "_count"],
        "histogram" => &["_bucket", "_sum", "_count"],
        _ => &[""],
    };
    name.strip_prefix(family).is_some_and(|suffix| suffixes.contains(&suffix))
}

/// The name of a series; its labels are read to the last quote.
fn check_series(series: &str) -> &str {
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}').expect("a closing brace")),
        None => (series, ""),
    };
    let is_name = |text: &str| {
        !text.is_empty()
            && !text.starts_with(|first: char| first.is_ascii_digit())
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    assert!(is_name(name), "{series}");
    let mut rest = labels;
    while !rest.is_empty() {
        let (label, value) = rest.split_once("=\"").expect("a label has a value in quotes");
        assert!(is_name(label), "{series}");
        let end = closing_quote(value).expect("a closing quote");
        rest = &value[end + 1..];
        assert!(rest.is_empty() || rest.starts_with(','), "{series}");
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    name
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some(at),
            '\\' => assert!(matches!(letters.next(), Some((_, '\\' | '"' | 'n'))), "{text}"),
            _ => {}
        }
    }
    None
}
