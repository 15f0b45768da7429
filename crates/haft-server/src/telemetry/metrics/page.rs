//! Prometheus's text format, version 0.0.4.

use std::fmt::{Display, Write as _};

/// Media type of the format.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Summary,
}

/// A page that is being written.
#[derive(Debug, Default)]
pub(super) struct Page(String);

impl Page {
    /// Begins a family; its samples follow.
    pub(super) fn family(&mut self, name: &str, kind: Kind, help: &str) -> &mut Self {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Summary => "summary",
        };
        self.put(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        self
    }

    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.put(format_args!("{name}"));
        for (at, (label, text)) in labels.iter().enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            self.put(format_args!("{before}{label}=\""));
            self.escaped(text);
            self.0.push('"');
        }
        let end = if labels.is_empty() { "" } else { "}" };
        self.put(format_args!("{end} {value}\n"));
    }

    /// A family of one sample.
    pub(super) fn one(&mut self, name: &str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help).sample(name, &[], value);
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }

    fn escaped(&mut self, text: &str) {
        for letter in text.chars() {
            match letter {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                other => self.0.push(other),
            }
        }
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.0.write_fmt(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_keeps_to_its_quotes() {
        let mut page = Page::default();
        page.sample("x", &[("a", "b\"c\\d\ne"), ("f", "ü")], 0.5);
        assert_eq!(page.into_text(), "x{a=\"b\\\"c\\\\d\\ne\",f=\"ü\"} 0.5\n");
    }

    #[test]
    fn a_family_has_help_and_type() {
        let mut page = Page::default();
        page.one("x", Kind::Gauge, "How many.", 3);
        assert_eq!(page.into_text(), "# HELP x How many.\n# TYPE x gauge\nx 3\n");
    }
}
