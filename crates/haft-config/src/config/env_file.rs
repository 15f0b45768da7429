//! Files with `NAME=value` lines.

/// Parses the lines; `Err` names the first line that is none.
pub fn parse(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut variables = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let assignment = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = assignment.split_once('=') else {
            return Err(format!("line {} has no `=`", at + 1));
        };
        let name = name.trim();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(format!("line {} has no usable name before `=`", at + 1));
        }
        variables.push((name.to_owned(), unquote(value.trim())));
    }
    Ok(variables)
}

fn unquote(value: &str) -> String {
    for quote in ['"', '\''] {
        let inner = value.strip_prefix(quote).and_then(|rest| rest.split_once(quote));
        // Only a comment can follow the closing quote.
        let Some((inner, rest)) = inner else { continue };
        if rest.trim().is_empty() || rest.trim_start().starts_with('#') {
            return if quote == '"' { inner.replace("\\n", "\n") } else { inner.to_owned() };
        }
    }
    value.split_once(" #").map_or(value, |(value, _)| value).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn quotes_comments_and_export_are_understood() {
        let text =
            "# c\nA=1\nexport B = two words # note\nC=\"x # y\" # z\nD='a\\nb'\nE=\nF=\"a\\nb\"\n";
        let parsed = parse(text).unwrap();
        let flat: Vec<String> =
            parsed.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(flat, ["A=1", "B=two words", "C=x # y", "D=a\\nb", "E=", "F=a\nb"]);
    }

    #[test]
    fn a_line_without_an_equals_sign_is_named() {
        assert_eq!(parse("A=1\nnonsense\n"), Err("line 2 has no `=`".into()));
        assert_eq!(parse("=1"), Err("line 1 has no usable name before `=`".into()));
    }
}
