//! Black-box tests of the library.
#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has failed")]
#![allow(
    clippy::format_collect,
    clippy::format_push_string,
    reason = "the texts a test builds are small"
)]

mod agent_context;
mod agent_store;
mod agent_support;
mod agent_tools;
mod agent_turn;
mod builtin_code;
mod builtin_search;
mod call_checks;
mod call_figures;
mod call_limits;
mod call_local;
mod call_observe;
mod call_progress;
mod call_tools;
mod call_trace;
mod config_corpus;
mod config_files;
mod config_gateway;
mod config_import;
mod config_overrides;
mod config_safety;
mod config_schema;
mod config_servers;
mod config_service;
mod config_shown;
mod config_support;
mod config_variables;
mod edit;
mod fault_bytes;
mod fault_call;
mod fault_catalogue;
mod fault_connect;
mod fault_http;
mod fault_lists;
mod fault_process;
mod fault_support;
mod fault_websocket;
mod inbox;
mod inbox_approval;
mod inbox_webhook;
mod live_edit;
mod live_reload;
mod live_support;
mod mcp_calls;
mod mcp_collisions;
mod mcp_end;
mod mcp_eras;
mod mcp_faults;
mod mcp_handler;
mod mcp_lazy;
mod mcp_limits;
mod mcp_lists;
mod mcp_process;
mod mcp_reconnect;
mod mcp_remote;
mod mcp_scale;
mod mcp_secrets;
mod mcp_start;
mod mcp_support;
mod model_answers;
mod model_content;
mod model_failures;
mod model_history;
mod model_hostile;
mod model_setup;
mod model_support;
mod model_tools;
mod registry_edges;
mod registry_hostile;
mod registry_memory;
mod registry_merge;
mod registry_modes;
mod registry_names;
mod registry_property;
mod registry_runtime;
mod registry_support;
mod registry_texts;
mod running_calls;
mod server_reconnect;
mod support;
