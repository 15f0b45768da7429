//! An agent: a [model] that uses the toolbox. It uses the public API of `haft` alone, so its calls take the path of
//! every other caller.

mod agent;
pub mod model;

pub use agent::{
    Agent, AgentEvent, AgentSettings, Conversation, ConversationLog, ConversationStore, LogError,
    Mentioned, OwnerCheck, Sampler, Saved, SessionStore, SessionStoreError, Turn, TurnEnd,
    from_prompt, mentioned, title_of,
};
/// Cancels a turn: [`Agent::turn`] takes one.
pub use tokio_util::sync::CancellationToken;
