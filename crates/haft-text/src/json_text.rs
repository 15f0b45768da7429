//! Formats JSON text without parsing it: strings, numbers and key order stay unmodified, whatever
//! the size of a number or the depth of nesting.

/// Deeper levels stay on one line. Indentation grows with the square of the depth, and an answer
/// may be nested a million levels deep.
const INDENTED_DEPTH_MAX: usize = 64;

/// Returns the same JSON with one member or item per line, indented by two spaces.
pub fn pretty(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let mut depth = 0;
    let mut tokens = Tokens { rest: json }.peekable();
    while let Some(token) = tokens.next() {
        match token {
            "{" | "[" => {
                text.push_str(token);
                if let Some(close) = tokens.next_if(|next| matches!(*next, "}" | "]")) {
                    text.push_str(close);
                } else {
                    depth += 1;
                    new_line(&mut text, depth, depth);
                }
            }
            "}" | "]" => {
                new_line(&mut text, depth, depth.saturating_sub(1));
                depth = depth.saturating_sub(1);
                text.push_str(token);
            }
            "," => {
                text.push(',');
                new_line(&mut text, depth, depth);
            }
            ":" => text.push_str(": "),
            _ => text.push_str(token),
        }
    }
    text
}

/// Returns the same JSON without white space between its tokens.
pub fn compact(json: &str) -> String {
    Tokens { rest: json }.collect()
}

/// Starts a new line at the `level`th level, unless that is too deep to indent.
fn new_line(text: &mut String, level: usize, indent: usize) {
    if level <= INDENTED_DEPTH_MAX {
        text.push('\n');
        text.extend(std::iter::repeat_n("  ", indent));
    }
}

/// The tokens of valid JSON: a bracket, a comma, a colon, or a whole string, number or word.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let length = match self.rest.as_bytes().first()? {
            b'"' => string_len(self.rest),
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            _ => self
                .rest
                .find(['{', '}', '[', ']', ',', ':', '"', ' ', '\t', '\n', '\r'])
                .unwrap_or(self.rest.len()),
        };
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(token)
    }
}

/// The length of the string at the start, both quotes included.
fn string_len(json: &str) -> usize {
    let mut is_escaped = true; // The first quote ends nothing.
    for (at, byte) in json.bytes().enumerate() {
        match byte {
            b'"' if !is_escaped => return at + 1,
            b'\\' if !is_escaped => is_escaped = true,
            _ => is_escaped = false,
        }
    }
    json.len()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails to set itself up has failed")]
mod tests {
    use super::*;

    #[test]
    fn ordinary_json_looks_as_it_always_did() {
        for json in [
            r#"{"b":[1,-2.5e3,{"c":null}],"a":{},"l":[],"s":"x \" [1, 2] \\\\","t":true}"#,
            "[]",
            "7",
            r#""text""#,
            "[[],[[]],{}]",
        ] {
            let value: serde_json::Value = serde_json::from_str(json).unwrap();
            assert_eq!(pretty(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
            assert_eq!(compact(&pretty(&value.to_string())), value.to_string());
        }
    }

    #[test]
    fn numbers_order_and_escapes_stay_as_written() {
        let json = "{\r\n\t\"b\" : 12345678901234567890123 , \"a\":1.10,\"a\":\"\\u00e9\\ud800\" }";
        let expected =
            "{\n  \"b\": 12345678901234567890123,\n  \"a\": 1.10,\n  \"a\": \"\\u00e9\\ud800\"\n}";
        assert_eq!(pretty(json), expected);
    }

    #[test]
    fn deep_nesting_is_laid_out_in_bounded_space() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let text = pretty(&deep);
        assert_eq!(compact(&text), deep);
        assert!(text.len() < deep.len() + 20_000, "{}", text.len());
    }
}
