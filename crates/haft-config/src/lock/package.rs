//! The package that a command line runs: `npx`, `uvx` and their relatives download it at each start.

use std::path::Path;

/// A package and the version that the command line names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The program that downloads it.
    pub runner: String,
    /// The package.
    pub name: String,
    /// The exact version. `None` if the command line leaves it open.
    pub version: Option<String>,
}

/// Options of the programs whose next word is their value.
const VALUED: [&str; 8] =
    ["--python", "--with", "--index-url", "--registry", "--cache", "--call", "-c", "--index"];
/// Options whose next word is the package.
const NAMING: [&str; 3] = ["--from", "--package", "-p"];

impl Package {
    /// The package of a command line; `None` if it does not download one.
    ///
    /// ```
    /// use haft_config::lock::Package;
    ///
    /// let package = Package::of("uvx", &["mcp-server-time==2026.10.19"]).unwrap();
    /// assert_eq!((package.name.as_str(), package.version.as_deref()), ("mcp-server-time", Some("2026.10.19")));
    /// assert_eq!(Package::of("npx", &["-y", "@scope/server"]).unwrap().version, None);
    /// assert_eq!(Package::of("python3", &["server.py"]), None);
    /// ```
    pub fn of(command: &str, args: &[&str]) -> Option<Self> {
        let program = Path::new(command).file_name()?.to_str()?;
        let (runner, args) = match (program, args) {
            ("npx" | "bunx" | "pnpx" | "uvx", args) => (program.to_owned(), args),
            ("uv", ["tool", "run", args @ ..]) => ("uv tool run".to_owned(), args),
            ("pipx", ["run", args @ ..]) => ("pipx run".to_owned(), args),
            ("npm", ["exec", args @ ..]) => ("npm exec".to_owned(), args),
            ("pnpm", ["dlx", args @ ..]) => ("pnpm dlx".to_owned(), args),
            _ => return None,
        };
        let is_python = matches!(program, "uvx" | "uv" | "pipx");
        let (name, version) = split(spec(args, is_python)?, is_python);
        Some(Self { runner, name, version })
    }

    /// The package with its version, as the program's own notation; `None` if the version is open.
    pub fn pinned(&self) -> Option<String> {
        let version = self.version.as_ref()?;
        let is_python = matches!(self.runner.as_str(), "uvx" | "uv tool run" | "pipx run");
        let sign = if is_python { "==" } else { "@" };
        Some(format!("{}{sign}{version}", self.name))
    }
}

/// The word that names the package.
fn spec<'a>(args: &[&'a str], is_python: bool) -> Option<&'a str> {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let inline = NAMING.iter().find_map(|it| arg.strip_prefix(it)?.strip_prefix('='));
        if inline.is_some() {
            return inline;
        }
        // `-p` of uvx is the version of Python.
        if NAMING.contains(arg) && !(is_python && *arg == "-p") {
            return args.next().copied();
        }
        if VALUED.contains(arg) || *arg == "-p" {
            args.next();
        } else if !arg.starts_with('-') {
            return Some(arg);
        }
    }
    None
}

fn split(spec: &str, is_python: bool) -> (String, Option<String>) {
    if is_python && let Some((name, version)) = spec.split_once("==") {
        return (name.to_owned(), exact(version));
    }
    // A scope begins with the same sign as a version.
    match spec.get(1..).and_then(|rest| rest.rfind('@')) {
        Some(at) => (spec[..=at].to_owned(), exact(&spec[at + 2..])),
        None => (spec.to_owned(), None),
    }
}

/// A version that names one release: it has a digit first, and no range.
fn exact(version: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '!');
    let names_a_release = version.matches('.').count() >= 1
        && version.starts_with(|c: char| c.is_ascii_digit())
        && version.chars().all(is_plain)
        && !version.split('.').any(|part| part == "x");
    names_a_release.then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_pinned_only_if_it_names_one_release() {
        let pinned = |command: &str, args: &str| {
            let args: Vec<&str> = args.split(' ').collect();
            Package::of(command, &args).and_then(|it| it.pinned())
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(pinned("npx", "-y @scope/a@1.2.3 --flag"), some("@scope/a@1.2.3"));
        assert_eq!(pinned("/usr/bin/npx", "--package=a@1.2.3 run"), some("a@1.2.3"));
        assert_eq!(pinned("uvx", "--python 3.12 --from a==1.0 a-server"), some("a==1.0"));
        assert_eq!(pinned("uv", "tool run a@1.0"), some("a==1.0"));
        for open in ["a", "@scope/a", "a@latest", "a@^1.2.3", "a@1.x", "a@1", "-y"] {
            assert_eq!(pinned("npx", open), None, "{open}");
        }
        assert_eq!(pinned("uvx", "a>=1.0"), None);
    }
}
