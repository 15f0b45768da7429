//! The command `haft`, run from outside.
#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has failed")]
#![allow(clippy::format_push_string, reason = "the texts a test builds are small")]

mod agent_chat;
mod agent_people;
mod agent_run;
mod agent_sessions;
mod agent_support;
mod agent_terminal;
mod agent_tools;
mod builtin;
mod builtin_approval;
mod call;
mod check;
mod config;
mod documents;
mod e2e_calls;
mod e2e_dialects;
mod e2e_secrets;
mod e2e_start;
mod e2e_support;
mod exit_codes;
mod first_hour;
mod help;
mod import;
mod install;
mod interrupt;
mod keys;
mod lock;
mod log;
mod log_failure;
mod log_sync;
mod logging;
mod login;
mod masked;
mod mcp_check;
mod mcp_escape;
mod mcp_interrupt;
mod mcp_known;
mod mcp_output;
mod mcp_prompts;
mod mcp_proxy;
mod mcp_resources;
mod mcp_servers;
mod mcp_support;
mod mcp_terminal;
mod mcp_tools;
mod real_everything;
mod real_network;
mod real_npm;
mod real_python;
mod real_rmcp;
mod real_support;
mod sandbox;
mod sandbox_kernel;
mod sandbox_servers;
mod sandbox_tools;
mod select;
mod service;
mod terminal;
mod tools;
mod trust;

use testkit::{Finished, Program, Workspace};

/// Tools that every test of calling needs: one that answers, one that fails, one that waits.
const TOOLS_JSON: &str = r#"{"tools": [
  {"name": "greet", "description": "Greets by name.\nSecond line.", "type": "local",
   "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": false},
   "output_schema": {"type": "object"}, "parallel_capable": true, "config": {"script_path": "greet.py"}},
  {"name": "echo", "description": "Gives its arguments back.", "type": "local", "input_schema": {"type": "object"}, "config": {"command": ["cat"]}},
  {"name": "fail", "description": "Fails.", "type": "local", "input_schema": {"type": "object"}, "config": {"script_path": "fail.py"}},
  {"name": "wait", "description": "Waits for a minute.", "type": "local", "input_schema": {"type": "object"}, "timeout": "2m", "config": {"script_path": "wait.py"}}
]}"#;

const WAIT_PY: &str = "import os, subprocess, time\n\ndef run(args):\n    child = subprocess.Popen(['sleep', '60'])\n    with open('pids.tmp', 'w') as file:\n        file.write(f'{os.getpid()} {child.pid}')\n    os.rename('pids.tmp', args['pids'])\n    time.sleep(60)\n";

/// A workspace with `haft.yaml` and a registry of local tools.
fn toolbox() -> Workspace {
    Workspace::with(&[
        ("haft.yaml", "registry: {dir: tools}\n"),
        ("tools/tools.json", TOOLS_JSON),
        ("tools/mcp.json", r#"{"mcp_servers": {}}"#),
        (
            "tools/greet.py",
            "def run(args):\n    return {'greeting': f\"Hello, {args['name']}!\"}\n",
        ),
        ("tools/fail.py", "def run(args):\n    raise ValueError('the cause')\n"),
        ("tools/wait.py", WAIT_PY),
    ])
}

/// `haft` with arguments, about to be run.
fn haft(workspace: &Workspace, args: &[&str]) -> Program {
    Program::new(env!("CARGO_BIN_EXE_haft"), workspace).args(args)
}

/// Runs `haft` to its end.
fn run(workspace: &Workspace, args: &[&str]) -> Finished {
    haft(workspace, args).run()
}

/// Exit code and both streams in one text, for a snapshot.
fn transcript(workspace: &Workspace, finished: &Finished) -> String {
    let Finished { code, stdout, stderr } = finished;
    workspace.stable(&format!("exit code {code}\n--- stdout\n{stdout}--- stderr\n{stderr}"))
}
