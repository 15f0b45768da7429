//! The published gateways that are measured beside Haft, installed into `target/peers`.
//!
//! Each is installed by itself: one that cannot be installed is reported to the benchmark, with the reason.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

use crate::peers::{folder, install_npm, install_once, install_python, node};
use crate::run::{cargo, step};

const PACKAGES: &str = include_str!("../peers/bench/package.json");
const PACKAGES_LOCK: &str = include_str!("../peers/bench/package-lock.json");
const MCP_PROXY_PINS: &str = include_str!("../peers/bench/mcp-proxy.txt");
const FASTMCP_PINS: &str = include_str!("../peers/bench/fastmcp.txt");
const CRATE_VERSION: &str = "0.6.0";

/// Installs what is missing. What comes back is what the benchmark wants to know: a list of their names,
/// which each is, and its program or why there is none.
pub(crate) fn install() -> Value {
    let crates = install_crate();
    let npm = install_npm_gateways();
    let module = |path: &str| {
        let npm = npm.as_ref().map_err(Clone::clone);
        npm.map(|(node, modules)| vec![node.clone(), modules.join(path)])
    };
    json!([
        peer("Rust crate mcp-proxy 0.6.0", "cargo-mcp-proxy", crates.map(|it| vec![it])),
        peer("npm mcp-proxy 6.7.19", "npm-mcp-proxy", module("mcp-proxy/dist/bin/mcp-proxy.mjs")),
        peer("npm supergateway 4.0.0", "npm-supergateway", module("supergateway/dist/index.js")),
        peer("PyPI mcp-proxy 0.13.0", "pypi-mcp-proxy", python("mcp-proxy", MCP_PROXY_PINS)),
        peer("PyPI fastmcp 4.1.2", "pypi-fastmcp", python("fastmcp", FASTMCP_PINS)),
    ])
}

fn peer(name: &str, which: &str, program: Result<Vec<PathBuf>, String>) -> Value {
    match program {
        Ok(program) => json!({ "name": name, "which": which, "program": program }),
        Err(reason) => json!({ "name": name, "which": which, "left_out": reason }),
    }
}

/// Without the features that only add dependencies: none is used here.
fn install_crate() -> Result<PathBuf, String> {
    let place = folder().join("bench-cargo");
    let install = || {
        let args = ["install", "mcp-proxy", "--version", CRATE_VERSION, "--locked"];
        step(cargo(&args).args(["--no-default-features", "--root"]).arg(&place))
    };
    let installed = install_once("the crate mcp-proxy", &place, CRATE_VERSION, install);
    installed.map(|()| place.join("bin/mcp-proxy")).map_err(|error| reason(&error))
}

fn install_npm_gateways() -> Result<(PathBuf, PathBuf), String> {
    let place = folder().join("bench-npm");
    let node = node().map_err(|error| reason(&error))?;
    install_npm(&place, PACKAGES, PACKAGES_LOCK).map_err(|error| reason(&error))?;
    Ok((node, place.join("node_modules")))
}

/// The program has the name of its package.
fn python(name: &str, pins: &str) -> Result<Vec<PathBuf>, String> {
    let place = format!("bench-py/{name}");
    install_python(&place, pins).map_err(|error| reason(&error))?;
    Ok(vec![folder().join(place).join("bin").join(name)])
}

fn reason(error: &anyhow::Error) -> String {
    format!("{error:#}")
}
