//! The launcher: a process that restricts itself and then becomes the program.
//!
//! Landlock and resource limits hold for the process that sets them and for its descendants. Haft itself must not
//! be restricted, so a second process does it. The command `haft` has the launcher built in. A program that embeds
//! Haft calls [`main`] at the start of its own `main` and names itself with
//! [`RuntimeBuilder::sandbox_launcher`](crate::RuntimeBuilder::sandbox_launcher).

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use super::spec::LaunchSpec;
use super::{kernel, limits};

/// The first argument of a launcher.
pub const ARGUMENT: &str = "sandbox-exec";
/// The exit code of a launcher that did not start the program.
const EXIT_NOT_STARTED: u8 = 125;
/// Begins every line of the launcher.
pub(super) const PREFIX: &str = "haft sandbox: ";

/// Acts as the launcher if the arguments of this process ask for it. Otherwise returns `None` and has done
/// nothing. Call it before threads start: the restrictions hold for the calling thread.
///
/// ```
/// fn main() -> std::process::ExitCode {
///     if let Some(code) = haft::sandbox::launcher::main() {
///         return code;
///     }
///     // The program itself.
///     std::process::ExitCode::SUCCESS
/// }
/// ```
pub fn main() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != ARGUMENT {
        return None;
    }
    let problem = launch(args);
    // Standard error may be closed; the exit code says enough then.
    let _ = std::io::Write::write_all(
        &mut std::io::stderr(),
        format!("{PREFIX}{problem}\n").as_bytes(),
    );
    Some(ExitCode::from(EXIT_NOT_STARTED))
}

/// Restricts this process and becomes the program. Returns only if that failed.
fn launch(mut args: impl Iterator<Item = OsString>) -> String {
    let (Some(spec), Some(program)) = (args.next(), args.next()) else {
        return format!("`{ARGUMENT}` is started by Haft, with a specification and a program");
    };
    let Some(Ok(LaunchSpec { landlock, limits })) = spec.to_str().map(LaunchSpec::parse) else {
        return "the specification cannot be read".to_owned();
    };
    // Limits last: the rules of Landlock need open files.
    let restricted = landlock.as_ref().map_or(Ok(()), kernel::restrict);
    if let Err(problem) = restricted.and_then(|()| limits::apply(&limits)) {
        return problem;
    }
    let error = Command::new(&program).args(args).exec();
    format!("`{}` could not be started: {error}", program.display())
}
