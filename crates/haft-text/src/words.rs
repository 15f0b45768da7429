//! Words of error messages: what was meant, what is known, what went wrong first.

/// The longest compared word. The time grows with the square of the length, and longer ones are not
/// typing errors.
const WORD_BYTES_MAX: usize = 128;

/// The known word nearest to a mistyped one, if it is near enough to be meant.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    let lower = word.to_lowercase();
    known
        .into_iter()
        .filter(|candidate| candidate.len() <= WORD_BYTES_MAX)
        .map(|candidate| (strsim::jaro_winkler(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score > 0.82)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// `` `a`, `b`, `c` `` for a sentence.
pub fn list<T: AsRef<str>>(words: &[T]) -> String {
    words.iter().map(|word| format!("`{}`", word.as_ref())).collect::<Vec<_>>().join(", ")
}

/// Returns the innermost error, which is the cause; the outer ones only add context.
pub fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
