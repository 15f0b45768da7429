//! `policy.rules`.

use std::collections::HashMap;

use super::explicit;
use crate::config::gateway::LOCAL;
use crate::config::model::Setting;
use crate::config::node::Text;
use crate::config::pattern::NamePattern;
use crate::config::place::{At, Place, Problems};
use crate::config::raw_metadata::RawAnnotations;
use crate::config::raw_rules::{NameList, RawRule, RawRuleMatch};
use crate::config::rules::{AnnotationMatch, Condition, Rule, RuleMatch};
use crate::expression::{Expression, ExpressionError};
use haft_text::nearest;

/// Most rules: each call may try them all.
const RULES_MAX: usize = 1000;

/// Names that rules refer to.
pub(super) struct Known<'a> {
    pub(super) servers: &'a [&'a str],
    pub(super) profiles: Vec<&'a str>,
}

pub(super) fn rules(
    raw: Option<At<Vec<RawRule>>>,
    known: &Known<'_>,
    problems: &mut Problems,
) -> Setting<Vec<Rule>> {
    let Some(raw) = raw else { return Setting::default(Vec::new()) };
    if raw.value.len() > RULES_MAX {
        let problem = format!("there are {} rules, and {RULES_MAX} are possible", raw.value.len());
        problems.error(&raw.place, problem, "use patterns, or a list of names in one rule");
        return explicit(raw, |_| Vec::new());
    }
    let mut names: HashMap<String, Place> = HashMap::new();
    explicit(raw, |rules| {
        let rules = rules.into_iter().enumerate().filter_map(|(at, raw)| {
            let rule = rule(at, raw, known, problems)?;
            if let Some(first) = names.insert(rule.name.clone(), rule.place.clone()) {
                problems.error(
                    &rule.place,
                    format!(
                        "the rule `{}` is there twice (first in line {})",
                        rule.name, first.line
                    ),
                    "rename one of the two",
                );
            }
            Some(rule)
        });
        rules.collect()
    })
}

fn rule(at: usize, raw: RawRule, known: &Known<'_>, problems: &mut Problems) -> Option<Rule> {
    let RawRule { place, broken, name, matches, effect, reason } = raw;
    let name = name.map(|name| name.value).filter(|name| !name.trim().is_empty());
    let matches = match matches {
        Some(matches) => rule_match(matches.value, known, problems),
        None if broken.contains(&"match") => None,
        None => Some(RuleMatch::default()),
    };
    if effect.is_none() && !broken.contains(&"effect") {
        problems.error(&place, "the rule has no `effect`", "add `effect: deny`, `ask` or `allow`");
    }
    Some(Rule {
        name: name.unwrap_or_else(|| format!("rules[{at}]")),
        matches: matches?,
        effect: effect?.value,
        reason: reason.map(|reason| reason.value).filter(|reason| !reason.trim().is_empty()),
        place,
    })
}

fn rule_match(raw: RawRuleMatch, known: &Known<'_>, problems: &mut Problems) -> Option<RuleMatch> {
    let RawRuleMatch {
        place: _,
        broken,
        key,
        scope,
        profile,
        session,
        server,
        tool,
        annotations,
        when,
    } = raw;
    if let Some(server) = &server {
        let names: Vec<&str> = known.servers.iter().copied().chain([LOCAL]).collect();
        warn_of_strangers(server, "server", &names, problems);
    }
    if let Some(profile) = &profile {
        warn_of_strangers(profile, "profile", &known.profiles, problems);
    }
    let mut patterns =
        |names: Option<At<NameList>>, parse| names.map(|it| read(it, parse, problems));
    let matches = RuleMatch {
        key: patterns(key, NamePattern::parse),
        profile: patterns(profile, NamePattern::parse),
        session: patterns(session, NamePattern::of_tools),
        server: patterns(server, NamePattern::parse),
        tool: patterns(tool, NamePattern::of_tools),
        scope: scope.map(|scope| scope.value.0),
        annotations: annotations.map(|it| hints(it, problems)).unwrap_or_default(),
        when: match when {
            Some(when) => Some(condition(when, problems)?),
            None => None,
        },
    };
    // A part that could not be read would make the rule match more than is meant.
    broken.is_empty().then_some(matches)
}

fn read(
    names: At<NameList>,
    parse: fn(&str) -> Option<NamePattern>,
    problems: &mut Problems,
) -> Vec<NamePattern> {
    let At { value: NameList(texts), place } = names;
    let patterns = texts.iter().filter_map(|text| {
        let pattern = parse(text);
        if pattern.is_none() {
            let remedy = "write a name, or a pattern in which `*` stands for any characters";
            problems.error(&place, format!("`{text}` is not a name or pattern"), remedy);
        }
        pattern
    });
    patterns.collect()
}

fn hints(at: At<RawAnnotations>, problems: &mut Problems) -> AnnotationMatch {
    let RawAnnotations { title, read_only, destructive, idempotent, open_world, .. } = at.value;
    if let Some(title) = title {
        let remedy = "match the tool by its name, with `tool`";
        problems.error(&title.place, "a rule cannot match the title of a tool", remedy);
    }
    let value = |hint: Option<At<bool>>| hint.map(|hint| hint.value);
    AnnotationMatch {
        read_only: value(read_only),
        destructive: value(destructive),
        idempotent: value(idempotent),
        open_world: value(open_world),
    }
}

fn condition(when: At<Text>, problems: &mut Problems) -> Option<Condition> {
    let At { value: text, place } = when;
    match Expression::compile(&text.text) {
        Ok(expression) => Some(Condition { expression, shown: text.shown().to_owned(), place }),
        Err(ExpressionError { problem, remedy }) => {
            problems.error(&place, problem, remedy);
            None
        }
    }
}

fn warn_of_strangers(names: &At<NameList>, what: &str, known: &[&str], problems: &mut Problems) {
    for text in &names.value.0 {
        let fits = |pattern: NamePattern| known.iter().any(|name| pattern.fits(name));
        if NamePattern::parse(text).is_none_or(fits) {
            continue;
        }
        let remedy = match nearest(text, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("name a {what} of the configuration"),
        };
        problems.warn(&names.place, format!("no {what} is named `{text}`"), remedy);
    }
}
