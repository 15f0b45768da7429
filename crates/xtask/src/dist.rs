//! Packages of a release in `target/artifacts`: a tarball, a Debian package, the wheel of the Python client and
//! their checksums.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run::{cargo, root, step, target};
use crate::tools::require;

/// The version of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The scripts of `haft completions`, each with its place in a file system.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/haft"),
    ("fish", "usr/share/fish/vendor_completions.d/haft.fish"),
    ("zsh", "usr/share/zsh/vendor-completions/_haft"),
];

/// Files of the repository, each with its place and mode.
const FILES: [(&str, &str, &str); 5] = [
    ("LICENSE", "usr/share/doc/haft/copyright", "644"),
    ("README.md", "usr/share/doc/haft/README.md", "644"),
    ("CHANGELOG.md", "usr/share/doc/haft/CHANGELOG.md", "644"),
    ("deploy/haft.yaml", "etc/haft/haft.yaml", "644"),
    ("deploy/haft.service", "usr/lib/systemd/system/haft.service", "644"),
];

/// Creates the user; the unit is enabled by the operator, after a key was created.
const POSTINST: &str = "#!/bin/sh\nset -e\nif ! getent passwd haft >/dev/null; then\n    \
    useradd --system --home-dir /var/lib/haft --shell /usr/sbin/nologin haft\nfi\n";

/// Builds the packages. `options` may name a binary to package in place of a new build: `--binary PATH`.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let binary = match options {
        [] => {
            let args = ["build", "--profile=dist", "--locked", "--package", "haft-server"];
            step(cargo(&args).args(["--bin", "haft"]))?;
            target().join("dist/haft")
        }
        ["--binary", path] => PathBuf::from(path).canonicalize()?,
        _ => bail!("use `cargo xtask dist [--binary PATH]`"),
    };
    require("dpkg-deb", "dpkg")?;
    let artifacts = target().join("artifacts");
    let tree = artifacts.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    fill(&tree, &binary)?;
    let arch = output(Command::new("dpkg").arg("--print-architecture"))?;
    let name = format!("haft-{VERSION}-linux-{}", arch.trim());
    let tarball = format!("{name}.tar.gz");
    let mut tar = Command::new("tar");
    tar.args(["--create", "--gzip", "--owner=0", "--group=0", "--file"])
        .arg(artifacts.join(&tarball));
    step(tar.arg("--directory").arg(&tree).arg(".").arg(format!("--transform=s,^\\.,{name},")))?;
    let package = format!("haft_{VERSION}_{}.deb", arch.trim());
    control(&tree, arch.trim())?;
    let mut deb = Command::new("dpkg-deb");
    step(deb.args(["--root-owner-group", "--build"]).arg(&tree).arg(artifacts.join(&package)))?;
    let wheel = wheel(&artifacts)?;
    let files = [&tarball, &package, &wheel];
    let sums = output(Command::new("sha256sum").args(files).current_dir(&artifacts))?;
    fs::write(artifacts.join("SHA256SUMS"), sums)?;
    check_install(&artifacts.join(&package))
}

/// Builds the wheel of the Python client. Its name is returned.
fn wheel(artifacts: &Path) -> Result<String> {
    crate::peers::install_client()?;
    let python = crate::peers::folder().join("client/bin/python");
    let mut build = Command::new(python);
    build.args(["-m", "hatchling", "build", "--target", "wheel", "--directory"]).arg(artifacts);
    step(build.current_dir(root().join("clients/python")))?;
    let name = format!("haft_client-{VERSION}-py3-none-any.whl");
    if !artifacts.join(&name).is_file() {
        bail!("`clients/python/pyproject.toml` has another version than {VERSION}");
    }
    Ok(name)
}

/// The files of the packages, as they are installed.
fn fill(tree: &Path, binary: &Path) -> Result<()> {
    // The unit starts `/usr/local/bin/haft`; packages install to `/usr/bin`.
    install(binary, &tree.join("usr/bin/haft"), "755")?;
    for (source, place, mode) in FILES {
        install(&root().join(source), &tree.join(place), mode)?;
    }
    let unit = tree.join("usr/lib/systemd/system/haft.service");
    let text = fs::read_to_string(&unit)?.replace("/usr/local/bin/haft", "/usr/bin/haft");
    fs::write(&unit, text)?;
    for (shell, place) in COMPLETIONS {
        let place = tree.join(place);
        fs::create_dir_all(place.parent().unwrap_or(tree))?;
        fs::write(&place, output(Command::new(binary).args(["completions", shell]))?)?;
    }
    Ok(())
}

fn install(source: &Path, place: &Path, mode: &str) -> Result<()> {
    step(Command::new("install").args(["-D", "-m", mode]).arg(source).arg(place))
}

/// The description of the Debian package.
fn control(tree: &Path, arch: &str) -> Result<()> {
    let folder = tree.join("DEBIAN");
    fs::create_dir_all(&folder)?;
    let text = format!(
        "Package: haft\nVersion: {VERSION}\nArchitecture: {arch}\nMaintainer: The Haft developers <haft@localhost>\n\
         Depends: libc6, ca-certificates, python3\nRecommends: nodejs\nSection: utils\nPriority: optional\n\
         Description: One handle on every tool an LLM agent may use\n"
    );
    fs::write(folder.join("control"), text)?;
    fs::write(folder.join("conffiles"), "/etc/haft/haft.yaml\n")?;
    fs::write(folder.join("postinst"), POSTINST)?;
    step(Command::new("chmod").arg("755").arg(folder.join("postinst")))
}

/// Unpacks the package into an empty folder and runs what it installs.
fn check_install(package: &Path) -> Result<()> {
    let place = target().join("artifacts/installed");
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    step(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&place))?;
    let version = output(Command::new(place.join("usr/bin/haft")).arg("--version"))?;
    if !version.contains(VERSION) {
        bail!("the installed program is another version: {version}");
    }
    eprintln!("dist: {} installs {}", package.display(), version.trim());
    Ok(())
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?} could not be started"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
