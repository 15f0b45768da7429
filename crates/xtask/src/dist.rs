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

/// The folder of the documentation, whose pages errors name.
const DOCS: &str = "usr/share/doc/haft/docs";

/// The folder of the manual pages.
const MANUAL: &str = "usr/share/man/man1";

/// Files of the repository, each with its place and mode.
const FILES: [(&str, &str, &str); 5] = [
    ("LICENSE", "usr/share/doc/haft/copyright", "644"),
    ("README.md", "usr/share/doc/haft/README.md", "644"),
    ("CHANGELOG.md", "usr/share/doc/haft/CHANGELOG.md", "644"),
    ("deploy/haft.yaml", "etc/haft/haft.yaml", "644"),
    ("deploy/haft.service", "usr/lib/systemd/system/haft.service", "644"),
];

/// One of the manual pages.
const MANUAL_PAGE: &str = "usr/share/man/man1/haft-serve.1.gz";

/// A tool for one call of the installed program.
const TOOLS: &str = r#"{"tools": [{"name": "greet", "description": "Greets by name.", "type": "local",
"input_schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
"config": {"script_path": "greet.py"}}]}"#;

/// Its script.
const SCRIPT: &str = "def run(args):\n    return {'greeting': 'Hello, ' + args['name'] + '!'}\n";

/// Creates the user; the unit is enabled by the operator, after a key was created.
const POSTINST: &str = "#!/bin/sh\nset -e\nif ! getent passwd haft >/dev/null; then\n    \
    useradd --system --home-dir /var/lib/haft --shell /usr/sbin/nologin haft\nfi\n";

/// Packages the program that the tests have built, to check the packages.
pub(crate) fn check_built() -> Result<()> {
    run(&["--binary", &target().join("debug/haft").display().to_string()])
}

/// Builds the packages and installs them into an empty folder. `options` may name a binary to package in place of a new
/// build: `--binary PATH`. That is a trial, so it is packed quickly.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let (binary, compression) = match options {
        [] => {
            let args = ["build", "--profile=dist", "--locked", "--package", "haft-server"];
            step(cargo(&args).args(["--bin", "haft"]))?;
            (target().join("dist/haft"), "-Zxz")
        }
        ["--binary", path] => (PathBuf::from(path).canonicalize()?, "-Znone"),
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
    step(
        deb.args([compression, "--root-owner-group", "--build"])
            .arg(&tree)
            .arg(artifacts.join(&package)),
    )?;
    let wheel = wheel(&artifacts)?;
    let files = [&tarball, &package, &wheel];
    let sums = output(Command::new("sha256sum").args(files).current_dir(&artifacts))?;
    fs::write(artifacts.join("SHA256SUMS"), sums)?;
    let place = artifacts.join("installed");
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    let (deb, tar) = (place.join("deb"), place.join("tar"));
    fs::create_dir_all(&deb)?;
    fs::create_dir_all(&tar)?;
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("--extract").arg(artifacts.join(&package)).arg(&deb);
    check_install(&mut unpack, &deb, "")?;
    let mut unpack = Command::new("tar");
    unpack.args(["--extract", "--file"]).arg(artifacts.join(&tarball)).arg("--directory").arg(&tar);
    check_install(&mut unpack, &tar, &name)?;
    output(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(&artifacts))?;
    Ok(())
}

/// Builds the wheel of the Python client. Its name is returned.
fn wheel(artifacts: &Path) -> Result<String> {
    crate::peers::install_client()?;
    let python = crate::peers::folder().canonicalize()?.join("client/bin/python");
    let mut build = Command::new("env");
    build.arg("--chdir=clients/python").arg(python);
    build.args(["-m", "hatchling", "build", "--target", "wheel", "--directory"]).arg(artifacts);
    step(&mut build)?;
    let name = format!("haft_client-{VERSION}-py3-none-any.whl");
    if !artifacts.join(&name).is_file() {
        bail!("`clients/python/pyproject.toml` has another version than {VERSION}");
    }
    Ok(name)
}

/// The files of the packages, as they are installed.
fn fill(tree: &Path, binary: &Path) -> Result<()> {
    // The unit starts `/usr/local/bin/haft`; packages install to `/usr/bin`.
    let program = tree.join("usr/bin/haft");
    install(binary, &program, "755")?;
    step(Command::new("strip").arg(&program))?;
    for (source, place, mode) in FILES {
        install(&root().join(source), &tree.join(place), mode)?;
    }
    for page in fs::read_dir(root().join("docs"))? {
        let page = page?.path();
        if page.extension().is_some_and(|extension| extension == "md") {
            install(&page, &tree.join(DOCS).join(page.file_name().unwrap_or_default()), "644")?;
        }
    }
    let unit = tree.join("usr/lib/systemd/system/haft.service");
    let text = fs::read_to_string(&unit)?.replace("/usr/local/bin/haft", "/usr/bin/haft");
    fs::write(&unit, text)?;
    for (shell, place) in COMPLETIONS {
        let place = tree.join(place);
        fs::create_dir_all(place.parent().unwrap_or(tree))?;
        fs::write(&place, output(Command::new(binary).args(["completions", shell]))?)?;
    }
    manual_pages(&tree.join(MANUAL), binary)
}

/// The manual pages, compressed as Debian wants them.
fn manual_pages(folder: &Path, binary: &Path) -> Result<()> {
    step(Command::new(binary).arg("man").arg(folder))?;
    let mut gzip = Command::new("gzip");
    gzip.args(["--best", "--no-name"]);
    for page in fs::read_dir(folder)? {
        gzip.arg(page?.path());
    }
    step(&mut gzip)
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

/// Unpacks a package into an empty folder and uses what it installs: the program makes a call, and the files are there.
fn check_install(unpack: &mut Command, place: &Path, name: &str) -> Result<()> {
    step(unpack)?;
    let prefix = if name.is_empty() { place.to_path_buf() } else { place.join(name) };
    let program = prefix.join("usr/bin/haft");
    let version = output(Command::new(&program).arg("--version"))?;
    if !version.contains(VERSION) {
        bail!("the installed program is another version: {version}");
    }
    let completions = COMPLETIONS.iter().map(|(_, place)| *place);
    let files = FILES.iter().map(|(_, place, _)| *place).chain(completions);
    for file in files.chain([MANUAL_PAGE, "usr/share/doc/haft/docs/troubleshooting.md"]) {
        if !prefix.join(file).is_file() {
            bail!("{} does not install {file}", prefix.display());
        }
    }
    let page = output(
        Command::new("gzip").args(["--stdout", "--decompress"]).arg(prefix.join(MANUAL_PAGE)),
    )?;
    if !page.contains(".TH haft-serve 1") {
        bail!("{MANUAL_PAGE} is not a manual page");
    }
    call(&program, &place.join("work"))?;
    eprintln!("dist: {} installs {}", prefix.display(), version.trim());
    Ok(())
}

/// Makes one call with the installed program, in a folder of its own and with an empty environment.
fn call(program: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("tools.json"), TOOLS)?;
    fs::write(folder.join("greet.py"), SCRIPT)?;
    let mut command = Command::new(program);
    command.args(["-c", "tools.json", "call", "greet", "name=Ada"]).current_dir(folder);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", folder);
    let answer = output(&mut command)?;
    if !answer.contains("Hello, Ada!") {
        bail!("the installed program answered a call with {answer}");
    }
    Ok(())
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?} could not be started"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
