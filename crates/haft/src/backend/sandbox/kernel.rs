//! Landlock: rules of the kernel that a process puts on itself and passes on to its children.

/// The parts of Landlock that this kernel can enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Features {
    /// Every right on files that the rules name.
    pub(super) has_files: bool,
    /// TCP ports.
    pub(super) has_network: bool,
    /// Signals and abstract Unix sockets.
    pub(super) has_scopes: bool,
}

#[cfg(target_os = "linux")]
pub(super) use linux::{features, restrict};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{features, restrict};

#[cfg(target_os = "linux")]
mod linux {
    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort,
        PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError,
        RulesetStatus, Scope,
    };

    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

    use super::Features;
    use crate::backend::sandbox::grants::{Access, Grant};
    use crate::backend::sandbox::spec::{LandlockSpec, NetworkSpec};

    /// The first version that restricts truncation too; with an older one a program empties files.
    const FILES: ABI = ABI::V3;
    /// The first version that restricts TCP.
    const NETWORK: ABI = ABI::V4;
    /// The first version that restricts the control of devices.
    const DEVICES: ABI = ABI::V5;
    /// The first version that restricts signals and abstract sockets.
    const SCOPES: ABI = ABI::V6;

    /// Asks the kernel, without restricting anything.
    pub(in super::super) fn features() -> Features {
        let has =
            |ruleset: Result<Ruleset, RulesetError>| ruleset.and_then(Ruleset::create).is_ok();
        Features {
            has_files: has(required().handle_access(AccessFs::from_all(FILES))),
            has_network: has(required().handle_access(AccessNet::from_all(NETWORK))),
            has_scopes: has(required().scope(Scope::from_all(SCOPES))),
        }
    }

    fn required() -> Ruleset {
        Ruleset::default().set_compatibility(CompatLevel::HardRequirement)
    }

    /// Restricts this thread, and with it the program that it becomes. Fails if the kernel cannot enforce all of
    /// it.
    pub(in super::super) fn restrict(spec: &LandlockSpec) -> Result<(), String> {
        match restricted(spec) {
            Ok(RulesetStatus::FullyEnforced) => drop_capabilities(),
            Ok(RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced) => {
                Err("the kernel does not enforce all rules of Landlock".to_owned())
            }
            Err(error) => Err(format!("the kernel refuses the rules of Landlock: {error}")),
        }
    }

    /// Capabilities of root bypass rules: they read the memory of processes outside, for example. The program does
    /// not get them back, because Landlock forbids new privileges.
    fn drop_capabilities() -> Result<(), String> {
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, sets)
            .map_err(|error| format!("the capabilities cannot be dropped: {error}"))
    }

    fn restricted(spec: &LandlockSpec) -> Result<RulesetStatus, RulesetError> {
        let Features { has_scopes, .. } = features();
        let mut files = AccessFs::from_all(FILES);
        let mut ruleset = required();
        if required().handle_access(AccessFs::from_all(DEVICES)).and_then(Ruleset::create).is_ok() {
            files = AccessFs::from_all(DEVICES);
        }
        ruleset = ruleset.handle_access(files)?;
        if spec.network != NetworkSpec::All {
            ruleset = ruleset.handle_access(AccessNet::from_all(NETWORK))?;
        }
        if has_scopes {
            ruleset = ruleset.scope(Scope::from_all(SCOPES))?;
        }
        let mut created = ruleset.create()?;
        for grant in &spec.grants {
            let Some(rights) = rights(grant, files) else { continue };
            let Ok(path) = PathFd::new(&grant.path) else {
                // What vanished since the list was made is not granted.
                continue;
            };
            created = created.add_rule(PathBeneath::new(path, rights))?;
        }
        if let NetworkSpec::Ports(ports) = &spec.network {
            for port in ports {
                created = created.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
            }
        }
        created.restrict_self().map(|status| status.ruleset)
    }

    /// The kernel's rights for a grant; those on entries of folders do not fit a file.
    fn rights(grant: &Grant, handled: BitFlags<AccessFs>) -> Option<BitFlags<AccessFs>> {
        let rights = match grant.access {
            Access::Link => return None,
            Access::List => AccessFs::ReadDir.into(),
            Access::Read => AccessFs::from_read(FILES),
            Access::Device => AccessFs::ReadFile | AccessFs::WriteFile,
            // Without the control of devices: a writable folder has none.
            Access::Write => {
                AccessFs::from_all(FILES) & !(AccessFs::MakeBlock | AccessFs::MakeChar)
            }
        };
        let rights = rights & handled;
        Some(if grant.path.is_dir() { rights } else { rights & AccessFs::from_file(FILES) })
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use super::Features;
    use crate::backend::sandbox::spec::LandlockSpec;

    pub(in super::super) fn features() -> Features {
        Features { has_files: false, has_network: false, has_scopes: false }
    }

    pub(in super::super) fn restrict(_: &LandlockSpec) -> Result<(), String> {
        Err("this system has no Landlock".to_owned())
    }
}
