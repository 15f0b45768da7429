//! The words that have a plainer counterpart, and the ordinary uses of them that stay allowed.

use std::sync::LazyLock;

use regex::Regex;

/// One entry: the words to avoid, then the ordinary uses of the same words.
type Entry = (&'static str, &'static str);

/// Each line has a row of the table "Instead of" in `CONTRIBUTING.md`.
const ENTRIES: [Entry; 17] = [
    // The component, the caller, the operator, the client, the user.
    (r"nobody|somebody|whoever", ""),
    // Is notified, receives, reports, returns. A person may be told something; a component may not.
    (r"(is|are|was|were|be|been|being) told|hears|heard|says", ""),
    // Running, in flight.
    (r"under way", ""),
    // Otherwise; if present.
    (r"[;,] else|where (it|they) (has|have) (one|it|them|any)", ""),
    // Is not an X, invalid X. "There is no X" states an absence.
    (
        r"(is|are|was|were) no",
        r"there (is|are|was|were) no|(is|are|was|were) no (longer|more|less|other|\w*er)",
    ),
    // Again, retry, resume.
    (r"anew|once more|(take|takes|taken|took|taking) up again", ""),
    // Fix.
    (r"mend|mends|mended|mending", ""),
    // Continue, resume.
    (r"(go|goes|going|went|gone) on with|goes on|go on|went on", ""),
    // Image, audio, string.
    (r"picture|pictures|sound|sounds", ""),
    (
        r"a text|texts",
        r"a text (block|content|document|editor|embedding|field|file|frame|message|part|resource)",
    ),
    // Notifications.
    (r"news", ""),
    // Heartbeat, keep-alive.
    (r"(sign|signs) of life", ""),
    // Proxies.
    (r"(stand|stands) between", ""),
    // At most N.
    (r"so many", ""),
    // Unmodified.
    (r"as (it|they) (comes|come)", ""),
    // Timestamp. A span of attention ("at the moment") is ordinary English.
    (r"moment|moments", r"(at|for) (the|a|this|that) moment"),
    // Quick start.
    (r"the first minute", ""),
];

/// The listed words of `text` in its order, each with the number of lines before it.
pub(super) fn find(text: &str) -> Vec<(usize, String)> {
    static PATTERN: LazyLock<Regex> = LazyLock::new(pattern);
    PATTERN
        .captures_iter(text)
        .filter(|found| found.name("ordinary").is_none())
        .map(|found| {
            let start = found.get(0).map_or(0, |it| it.start());
            let words: Vec<_> = found[0].split_whitespace().collect();
            (text[..start].matches('\n').count(), words.join(" "))
        })
        .collect()
}

/// Ordinary uses come first, so that they win over the words they contain.
#[expect(clippy::expect_used, reason = "a constant; the tests compile it")]
fn pattern() -> Regex {
    let ordinary: Vec<_> =
        ENTRIES.iter().map(|entry| entry.1).filter(|it| !it.is_empty()).collect();
    let listed: Vec<_> = ENTRIES.iter().map(|entry| entry.0).collect();
    let pattern = format!(
        r"(?P<ordinary>\b(?:{})\b)|(?:\b|;|,)(?:{})\b",
        ordinary.join("|"),
        listed.join("|")
    );
    Regex::new(&format!("(?i){}", pattern.replace(' ', r"\s+"))).expect("a valid pattern")
}
