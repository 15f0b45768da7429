//! Puts JSON on one line. JSON allows line breaks between tokens, and a payload that is kept as
//! its sender wrote it may have them; a log line may not.

use haft_config::redact::string_len;

/// The same JSON without line breaks, if it has any. Strings, numbers and the order of keys stay as they are.
pub(super) fn one_line(json: &str) -> Option<String> {
    memchr::memchr2(b'\n', b'\r', json.as_bytes()).map(|_| compact(json))
}

/// Drops the white space between tokens.
fn compact(json: &str) -> String {
    let mut compacted = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(quote) = rest.find('"') {
        push_without_space(&mut compacted, &rest[..quote]);
        let end = quote + string_len(&rest[quote..]);
        compacted.push_str(&rest[quote..end]);
        rest = &rest[end..];
    }
    push_without_space(&mut compacted, rest);
    compacted
}

fn push_without_space(target: &mut String, tokens: &str) {
    target.extend(tokens.chars().filter(|c| !matches!(c, ' ' | '\t' | '\n' | '\r')));
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn line_breaks_go_and_strings_numbers_and_order_stay() {
        let json = "{\n \"b\" :\t[1.10,\r\n 123456789012345678901234567890 ],\n \"a b\": \"x \\\" \\n y\"}";
        assert_eq!(
            one_line(json).as_deref(),
            Some(r#"{"b":[1.10,123456789012345678901234567890],"a b":"x \" \n y"}"#)
        );
    }

    #[test]
    fn json_without_line_breaks_is_left_alone() {
        assert_eq!(one_line(r#"{ "a" : 1 }"#), None);
    }
}
