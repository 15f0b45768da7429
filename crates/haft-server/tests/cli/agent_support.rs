//! The agent at the command line: a scripted model, and a person at a terminal.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

use testkit::model::{AskedModel, Format};
use testkit::{DEADLINE, Finished, ModelServer, Program, Step, TRUSTED, Workspace, eventually};

use crate::{haft, toolbox};

/// Whole turns are tried in both.
pub(crate) const FORMATS: [Format; 2] = [Format::OpenAi, Format::Anthropic];

/// The local tools of [`toolbox`], and a model.
pub(crate) fn toolbox_with(model: &ModelServer, rest: &str) -> Workspace {
    let workspace = toolbox();
    let config = format!("registry: {{dir: tools}}\n{}", agent(model, rest));
    workspace.write("haft.yaml", config);
    workspace
}

/// A folder whose configuration has only a model, and `rest`.
pub(crate) fn only(model: &ModelServer, rest: &str) -> Workspace {
    Workspace::with(&[("haft.yaml", &agent(model, rest))])
}

fn agent(model: &ModelServer, rest: &str) -> String {
    // A model that fails is asked once: nothing here is about asking again.
    format!("{}  retries: 0\n{rest}\n", model.config())
}

/// `haft run` with arguments, about to be run.
pub(crate) fn asking(workspace: &Workspace, args: &[&str]) -> Program {
    haft(workspace, &[&["run"], args].concat())
}

/// The answer of `haft run`, which must have succeeded.
pub(crate) fn answer(finished: &Finished) -> &str {
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    finished.stdout.trim_end()
}

/// The model answers with the number of messages so far.
pub(crate) fn count(asked: &AskedModel) -> Step {
    let said = asked.messages().iter().filter(|it| it["role"] != "system").count();
    Step::text(format!("{said} messages"))
}

/// A terminal with a shell in it. What is typed and shown goes through it as it does for a person.
pub(crate) struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: Arc<Mutex<Vec<u8>>>,
    /// Part of the screen that was checked.
    looked_at: usize,
}

/// The state after the shell's line is over.
pub(crate) struct Left {
    /// Everything that was shown.
    pub(crate) screen: String,
    /// The exit code of the line.
    pub(crate) code: i32,
    /// True if the terminal reads lines and shows what is typed, as a shell expects.
    pub(crate) is_sane: bool,
}

impl Terminal {
    /// Runs a shell line with `$haft`. Haft has its built-in tools.
    pub(crate) fn open(workspace: &Workspace, line: &str) -> Self {
        const SPAWN: &str = "import pty, sys; pty.spawn(sys.argv[1:])";
        // Ctrl-C is for the program and not for the shell.
        let line = format!(
            "stty rows 50 cols 150; trap : INT; {line}\necho \"exit code $?\"; stty -a; echo over"
        );
        let mut command = Command::new("python3");
        command.args(["-c", SPAWN, "sh", "-c", &line]).current_dir(workspace.path()).env_clear();
        for name in ["PATH", "HOME"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.envs([workspace.state_home()]);
        command.env("haft", env!("CARGO_BIN_EXE_haft"));
        command.env("TERM", "xterm").env("NO_COLOR", "1").envs([TRUSTED]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a terminal");
        let keys = child.stdin.take().expect("a pipe");
        let mut output = child.stdout.take().expect("a pipe");
        let screen = Arc::new(Mutex::new(Vec::new()));
        let shown = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                shown.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Self { child, keys, screen, looked_at: 0 }
    }

    /// Waits until a string is shown that was not checked yet. Returns the output before it.
    pub(crate) fn see(&mut self, text: &str) -> String {
        let start = std::time::Instant::now();
        loop {
            let screen = self.screen.lock().unwrap()[self.looked_at..].to_vec();
            let found = screen.windows(text.len()).position(|part| part == text.as_bytes());
            if let Some(at) = found {
                self.looked_at += at + text.len();
                return String::from_utf8_lossy(&screen[..at]).into_owned();
            }
            let screen = String::from_utf8_lossy(&screen);
            assert!(start.elapsed() < DEADLINE, "{text:?} is not shown:\n{screen}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Types a line.
    pub(crate) fn enter(&mut self, line: &str) {
        self.press(&format!("{line}\r"));
    }

    /// Types what is given, and nothing else.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush()).expect("typed");
    }

    /// Waits for the end of the line.
    pub(crate) fn left(mut self) -> Left {
        self.see("exit code ");
        let code = self.see("\r\n").parse().expect("a number");
        let modes = self.see("over");
        eventually("the terminal is closed", || self.child.try_wait().expect("its status"));
        let has = |mode: &str| modes.split_whitespace().any(|word| word == mode);
        let screen = String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned();
        Left { screen, code, is_sane: has("icanon") && has("echo") && has("isig") }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Both fail where it has ended, which is the usual case.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Ctrl-C and Ctrl-D.
pub(crate) const CTRL_C: &str = "\u{3}";
pub(crate) const CTRL_D: &str = "\u{4}";
