//! Which URIs belong to a template (RFC 6570).

use regex::RegexBuilder;

/// Longest template, and largest number of its variables. A template beyond has no URIs.
const TEMPLATE_BYTES_MAX: usize = 2048;
pub(super) const VARIABLES_MAX: usize = 32;
/// Longest URI that is looked for among templates.
const URI_BYTES_MAX: usize = 8 * 1024;
/// Largest automaton of a template.
const PATTERN_BYTES_MAX: usize = 64 * 1024;

/// Strictness of a variable part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// As the standard has it: `{name}` is one segment.
    Segment,
    /// As many servers mean it: `{path}` may have slashes.
    Anything,
}

/// Returns true if `uri` may be one of the template's.
pub(super) fn matches(template: &str, uri: &str, reach: Reach) -> bool {
    if !may_match(template, uri) {
        return false;
    }
    // `.` stands for any character, as `[^/]` does: what matches a segment matches with slashes allowed too.
    let mut pattern = String::from("(?s)^");
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        pattern.push_str(&regex::escape(literal));
        let Some((expression, tail)) = after.split_once('}') else { return false };
        pattern.push_str(match (expression.as_bytes().first(), reach) {
            // Reserved, fragment, path, query: whatever comes, or nothing.
            (Some(b'+' | b'#' | b'.' | b'/' | b';' | b'?' | b'&'), _) => ".*",
            (_, Reach::Segment) => "[^/]+",
            (_, Reach::Anything) => ".+",
        });
        rest = tail;
    }
    pattern.push_str(&regex::escape(rest));
    pattern.push('$');
    let pattern = RegexBuilder::new(&pattern).size_limit(PATTERN_BYTES_MAX).build();
    pattern.is_ok_and(|pattern| pattern.is_match(uri))
}

/// Returns true if a closer look is worthwhile: the limits hold, and the URI has the template's prefix. Takes
/// nanoseconds; compiling an expression takes a thousand times as long.
pub(super) fn may_match(template: &str, uri: &str) -> bool {
    let begins = template.split_once('{').map_or(template, |(literal, _)| literal);
    template.len() <= TEMPLATE_BYTES_MAX
        && uri.len() <= URI_BYTES_MAX
        && uri.starts_with(begins)
        && template.bytes().filter(|byte| *byte == b'{').count() <= VARIABLES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_knows_its_uris() {
        let of = |template: &str, uri: &str| matches(template, uri, Reach::Segment);
        assert!(of("test://template/{id}/data", "test://template/123/data"));
        assert!(!of("test://template/{id}/data", "test://template//data"));
        assert!(!of("test://template/{id}/data", "test://template/1/2/data"));
        assert!(of("a://{+path}", "a://b/c"));
        assert!(of("a://x{?q,r}", "a://x?q=1"));
        assert!(of("a://x{?q}", "a://x"));
        assert!(!of("a.b", "axb"));
        assert!(!of("a://{", "a://{"));
        assert!(matches("file:///{path}", "file:///a/b", Reach::Anything));
        for reach in [Reach::Segment, Reach::Anything] {
            assert!(matches("a://{id}", "a://x\ny", reach));
        }
        assert!(!of(&format!("a://{}", "{x}".repeat(33)), &format!("a://{}", "b".repeat(40))));
        assert!(!of(
            &format!("a://{}{{x}}", "b".repeat(2048)),
            &format!("a://{}c", "b".repeat(2048))
        ));
        assert!(!of("a://{x}", &format!("a://{}", "b".repeat(8192))));
    }
}
