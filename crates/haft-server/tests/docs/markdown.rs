//! The executable parts of a Markdown page.
//!
//! | In the page | Effect |
//! |---|---|
//! | a block `console` | runs each `$ ` line and compares its output with the lines below it |
//! | a block `sh` | runs the whole block, which must succeed |
//! | a block `console not-run: REASON` | is not run |
//! | a comment `<!-- file: PATH -->` before a block | writes the block to the file |
//! | a comment `<!-- append: PATH -->` before a block | adds the block to the end of the file |
//! | a comment `<!-- test: COMMANDS -->` | runs the commands, which readers do not see |

/// One thing to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Commands that must succeed.
    Script { line: usize, text: String },
    /// One command and the output that the page shows for it.
    Command { line: usize, text: String, output: Vec<String> },
    /// A file of the workspace.
    File { path: String, text: String, append: bool },
}

/// Languages of blocks that hold commands. All of them are executed or give a reason.
const COMMANDS: [&str; 5] = ["console", "sh", "bash", "shell", "shellsession"];

/// Everything executable in a page, in its order.
pub(crate) fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut file = None;
    let mut lines = page.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let line = line.trim_start();
        if let Some(comment) = line.strip_prefix("<!-- ") {
            let mut comment = comment.to_owned();
            while !comment.contains("-->") {
                let (_, next) =
                    lines.next().unwrap_or_else(|| panic!("line {at}: an open comment"));
                comment = format!("{comment}\n{next}");
            }
            let comment = comment.split("-->").next().unwrap_or_default().trim();
            if let Some(path) = comment.strip_prefix("file: ") {
                file = Some((path.to_owned(), false));
            } else if let Some(path) = comment.strip_prefix("append: ") {
                file = Some((path.to_owned(), true));
            } else if let Some(text) = comment.strip_prefix("test:") {
                steps.push(Step::Script { line: at + 1, text: text.trim().to_owned() });
            }
            continue;
        }
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else { continue };
        let body: Vec<&str> = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| !line.trim_start().starts_with("```"))
            .collect();
        // A block inside a list is indented.
        let indent = body.first().map_or(0, |line| line.len() - line.trim_start().len());
        let body: Vec<&str> = body.iter().map(|line| line.get(indent..).unwrap_or("")).collect();
        if let Some((path, append)) = file.take() {
            steps.push(Step::File { path, text: body.join("\n") + "\n", append });
            continue;
        }
        let (language, rest) = info.split_once(' ').unwrap_or((info, ""));
        if !COMMANDS.contains(&language) {
            continue;
        }
        if let Some(reason) = rest.strip_prefix("not-run:") {
            assert!(reason.trim().len() > 3, "line {}: `not-run` needs a reason", at + 1);
            continue;
        }
        assert_eq!(rest, "", "line {}: unknown words after ```{language}", at + 1);
        if language == "console" {
            steps.extend(commands(at + 1, &body));
        } else {
            steps.push(Step::Script { line: at + 1, text: body.join("\n") });
        }
    }
    steps
}

/// The commands of a `console` block. A command continues on the next line after `\` or inside quotes.
fn commands(block: usize, body: &[&str]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = body.iter().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        if line.trim().is_empty() {
            continue;
        }
        let command = line.strip_prefix("$ ");
        let mut text = command.unwrap_or_else(|| panic!("line {}: no `$ `", block + at)).to_owned();
        while text.ends_with('\\') || text.matches('\'').count() % 2 == 1 {
            let (_, next) = lines.next().unwrap_or_else(|| panic!("line {}: no end", block + at));
            text = format!("{text}\n{next}");
        }
        let mut output = Vec::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.starts_with("$ ")) {
            output.push((*line).to_owned());
        }
        while output.last().is_some_and(|line| line.trim().is_empty()) {
            output.pop();
        }
        steps.push(Step::Command { line: block + at + 1, text, output });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_in_its_order() {
        let page = "<!-- test: mkdir a -->\n<!-- file: a/b -->\n```text\nfirst\n```\n```console\n$ cat \\\n  a/b\nfirst\n\n$ true\n```\n\
                    ```console not-run: needs docker\n$ docker\n```\n```sh\ntrue\n```\n";
        let script = |line, text: &str| Step::Script { line, text: text.to_owned() };
        let command = |line, text: &str, output: &[&str]| Step::Command {
            line,
            text: text.to_owned(),
            output: output.iter().map(|&line| line.to_owned()).collect(),
        };
        assert_eq!(
            steps(page),
            [
                script(1, "mkdir a"),
                Step::File { path: "a/b".into(), text: "first\n".into(), append: false },
                command(7, "cat \\\n  a/b", &["first"]),
                command(11, "true", &[]),
                script(16, "true"),
            ]
        );
    }

    #[test]
    #[should_panic(expected = "needs a reason")]
    fn a_block_that_is_not_run_has_a_reason() {
        steps("```console not-run:\n$ rm\n```\n");
    }
}
