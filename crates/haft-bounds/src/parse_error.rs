//! Parse errors in the terms of JSON.
//!
//! The errors of `serde` name the expected Rust type, which the sender of the document does not
//! know.

use std::fmt::Display;

/// Precedes the expected value.
const EXPECTED: &str = ", expected ";
/// Precedes the position.
const POSITION: &str = " at line ";

/// Describes an error of `serde_json`, or of another format of `serde`, without the names of Rust
/// types: the expected value, the value found, and the position. Every error of `serde` that a
/// person, a model or another program reads goes through here.
pub fn describe(error: &impl Display) -> String {
    let text = error.to_string();
    let (problem, position) = match text.rfind(POSITION) {
        Some(at) => text.split_at(at),
        None => (text.as_str(), ""),
    };
    format!("{}{position}", reworded(problem))
}

fn reworded(problem: &str) -> String {
    if problem.starts_with("data did not match any variant")
        || problem.starts_with("no variant of enum")
    {
        return "it has none of the allowed forms".to_owned();
    }
    let Some((unexpected, expected)) = problem.rsplit_once(EXPECTED) else {
        return problem.to_owned();
    };
    let is_record = expected.starts_with("struct ") || expected.starts_with("tuple ");
    let found = match unexpected.split_once(": ") {
        Some(("invalid type" | "invalid value", found)) => found,
        // A list in the place of an object is read field by field, and is too short for that.
        _ if unexpected.starts_with("invalid length") && is_record => "a list",
        _ => return format!("{unexpected}{EXPECTED}{}", json_word(expected)),
    };
    format!("expected {}, found {}", json_word(expected), json_word(found))
}

/// Returns JSON's name for a kind of value that `serde` calls `word`.
fn json_word(word: &str) -> &str {
    match word {
        "map" | "a map" => "an object",
        "sequence" | "a sequence" | "an array" => "a list",
        "unit" | "unit value" | "null" => "null",
        "a borrowed string" | "str" | "string" | "variant identifier" | "field identifier"
        | "char" | "a character" => "a string",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" | "u8" | "u16" | "u32" | "u64" | "u128"
        | "usize" => "a whole number",
        "f32" | "f64" => "a number",
        "bool" => "a boolean",
        _ => kind_of_type(word).unwrap_or(word),
    }
}

/// Returns the JSON kind of a Rust type, whose name comes last: `struct CallResult`.
fn kind_of_type(word: &str) -> Option<&'static str> {
    const KINDS: [(&str, &str); 12] = [
        ("struct variant ", "an object"),
        ("tuple variant ", "a list"),
        ("newtype variant ", "another kind of value"),
        ("unit variant ", "a string"),
        ("unit struct ", "null"),
        ("tuple struct ", "a list"),
        ("tuple of ", "a list"),
        ("newtype struct ", "another kind of value"),
        ("internally tagged enum ", "an object"),
        ("adjacently tagged enum ", "an object"),
        ("struct ", "an object"),
        ("enum ", "one of the allowed values"),
    ];
    KINDS.iter().find(|(start, _)| word.starts_with(start)).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::describe;

    /// Proves S3-SC-003: no text names a Rust type, whatever the error is.
    #[test]
    fn no_rust_type_is_named() {
        for (error, expected) in [
            (
                "invalid type: string \"hello\", expected struct CallResult at line 1 column 7",
                "expected an object, found string \"hello\" at line 1 column 7",
            ),
            (
                "invalid type: integer `5`, expected a sequence at line 1 column 12",
                "expected a list, found integer `5` at line 1 column 12",
            ),
            (
                "invalid length 1, expected struct CallResult with 3 elements at line 1 column 3",
                "expected an object, found a list at line 1 column 3",
            ),
            ("invalid type: null, expected a string", "expected a string, found null"),
            ("invalid type: map, expected u64", "expected a whole number, found an object"),
            (
                "invalid value: integer `-1`, expected usize",
                "expected a whole number, found integer `-1`",
            ),
            (
                "invalid type: sequence, expected enum Level",
                "expected one of the allowed values, found a list",
            ),
            (
                "data did not match any variant of untagged enum Wanted",
                "it has none of the allowed forms",
            ),
            (
                "unknown variant `x`, expected one of `a`, `b` at line 1 column 3",
                "unknown variant `x`, expected one of `a`, `b` at line 1 column 3",
            ),
            ("missing field `uri` at line 1 column 2", "missing field `uri` at line 1 column 2"),
            (
                "EOF while parsing a value at line 1 column 0",
                "EOF while parsing a value at line 1 column 0",
            ),
        ] {
            assert_eq!(describe(&error), expected);
        }
    }

    /// Text that a peer sent is not mistaken for the error's own words.
    #[test]
    fn what_was_found_stays_as_it_is() {
        let error =
            "invalid type: string \"a, expected struct B\", expected a map at line 1 column 9";
        assert_eq!(
            describe(&error),
            "expected an object, found string \"a, expected struct B\" at line 1 column 9"
        );
    }
}
