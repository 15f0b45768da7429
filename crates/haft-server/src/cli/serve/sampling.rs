//! The model that servers may ask: the one of the configuration in use.

use haft::Runtime;
use haft::config::agent::AgentConfig;
use haft_agent::Sampler;
use haft_agent::model;
use tokio_util::sync::CancellationToken;

use crate::gateway::Hub;

/// The model of a configuration; none if it is missing or unusable. Starting a run reports the reason.
pub(in crate::cli) fn sampler(config: &AgentConfig) -> Option<Sampler> {
    config.model.as_ref()?;
    model::open(config).ok().map(Sampler::new)
}

/// Keeps `hub` up to date with the configuration.
pub(super) async fn follow(runtime: Runtime, hub: Hub, stop: CancellationToken) {
    let mut changes = runtime.changes();
    let mut known = runtime.config().agent.clone();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            received = changes.changed() => if received.is_err() { return },
        }
        let config = runtime.config();
        if config.agent != known {
            known.clone_from(&config.agent);
            hub.set_sampler(sampler(&known));
        }
    }
}
