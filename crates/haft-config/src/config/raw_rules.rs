//! The native keys of rules: `policy.rules` and `labels`.

use serde_json::{Value, json};

use super::node::{Node, NodeValue, Text};
use super::raw_metadata::RawAnnotations;
use super::read::{FromNode, Reader, choice, record};

record! {
    /// One of `policy.rules`.
    pub struct RawRule("a rule", Reject) {
        /// A name for the log and for `haft why`; its position in the list by default.
        name("name"): String,
        /// The calls that the rule is for; all by default. Every key that is given must match.
        matches("match"): RawRuleMatch,
        /// The decision on those calls: `allow`, `deny`, or `ask` (a person, as `approval: ask` does). The first rule that
        /// matches decides.
        effect("effect"): RuleEffect,
        /// The reason for the decision, which the caller is shown.
        reason("reason"): String,
    }
}

record! {
    /// `match` of a rule.
    pub struct RawRuleMatch("`match`", Reject) {
        /// Names of keys, or patterns such as `ci-*`. A caller without a key matches none.
        key("key"): NameList,
        /// Scopes of keys: `call`, `approve` or `admin`. Callers of a service without keys have the scope `call`, commands
        /// at the terminal none.
        scope("scope"): ScopeList,
        /// Profiles that the call is made through, by name or pattern.
        profile("profile"): NameList,
        /// Sessions, by name or pattern. A call without a session matches none.
        session("session"): NameList,
        /// Servers, by name or pattern such as `git*`; `local` stands for the tools that run here.
        server("server"): NameList,
        /// Tools, by name or pattern such as `read_*` or `files/read_*`.
        tool("tool"): NameList,
        /// Hints of the tool. One that the tool does not give has the default of MCP.
        annotations("annotations"): RawAnnotations,
        /// A condition in CEL over `args`, `tool` and `caller`, such as `args.path.startsWith('/etc/')`. A call for
        /// which it cannot be evaluated is denied.
        when("when"): Text,
    }
}

choice! {
    /// The decision of a rule.
    pub enum RuleEffect("an effect of a rule") {
        /// The call may run, and no later rule is tried.
        Allow = "allow",
        /// The call is denied.
        Deny = "deny",
        /// A person must approve the call.
        Ask = "ask",
    }
}

choice! {
    /// The scope of a key.
    pub enum KeyScope("a scope of keys") {
        /// Calls tools.
        Call = "call",
        /// Approves calls too.
        Approve = "approve",
        /// Does everything.
        Admin = "admin",
    }
}

choice! {
    /// The role of a server's or tool's data in the flow of a session.
    pub enum FlowLabel("a label") {
        /// Its results may be written by anyone, such as web pages and mail.
        Untrusted = "untrusted",
        /// Its results are confidential.
        Private = "private",
        /// It sends data to others.
        Outbound = "outbound",
    }
}

/// One name or several.
#[derive(Debug, Clone)]
pub struct NameList(pub Vec<String>);

/// One scope or several.
#[derive(Debug, Clone)]
pub struct ScopeList(pub Vec<KeyScope>);

impl FromNode for NameList {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        one_or_several(node, reader).map(Self)
    }

    fn schema() -> Value {
        one_or_several_schema::<String>()
    }
}

impl FromNode for ScopeList {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        one_or_several(node, reader).map(Self)
    }

    fn schema() -> Value {
        one_or_several_schema::<KeyScope>()
    }
}

fn one_or_several<T: FromNode>(node: &Node, reader: &mut Reader<'_>) -> Option<Vec<T>> {
    if !matches!(node.value, NodeValue::List(_)) {
        return T::read(node, reader).map(|one| vec![one]);
    }
    let read: Vec<T> = Vec::read(node, reader)?;
    if read.is_empty() {
        reader.error(node, "the list is empty, so the rule matches nothing", "leave the key out");
        return None;
    }
    Some(read)
}

fn one_or_several_schema<T: FromNode>() -> Value {
    let one = T::schema();
    json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
}
