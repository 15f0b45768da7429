//! The order to the launcher, in one argument.

use std::time::Duration;

use haft_config::config::sandbox::{ResourceLimits, SandboxNetwork};
use serde::{Deserialize, Serialize};

use super::grants::Grant;

/// Restrictions that the launcher puts on itself. A field it does not know makes it refuse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LaunchSpec {
    pub(super) landlock: Option<LandlockSpec>,
    pub(super) limits: LimitSpec,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LandlockSpec {
    pub(super) grants: Vec<Grant>,
    pub(super) network: NetworkSpec,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum NetworkSpec {
    All,
    /// TCP connections to these ports, and nothing else.
    Ports(Vec<u16>),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitSpec {
    pub(super) memory: Option<u64>,
    pub(super) processes: Option<u32>,
    pub(super) open_files: Option<u32>,
    pub(super) cpu_secs: Option<u64>,
}

impl From<&SandboxNetwork> for NetworkSpec {
    fn from(network: &SandboxNetwork) -> Self {
        match network {
            SandboxNetwork::All => Self::All,
            SandboxNetwork::None => Self::Ports(Vec::new()),
            SandboxNetwork::Ports(ports) => Self::Ports(ports.clone()),
        }
    }
}

impl From<&ResourceLimits> for LimitSpec {
    fn from(limits: &ResourceLimits) -> Self {
        let ResourceLimits { memory, processes, open_files, cpu } = *limits;
        Self { memory, processes, open_files, cpu_secs: cpu.as_ref().map(Duration::as_secs) }
    }
}

impl LaunchSpec {
    /// The argument. Fails for a path that is not UTF-8.
    pub(super) fn argument(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Reads the argument.
    pub(super) fn parse(argument: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(argument)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::backend::sandbox::grants::Access;

    #[test]
    fn an_argument_with_an_unknown_field_is_refused() {
        let grants = vec![Grant { path: PathBuf::from("/usr"), access: Access::Read }];
        let landlock = LandlockSpec { grants, network: NetworkSpec::Ports(vec![443]) };
        let spec = LaunchSpec { landlock: Some(landlock), limits: LimitSpec::default() };
        let argument = spec.argument().unwrap();
        assert_eq!(LaunchSpec::parse(&argument).unwrap(), spec);
        let newer = argument.replacen("\"limits\":{", "\"limits\":{\"disk\":1,", 1);
        LaunchSpec::parse(&newer).unwrap_err();
    }
}
