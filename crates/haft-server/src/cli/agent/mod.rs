//! Shared parts of `haft run` and `haft chat`: the model, the toolbox and the conversation.

mod completion;
mod form;
mod lines;
mod markdown;
mod markdown_table;
mod people;
mod printer;
mod spinner;

use std::sync::Arc;
use std::time::SystemTime;

use clap::Args;
use haft::config::ServerUrl;
use haft::config::model::Setting;
use haft::human_input::HumanInbox;
use haft::{Config, Runtime};
use haft_agent::model::{self, ModelError};
use haft_agent::{Agent, AgentSettings, Conversation, Sampler, SessionStore, SessionStoreError};

use super::toolbox::{Denied, Interrupted, Purpose, Toolbox};
use super::trust::Trusted;
use super::{EXIT_CONFIG, EXIT_RUNTIME, Failure, Global, load, load_shared};
use crate::gateway::Hub;

pub(super) use completion::Complete;
pub(super) use lines::{Lines, Said};
pub(super) use people::{Lasts, People};
pub(super) use printer::Printer;

/// The caller's name in the log.
const CALLER: &str = "cli";

/// Options of everything that asks a model.
#[derive(Debug, Args)]
pub(super) struct AgentArgs {
    /// The model, such as openai::gpt-5, anthropic::claude-sonnet-4-5, gemini::gemini-2.5-pro, ollama::qwen3
    #[arg(long, short, value_name = "PROVIDER::NAME")]
    model: Option<String>,
    /// The address of the model's service, such as http://localhost:8080/v1
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// System prompt for the model
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Largest number of model requests in one turn
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Approve every call that needs approval
    #[arg(long, short)]
    yes: bool,
    /// Resume a conversation, by its id or the beginning of it
    #[arg(long, value_name = "ID", conflicts_with = "last")]
    resume: Option<String>,
    /// Resume the most recent conversation
    #[arg(long)]
    last: bool,
    /// Do not keep the conversation
    #[arg(long, conflicts_with_all = ["resume", "last"])]
    no_session: bool,
}

impl AgentArgs {
    /// Returns true if the conversation can be resumed later.
    pub(super) fn is_kept(&self) -> bool {
        !self.no_session
    }
}

/// An agent that is ready, and its conversation.
pub(super) struct Opened {
    pub(super) toolbox: Toolbox,
    pub(super) agent: Agent,
    pub(super) conversation: Conversation,
    pub(super) inbox: HumanInbox,
    pub(super) denied: Denied,
}

impl Opened {
    pub(super) fn runtime(&self) -> &Runtime {
        &self.toolbox.runtime
    }
}

/// Starts everything. Problems of the model or the conversation are reported before anything is started.
pub(super) async fn open(global: &Global, args: &AgentArgs) -> anyhow::Result<Opened> {
    let config = configuration(global, args)?;
    if config.agent.model.is_none() {
        return Err(no_model(&config, args)?.into());
    }
    let model = model::open(&config.agent).map_err(|error| failure(EXIT_CONFIG, error))?;
    let conversation = conversation(&config, args, model.name())?;
    let settings = AgentSettings {
        caller: CALLER.to_owned(),
        approves_all: args.yes,
        ..AgentSettings::from(&*config.agent)
    };
    let inbox = if People::are_there() { HumanInbox::default() } else { HumanInbox::unseen() };
    let mut hub = Hub::with_inbox(inbox.clone());
    hub.set_sampler(Some(Sampler::new(Arc::clone(&model))));
    if args.yes {
        hub = hub.agreeing();
    }
    let denied = Denied::default();
    let purpose = Purpose::Agent(hub, inbox.clone(), denied.clone());
    let config = Trusted::require(global, config)?;
    let mut toolbox = Toolbox::open(config, purpose).await?;
    let runtime = toolbox.runtime.clone();
    let asked = toolbox.until_end(runtime.discover_late()).await;
    toolbox.hide_progress();
    if asked.is_none() {
        toolbox.end().await;
        return Err(Interrupted.into());
    }
    let agent = Agent::new(toolbox.runtime.clone(), model, settings);
    Ok(Opened { toolbox, agent, conversation, inbox, denied })
}

/// The configuration with the agent's options of the command line. There need not be a file.
fn configuration(global: &Global, args: &AgentArgs) -> anyhow::Result<Config> {
    let (config, options) = load::load_usable_if_any(global)?;
    let (mut config, options) = load_shared::with_registry(config, options)?;
    for warning in &config.warnings {
        tracing::warn!("{warning}; {}", warning.remedy);
    }
    if let Some(model) = &args.model {
        config.choose_model(model, &options.environment);
    }
    if let Some(url) = &args.base_url {
        config.agent.base_url = Some(address(url)?);
    }
    if let Some(system) = &args.system {
        config.agent.system = Some(Setting::default(system.clone()));
    }
    if let Some(steps) = args.max_steps {
        config.agent.max_steps.value = steps;
    }
    Ok(config)
}

/// The address of a model's service.
fn address(text: &str) -> Result<Setting<ServerUrl>, Failure> {
    let url = url::Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or_else(|| {
        let problem = format!("`--base-url {text}` is not an address of a model's service");
        Failure::new(EXIT_CONFIG, problem, "write such as --base-url http://localhost:8080/v1")
    })?;
    Ok(Setting::default(ServerUrl::new(url)))
}

/// The error for a missing model. A conversation stores the name of its model, and not its endpoint.
fn no_model(config: &Config, args: &AgentArgs) -> Result<Failure, Failure> {
    let store = SessionStore::of(config);
    let (message, remedy) = match resumed(&store, args)? {
        Some(id) => {
            let (saved, _) = store.show(&id).map_err(|error| unknown(&error))?;
            let message = "no model is configured to continue the conversation";
            (message, format!("it began with `{0}`: name it with `-m {0}`", saved.model))
        }
        None => (
            "no model is configured",
            "name one with `--model`, such as `-m openai::gpt-5` or `-m ollama::qwen3`".to_owned(),
        ),
    };
    let remedy = format!("{remedy}, or set `agent.model` in haft.yaml");
    Ok(Failure::new(EXIT_CONFIG, message, remedy))
}

/// The conversation to resume, if any.
fn resumed(store: &SessionStore, args: &AgentArgs) -> Result<Option<String>, Failure> {
    match &args.resume {
        Some(id) => Ok(Some(id.clone())),
        None if args.last => store.last(CALLER).map(Some).map_err(|error| unknown(&error)),
        None => Ok(None),
    }
}

fn conversation(config: &Config, args: &AgentArgs, model: &str) -> anyhow::Result<Conversation> {
    let store = SessionStore::of(config);
    if args.no_session {
        return Ok(Conversation::new());
    }
    store.delete_expired(config.agent.retain_days.value, SystemTime::now());
    match resumed(&store, args)? {
        Some(id) => Ok(store.resume(&id).map_err(|error| unknown(&error))?),
        None => Ok(store.begin(model, CALLER)),
    }
}

pub(super) fn unknown(error: &SessionStoreError) -> Failure {
    let remedy = match error {
        SessionStoreError::Empty => "begin one with `haft chat` or `haft run \"...\"`",
        SessionStoreError::Unknown(_) | SessionStoreError::Ambiguous(_) => {
            "`haft sessions list` shows them"
        }
        SessionStoreError::InUse(_) => "wait until it is done, or begin another one",
        SessionStoreError::Unreadable { .. } => {
            "delete it with `haft sessions rm`, or begin a new one"
        }
        SessionStoreError::Unavailable { remedy, .. } => remedy,
    };
    Failure::new(EXIT_RUNTIME, error.to_string(), remedy)
}

/// Converts a model error.
pub(super) fn failure(code: u8, error: ModelError) -> Failure {
    Failure { message: error.message, remedy: error.remedy, code }
}
