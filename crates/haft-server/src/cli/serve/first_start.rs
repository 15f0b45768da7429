//! The first minute: without any configuration one is written, with one tool to try.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Where the first registry lies. A folder of Haft's own: nothing of a project is touched.
const REGISTRY: &str = ".haft/tools";

/// The first configuration, which every other command finds too.
const CONFIG: &str = "haft.yaml";

const YAML: &str = "# Written by the first `haft serve`; yours from now on. `haft config schema` knows every key.
registry: {dir: .haft/tools}     # tools.json, mcp.json and the scripts, changed over the API or by hand
# policy:
#   allowed_commands:            # what may be registered over the API
#     - npx -y @modelcontextprotocol/* ...
#     - uvx mcp-server-*
";

const TOOLS: &str = r#"{
  "tools": [
    {
      "name": "hello_world",
      "description": "Greets somebody by name.",
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

/// The files to serve. What is there already stays as it is.
pub(super) fn prepare() -> anyhow::Result<Vec<PathBuf>> {
    let folder = Path::new(REGISTRY);
    let is_new = !folder.join("tools.json").exists();
    fs::create_dir_all(folder).with_context(|| format!("cannot create `{REGISTRY}`"))?;
    if is_new {
        create(&folder.join("hello_world.py"), SCRIPT)?;
        create(&folder.join("mcp.json"), SERVERS)?;
        create(&folder.join("tools.json"), TOOLS)?;
    }
    create(Path::new(CONFIG), YAML)?;
    tracing::info!("there was no configuration: wrote `{CONFIG}`, with its tools in `{REGISTRY}`");
    Ok(vec![CONFIG.into()])
}

fn create(path: &Path, text: &str) -> anyhow::Result<()> {
    match fs::OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => io::Write::write_all(&mut file, text.as_bytes())
            .with_context(|| format!("cannot write `{}`", path.display())),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot create `{}`", path.display())),
    }
}
