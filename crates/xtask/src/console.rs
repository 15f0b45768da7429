//! The web console: rebuilt from its lockfile, compared with the committed files, and driven in a browser.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};

use crate::peers;
use crate::run::{cargo, root, shown_path, step, target};
use crate::tools::require;

/// The built files that the binary embeds.
const COMMITTED: &str = "crates/haft-server/console";

/// Checks, builds and drives the console with the binary that the tests have built.
pub(crate) fn check_built() -> Result<()> {
    require("chromium", "chromium")?;
    let place = prepare()?;
    npm(&place, &["check"])?;
    npm(&place, &["test"])?;
    compare_types(&place)?;
    npm(&place, &["build", "--", "--outDir", "dist", "--logLevel", "warn"])?;
    compare(&place.join("dist"))?;
    npm(&place, &["e2e"])
}

/// Prints the sizes and times of the console, with a large log and many tools.
pub(crate) fn bench() -> Result<()> {
    require("chromium", "chromium")?;
    step(&mut cargo(&["build", "--profile=dist", "--package", "haft-server", "--bin", "haft"]))?;
    let place = prepare()?;
    npm(&place, &["build", "--", "--outDir", "dist", "--logLevel", "warn"])?;
    npm_with(&target().join("dist/haft"), &place, &["bench"])
}

/// Builds the console and replaces the committed files.
pub(crate) fn write() -> Result<()> {
    let place = prepare()?;
    npm(&place, &["build", "--", "--outDir", "dist", "--logLevel", "warn"])?;
    let committed = root().join(COMMITTED);
    if committed.is_dir() {
        fs::remove_dir_all(&committed)?;
    }
    for (name, bytes) in files(&place.join("dist"))? {
        let path = committed.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&committed))?;
        fs::write(path, bytes)?;
    }
    eprintln!("console: wrote {COMMITTED}");
    Ok(())
}

/// Copies the sources beside installed packages, so that the source folder stays clean.
fn prepare() -> Result<PathBuf> {
    let source = root().join("console");
    let place = target().join("console");
    let read = |name: &str| fs::read_to_string(source.join(name));
    install(&place, &read("package.json")?, &read("package-lock.json")?)?;
    for folder in ["src", "e2e", "dist"] {
        let old = place.join(folder);
        if old.is_dir() {
            fs::remove_dir_all(old)?;
        }
    }
    for (name, bytes) in files(&source)? {
        let path = place.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&place))?;
        fs::write(path, bytes)?;
    }
    Ok(place)
}

/// Installs the packages of the lockfile. `npm ci` would refuse a lockfile made by a registry that lacks the
/// packages of other platforms; `npm install` takes the same versions and checks the same hashes.
fn install(place: &Path, packages: &str, lock: &str) -> Result<()> {
    let pins = format!("{packages}{lock}");
    peers::install_once("npm packages (console)", place, &pins, || {
        fs::create_dir_all(place)?;
        fs::write(place.join("package.json"), packages)?;
        fs::write(place.join("package-lock.json"), lock)?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"]);
        step(npm.args(["--loglevel=error", "--prefix"]).arg(place.canonicalize()?))
    })
}

/// Runs a script of the console's package with the binary that the tests have built.
fn npm(place: &Path, script: &[&str]) -> Result<()> {
    npm_with(&target().join("debug/haft"), place, script)
}

/// Runs a script of the console's package with the Node.js of the peers.
fn npm_with(haft: &Path, place: &Path, script: &[&str]) -> Result<()> {
    let node = peers::node()?;
    let mut path = OsString::from(node.parent().unwrap_or(Path::new("")));
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    let mut npm = Command::new("npm");
    npm.arg("--prefix").arg(place.canonicalize()?).args(["run", "--silent"]).args(script);
    npm.env("PATH", path)
        .env("HAFT_BIN", haft)
        .env("HAFT_PEERS", peers::folder())
        .env("HAFT_SHOTS", target().join("console-shots"));
    step(&mut npm)
}

/// The client's types are generated from the API document, so the console cannot drift from the API.
fn compare_types(place: &Path) -> Result<()> {
    npm(place, &["api"])?;
    let generated = fs::read(place.join("src/api/schema.d.ts"))?;
    if generated != fs::read(root().join("console/src/api/schema.d.ts"))? {
        bail!(
            "console/src/api/schema.d.ts does not match openapi.json: run `npm run api` in console/"
        );
    }
    Ok(())
}

fn compare(built: &Path) -> Result<()> {
    let (built, committed) = (files(built)?, files(&root().join(COMMITTED))?);
    if built != committed {
        let names = built.keys().chain(committed.keys());
        let differs = names.filter(|name| built.get(*name) != committed.get(*name));
        let differs: Vec<String> = differs.map(|name| shown_path(name)).collect();
        bail!(
            "{COMMITTED} is not what the sources build: {}; run `cargo xtask console --write`",
            differs.join(", ")
        );
    }
    eprintln!("console: the committed files are what the sources build");
    Ok(())
}

/// Every file below a folder, without installed packages.
fn files(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(relative) = folders.pop() {
        let place = folder.join(&relative);
        for entry in fs::read_dir(&place).with_context(|| shown_path(&place))? {
            let entry = entry?;
            let name = relative.join(entry.file_name());
            if !entry.file_type()?.is_dir() {
                found.insert(name, fs::read(entry.path())?);
            } else if entry.file_name() != "node_modules" {
                folders.push(name);
            }
        }
    }
    Ok(found)
}
