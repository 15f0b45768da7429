//! Rules as rows of the configuration in use.

use serde_json::{Map, Value, json};

use super::model::{Origin, Setting};
use super::pattern::NamePattern;
use super::place::Place;
use super::rules::{AnnotationMatch, FlowLabel, Rule, RuleMatch};
use super::show::Rows;

impl Rows {
    pub(super) fn labels(&mut self, path: &str, labels: Option<&[FlowLabel]>, place: &Place) {
        if let Some(labels) = labels {
            self.add(path, json!(labels), &Origin::Explicit(place.clone()));
        }
    }

    pub(super) fn rules(&mut self, rules: &Setting<Vec<Rule>>) {
        for (at, rule) in rules.value.iter().enumerate() {
            let mut shown = Map::new();
            shown.insert("name".to_owned(), json!(rule.name));
            let matches = shown_match(&rule.matches);
            if !matches.is_empty() {
                shown.insert("match".to_owned(), Value::Object(matches));
            }
            shown.insert("effect".to_owned(), json!(rule.effect));
            if let Some(reason) = &rule.reason {
                shown.insert("reason".to_owned(), json!(reason));
            }
            let origin = Origin::Explicit(rule.place.clone());
            self.add(format!("policy.rules[{at}]"), Value::Object(shown), &origin);
        }
    }
}

fn shown_match(matches: &RuleMatch) -> Map<String, Value> {
    let RuleMatch { key, scope, profile, session, server, tool, annotations, when } = matches;
    let names = [
        ("key", key),
        ("profile", profile),
        ("session", session),
        ("server", server),
        ("tool", tool),
    ];
    let names = names.into_iter().filter_map(|(name, patterns)| {
        let texts = patterns.as_ref()?.iter().map(NamePattern::to_string);
        Some((name.to_owned(), texts.collect()))
    });
    let mut shown: Map<String, Value> = names.collect();
    if let Some(scope) = scope {
        shown.insert("scope".to_owned(), json!(scope));
    }
    if !annotations.is_empty() {
        let AnnotationMatch { read_only, destructive, idempotent, open_world } = *annotations;
        let hints = [
            ("readOnlyHint", read_only),
            ("destructiveHint", destructive),
            ("idempotentHint", idempotent),
            ("openWorldHint", open_world),
        ];
        let hints =
            hints.into_iter().filter_map(|(name, hint)| Some((name.to_owned(), json!(hint?))));
        shown.insert("annotations".to_owned(), Value::Object(hints.collect()));
    }
    if let Some(when) = when {
        shown.insert("when".to_owned(), json!(when.shown));
    }
    shown
}
