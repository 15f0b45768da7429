//! Which URIs belong to a template (RFC 6570).

use regex::Regex;

/// How strictly a variable part is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// As the standard has it: `{name}` is one segment.
    Segment,
    /// As many servers mean it: `{path}` may have slashes.
    Anything,
}

/// Whether `uri` may be one of the template's.
pub(super) fn matches(template: &str, uri: &str, reach: Reach) -> bool {
    let mut pattern = String::from("^");
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        pattern.push_str(&regex::escape(literal));
        let Some((expression, behind)) = after.split_once('}') else { return false };
        pattern.push_str(match (expression.as_bytes().first(), reach) {
            // Reserved, fragment, path, query: whatever comes, or nothing.
            (Some(b'+' | b'#' | b'.' | b'/' | b';' | b'?' | b'&'), _) => ".*",
            (_, Reach::Segment) => "[^/]+",
            (_, Reach::Anything) => ".+",
        });
        rest = behind;
    }
    pattern.push_str(&regex::escape(rest));
    pattern.push('$');
    // A template that is too long for an expression has no URIs.
    Regex::new(&pattern).is_ok_and(|pattern| pattern.is_match(uri))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_knows_its_uris() {
        let of = |template, uri| matches(template, uri, Reach::Segment);
        assert!(of("test://template/{id}/data", "test://template/123/data"));
        assert!(!of("test://template/{id}/data", "test://template//data"));
        assert!(!of("test://template/{id}/data", "test://template/1/2/data"));
        assert!(of("a://{+path}", "a://b/c"));
        assert!(of("a://x{?q,r}", "a://x?q=1"));
        assert!(of("a://x{?q}", "a://x"));
        assert!(!of("a.b", "axb"));
        assert!(!of("a://{", "a://{"));
        assert!(matches("file:///{path}", "file:///a/b", Reach::Anything));
    }
}
