//! The command that runs a program inside its sandbox.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use haft_config::config::choices::Sandbox;
use haft_config::config::sandbox::SandboxConfig;
use tokio::process::Command;

use super::failure::SandboxError;
use super::grants::{Access, Grant, Grants};
use super::spec::{LandlockSpec, LaunchSpec};
use super::{SandboxContext, bubblewrap, launcher, limits, own_program, system};
use crate::backend::work_folder::WorkFolder;

/// A program to run in a sandbox.
pub(in crate::backend) struct Program<'a> {
    /// The program and its arguments.
    pub(in crate::backend) argv: Vec<OsString>,
    /// Its whole environment.
    pub(in crate::backend) env: Vec<(OsString, OsString)>,
    /// Its working directory; Haft's own by default.
    pub(in crate::backend) folder: Option<&'a Path>,
    /// Further programs that it starts.
    pub(in crate::backend) starts: Vec<OsString>,
    /// Folders that it reads besides the configured ones.
    pub(in crate::backend) read: Vec<PathBuf>,
    /// Folders that it writes besides the configured ones.
    pub(in crate::backend) write: Vec<PathBuf>,
    /// The configuration key of its sandbox, for messages.
    pub(in crate::backend) setting: &'a str,
}

/// A command that runs a program inside its sandbox. Its standard streams are not set yet.
#[derive(Debug)]
pub(in crate::backend) struct Confined {
    pub(in crate::backend) command: Command,
    /// The temporary folder of the program. It must outlive the process.
    pub(in crate::backend) temp: Option<WorkFolder>,
}

/// Builds the command. Nothing is started.
pub(in crate::backend) fn confine(
    sandbox: &SandboxConfig,
    context: &SandboxContext,
    program: Program<'_>,
) -> Result<Confined, SandboxError> {
    let Program { mut argv, mut env, folder, starts, mut read, write, setting } = program;
    let folder = working_folder(folder)?;
    // Found here and not inside: its own folder is granted.
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    let file = argv.first().map(|it| own_program::find(it, path.as_deref())).transpose();
    let Some(file) = file.map_err(SandboxError::Program)? else {
        return Err(SandboxError::Program(std::io::ErrorKind::NotFound.into()));
    };
    argv[0] = file.clone().into();
    for program in starts {
        let file = own_program::find(&program, path.as_deref()).map_err(SandboxError::Program)?;
        read.extend(own_program::folders(&file));
    }
    if sandbox.limits.processes.is_some() && limits::is_exempt() {
        return Err(SandboxError::unavailable(limits::ROOT_IS_EXEMPT, limits::ROOT_REMEDY));
    }
    let mut grants = Grants::new(&context.0.own_files, setting);
    if sandbox.kind != Sandbox::None {
        grant_files(&mut grants, sandbox, &file, &folder, &read, &write)?;
    }
    let mut temp = None;
    let mut command = match sandbox.kind {
        Sandbox::None => {
            launched(context, &LaunchSpec { landlock: None, limits: (&sandbox.limits).into() })?
        }
        Sandbox::Landlock => {
            let own = WorkFolder::create().map_err(|error| no_temp(&error))?;
            grants.add(own.path(), Access::Write);
            for device in system::DEVICES {
                grants.add(Path::new(device), Access::Device);
            }
            grants.add(Path::new("/proc"), Access::Read);
            set_temp(&mut env, Some(own.path()));
            temp = Some(own);
            let network = (&sandbox.network).into();
            let landlock = Some(LandlockSpec { grants: grants.into_list(), network });
            launched(context, &LaunchSpec { landlock, limits: (&sandbox.limits).into() })?
        }
        Sandbox::Bubblewrap => {
            set_temp(&mut env, None);
            bubblewrapped(sandbox, context, grants, &folder)?
        }
    };
    command.args(argv).env_clear().envs(env).current_dir(folder);
    Ok(Confined { command, temp })
}

/// The launcher with its specification. The program and its arguments follow.
fn launched(context: &SandboxContext, spec: &LaunchSpec) -> Result<Command, SandboxError> {
    let mut command = Command::new(launcher_file(context)?);
    command.args([launcher::ARGUMENT, &argument(spec)?]);
    Ok(command)
}

/// `bwrap` with its arguments, and the launcher inside if there are limits: they hold for the processes of the
/// namespace, so they are set in it.
fn bubblewrapped(
    sandbox: &SandboxConfig,
    context: &SandboxContext,
    mut grants: Grants<'_>,
    folder: &Path,
) -> Result<Command, SandboxError> {
    let bwrap = bubblewrap::program().ok_or_else(|| {
        SandboxError::unavailable(
            "`bwrap` is in no directory of PATH",
            "install the package `bubblewrap`, or use `sandbox: landlock`",
        )
    })?;
    let mut inner: Vec<OsString> = Vec::new();
    if !sandbox.limits.is_empty() {
        let launcher = launcher_file(context)?;
        grants.add(launcher, Access::Read);
        let spec = LaunchSpec { landlock: None, limits: (&sandbox.limits).into() };
        inner = vec![launcher.into(), launcher::ARGUMENT.into(), argument(&spec)?.into()];
    }
    let needs_user_namespace = sandbox.limits.processes.is_some();
    let grants: Vec<Grant> = grants.into_list();
    let mut command = Command::new(bwrap);
    command.args(bubblewrap::arguments(&grants, folder, &sandbox.network, needs_user_namespace));
    command.args(inner);
    Ok(command)
}

/// The files that the program needs anyway, then the configured lists.
fn grant_files(
    grants: &mut Grants<'_>,
    sandbox: &SandboxConfig,
    file: &Path,
    folder: &Path,
    read: &[PathBuf],
    write: &[PathBuf],
) -> Result<(), SandboxError> {
    for path in system::paths() {
        grants.add(&path, Access::Read);
    }
    for path in own_program::folders(file) {
        grants.read(&path)?;
    }
    if !system::is_shared(folder) {
        grants.read(folder)?;
    }
    // An empty path is the working directory.
    let named = read.iter().filter(|path| !path.as_os_str().is_empty());
    for path in named.chain(&sandbox.read) {
        grants.read(path)?;
    }
    for path in &sandbox.write {
        grants.write(path)?;
    }
    // Folders that Haft made for this program.
    for path in write {
        grants.add(path, Access::Write);
    }
    Ok(())
}

fn working_folder(folder: Option<&Path>) -> Result<PathBuf, SandboxError> {
    match folder {
        Some(folder) => std::path::absolute(folder),
        None => std::env::current_dir(),
    }
    .map_err(|error| {
        SandboxError::unavailable(
            format!("the working directory cannot be found: {error}"),
            "start Haft in a folder that exists",
        )
    })
}

/// Names the temporary folder, which is `/tmp` by default. A program without a home directory has its home there.
fn set_temp(env: &mut Vec<(OsString, OsString)>, folder: Option<&Path>) {
    for name in ["TMPDIR", "TMP", "TEMP"] {
        env.retain(|(known, _)| known != OsStr::new(name));
    }
    env.extend(folder.map(|folder| ("TMPDIR".into(), folder.into())));
    if !env.iter().any(|(name, _)| name == "HOME") {
        env.push(("HOME".into(), folder.unwrap_or(Path::new("/tmp")).into()));
    }
}

fn launcher_file(context: &SandboxContext) -> Result<&Path, SandboxError> {
    context.0.launcher.as_deref().ok_or_else(|| {
        SandboxError::unavailable(
            "this program has no launcher for sandboxes",
            "name one with `RuntimeBuilder::sandbox_launcher`, or use `bubblewrap` without limits",
        )
    })
}

fn argument(spec: &LaunchSpec) -> Result<String, SandboxError> {
    spec.argument().map_err(|_| {
        SandboxError::unavailable(
            "a path of the sandbox is not UTF-8",
            "rename the folder, or run the program in another one",
        )
    })
}

fn no_temp(error: &std::io::Error) -> SandboxError {
    let parent = std::env::temp_dir();
    SandboxError::unavailable(
        format!("no temporary folder could be made in `{}`: {error}", parent.display()),
        "make room there, or set `TMPDIR` to another directory",
    )
}
