//! A minimal HTML parser for result lists: tags, attributes, text. It reads any input once, to the
//! end.

use std::borrow::Cow;

/// A token of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'p> {
    Open { name: &'p str, attributes: &'p str },
    Close { name: &'p str },
    Text(&'p str),
}

/// The tokens of a page, without comments and scripts.
pub(super) struct Tokens<'p> {
    rest: &'p str,
}

impl<'p> Tokens<'p> {
    pub(super) fn of(page: &'p str) -> Self {
        Self { rest: page }
    }

    /// Continues after the next `end`, or at the end of the page.
    fn skip_to(&mut self, end: &str) {
        self.rest = self.rest.find(end).map_or("", |at| &self.rest[at + end.len()..]);
    }

    /// Skips the text of a script.
    fn skip_raw(&mut self, name: &str) {
        for element in ["script", "style"] {
            if name.eq_ignore_ascii_case(element) {
                self.skip_to(&format!("</{name}"));
                self.skip_to(">");
            }
        }
    }
}

impl<'p> Iterator for Tokens<'p> {
    type Item = Token<'p>;

    fn next(&mut self) -> Option<Token<'p>> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            if self.rest.starts_with("<!--") {
                self.skip_to("-->");
            } else if self.rest.starts_with("<!") || self.rest.starts_with("<?") {
                self.skip_to(">");
            } else if is_tag(self.rest) {
                let end = tag_end(self.rest);
                let tag = &self.rest[1..end];
                self.rest = self.rest.get(end + 1..).unwrap_or_default();
                if let Some(name) = tag.strip_prefix('/') {
                    return Some(Token::Close { name: name.trim() });
                }
                let at = tag.find(|c: char| c.is_ascii_whitespace()).unwrap_or(tag.len());
                let (name, attributes) = tag.split_at(at);
                let name = name.trim_end_matches('/');
                self.skip_raw(name);
                return Some(Token::Open { name, attributes });
            } else {
                let at = self.rest.char_indices().skip(1).find(|(at, c)| {
                    *c == '<' && (is_tag(&self.rest[*at..]) || self.rest[*at..].starts_with("<!"))
                });
                let (text, rest) = self.rest.split_at(at.map_or(self.rest.len(), |(at, _)| at));
                self.rest = rest;
                return Some(Token::Text(text));
            }
        }
    }
}

fn is_tag(text: &str) -> bool {
    let name = text.strip_prefix("</").or_else(|| text.strip_prefix('<'));
    name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// The position of the `>` that ends the tag, or the end of the page.
fn tag_end(text: &str) -> usize {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '>') => return at,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    text.len()
}

/// The value of an attribute, decoded.
pub(super) fn attribute(attributes: &str, wanted: &str) -> Option<String> {
    let mut rest = attributes.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_ascii_whitespace() || c == '=').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let after = after.trim_start();
        let Some(value) = after.strip_prefix('=').map(str::trim_start) else {
            // Advances at least one byte, so that a stray character cannot cause an endless loop.
            rest = if name.is_empty() { after.get(1..).unwrap_or_default() } else { after };
            continue;
        };
        let (value, after) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
            _ => {
                value.split_at(value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len()))
            }
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(decode(value).into_owned());
        }
        rest = after.trim_start();
    }
    None
}

/// The text of a piece of HTML, without its tags.
pub(super) fn text(html: &str) -> String {
    let texts = Tokens::of(html).filter_map(|token| match token {
        Token::Text(text) => Some(decode(text)),
        Token::Open { .. } | Token::Close { .. } => None,
    });
    texts.collect()
}

/// The longest entity reference, such as `&thetasym;`.
const REFERENCE_BYTES_MAX: usize = 12;

/// Decodes entity references; an unknown one stays unmodified.
pub(super) fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return text.into();
    }
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        decoded.push_str(before);
        let end = after.bytes().take(REFERENCE_BYTES_MAX).position(|byte| byte == b';');
        let known = end.and_then(|end| Some((referenced(&after[..end])?, &after[end + 1..])));
        let (c, behind) = known.unwrap_or(('&', after));
        decoded.push(c);
        rest = behind;
    }
    decoded.push_str(rest);
    decoded.into()
}

fn referenced(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        return char::from_u32(code.ok()?);
    }
    // The references that search services use; they write everything else as characters.
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "laquo" => '«',
        "raquo" => '»',
        "middot" => '·',
        "bull" => '•',
        "copy" => '©',
        "reg" => '®',
        "trade" => '™',
        "euro" => '€',
        "pound" => '£',
        "deg" => '°',
        "times" => '×',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved() {
        let html = "Tom &amp; Jerry&#x27;s &#39;best&#39; &nbsp;&hellip; &unknown; &amp;lt; 1 &lt; 2 & &é; <b>b</b>";
        assert_eq!(text(html), "Tom & Jerry's 'best'  … &unknown; &lt; 1 < 2 & &é; b");
        assert_eq!(decode("&#xD800;&#99999999999;&"), "&#xD800;&#99999999999;&");
    }

    #[test]
    fn attributes_are_found_in_any_spelling() {
        let attributes = r#" disabled a='x "y" z' B = 3 href="/?a=1&amp;b=2" = ="#;
        for (name, value) in [("a", "x \"y\" z"), ("b", "3"), ("HREF", "/?a=1&b=2")] {
            assert_eq!(attribute(attributes, name).as_deref(), Some(value));
        }
        for name in ["disabled", "c"] {
            assert_eq!(attribute(attributes, name), None);
        }
    }

    proptest::proptest! {
        #[test]
        fn every_page_ends(page in "[<>/!a-c\"'= &;#é-]{0,60}") {
            for token in Tokens::of(&page) {
                if let Token::Open { attributes, .. } = token {
                    attribute(attributes, "c");
                }
            }
            text(&page);
        }
    }
}
