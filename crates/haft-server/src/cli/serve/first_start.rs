//! First start: without any configuration one is written, with one tool to try.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Where the first registry lies. A folder of Haft's own: nothing of a project is touched.
const REGISTRY: &str = ".haft/tools";

/// The first configuration, which every other command finds too.
const CONFIG: &str = "haft.yaml";

const YAML: &str = "# Written by the first `haft serve`; yours from now on. `haft config schema` knows every key.
registry: {dir: .haft/tools}     # tools.json, mcp.json and the scripts, changed over the API or by hand
# policy:
#   allowed_commands:            # what may be registered over the API; pin the versions
#     - npx -y @modelcontextprotocol/server-everything@2026.8.31
#     - uvx mcp-server-time==2026.10.19
";

const TOOLS: &str = r#"{
  "tools": [
    {
      "name": "hello_world",
      "description": "Greets a person by name.",
      "type": "local",
      "input_schema": {
        "type": "object",
        "properties": {"name": {"type": "string", "description": "Whom to greet."}},
        "required": ["name"]
      },
      "config": {"script_path": "hello_world.py"}
    }
  ]
}
"#;

const SERVERS: &str = "{\"mcp_servers\": {}}\n";

const SCRIPT: &str = "def run(args):
    return {\"greeting\": f\"Hello, {args['name']}!\"}
";

/// The first files to serve.
#[derive(Debug)]
pub(super) struct First {
    pub(super) files: Vec<PathBuf>,
    /// True if Haft wrote all of them. What is there already stays as it is.
    pub(super) is_own: bool,
}

pub(super) fn prepare() -> anyhow::Result<First> {
    let folder = Path::new(REGISTRY);
    let is_new = !folder.join("tools.json").exists();
    fs::create_dir_all(folder).with_context(|| format!("cannot create `{REGISTRY}`"))?;
    if is_new {
        create(&folder.join("hello_world.py"), SCRIPT, SHARED)?;
        create(&folder.join("mcp.json"), SERVERS, PRIVATE)?;
        create(&folder.join("tools.json"), TOOLS, PRIVATE)?;
    }
    create(Path::new(CONFIG), YAML, SHARED)?;
    Ok(First { files: vec![CONFIG.into()], is_own: is_new })
}

/// Logs that the files were written, once the log has its format.
pub(super) fn report() {
    tracing::info!("there was no configuration: wrote `{CONFIG}`, with its tools in `{REGISTRY}`");
}

/// The mode of a new file that others may read, as far as the user's mask lets them.
const SHARED: u32 = 0o666;
/// The mode of a new file of the registry: what is registered later may hold secrets.
const PRIVATE: u32 = 0o600;

fn create(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    match fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
        Ok(mut file) => io::Write::write_all(&mut file, text.as_bytes())
            .with_context(|| format!("cannot write `{}`", path.display())),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot create `{}`", path.display())),
    }
}
