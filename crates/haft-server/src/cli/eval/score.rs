//! Scores of the tool choice over one set.

use std::collections::HashMap;
use std::time::Instant;

use haft::select::{Decision, Ranked, Selector, ToolText};
use serde::Serialize;

use super::set::{Action, Row, Set};

/// The result of one set. A share without data in the set is left out.
#[derive(Debug, Serialize)]
pub(super) struct Score {
    pub(super) set: String,
    pub(super) requests: usize,
    /// Share of requests whose first tool is right.
    pub(super) top_1: Option<f64>,
    /// Average share of the right tools among the first five. Of more than five right tools, five count as all.
    pub(super) recall_at_5: Option<f64>,
    /// The same, where of six right tools five are five sixths.
    pub(super) recall_at_5_of_all: Option<f64>,
    /// The same, among the first eight.
    pub(super) recall_at_8: Option<f64>,
    /// Share of requests with a right tool among the first five.
    pub(super) hit_at_5: Option<f64>,
    /// Accuracy of "no tool".
    pub(super) none: Option<Told>,
    /// Share of incomplete requests that are answered with a question.
    pub(super) ask: Option<f64>,
    /// Share of right decisions: the action, and the first tool if one is used.
    pub(super) decisions: f64,
    /// Half of the rankings took no longer.
    pub(super) latency_us_p50: f64,
}

/// Accuracy of one of several answers.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    pub(super) precision: f64,
    pub(super) recall: f64,
    pub(super) f1: f64,
    /// Number of true positives, of predictions, and of actual cases.
    #[serde(skip)]
    counts: Counts,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    both: usize,
    said: usize,
    is: usize,
}

/// Means over sets, in which a small set counts as much as a large one, and over their requests.
#[derive(Debug, Serialize)]
pub(super) struct Means {
    pub(super) top_1: Option<f64>,
    pub(super) recall_at_5: Option<f64>,
    pub(super) recall_at_5_of_all: Option<f64>,
    pub(super) hit_at_5: Option<f64>,
    pub(super) top_1_over_requests: Option<f64>,
    pub(super) recall_at_5_over_requests: Option<f64>,
    pub(super) decisions: Option<f64>,
    /// The F1 of "no tool" over the requests of all sets that have some which need none.
    pub(super) none_f1: Option<f64>,
}

/// A toolbox, its tools and their ids.
struct Toolbox {
    selector: Selector,
    tools: Vec<ToolText>,
    ids: Vec<String>,
}

/// Requests between two progress reports.
const PROGRESS_EVERY: usize = 25;
/// As many tools as are looked at.
const COUNT: usize = 8;

/// The outcome of one request.
struct Outcome {
    action: Action,
    decided: Action,
    /// Of the decision.
    is_first_right: bool,
    /// Of the ranking among all tools.
    is_top_right: bool,
    recall_at_5: f64,
    recall_at_5_of_all: f64,
    recall_at_8: f64,
    micros: f64,
}

pub(super) fn score(set: &Set, progress: impl Fn(usize)) -> anyhow::Result<Score> {
    let mut toolboxes: HashMap<String, Toolbox> = HashMap::new();
    let mut chosen: HashMap<(String, Vec<String>), Toolbox> = HashMap::new();
    let mut outcomes = Vec::new();
    for (done, row) in set.rows.iter().enumerate() {
        if done % PROGRESS_EVERY == 0 {
            progress(done);
        }
        if !toolboxes.contains_key(&row.toolset) {
            toolboxes.insert(row.toolset.clone(), Toolbox::new(set.tools(&row.toolset)?));
        }
        let all = &toolboxes[&row.toolset];
        let few = match &row.candidates {
            None => all,
            Some(candidates) => {
                let key = (row.toolset.clone(), candidates.clone());
                if !chosen.contains_key(&key) {
                    let is_candidate = |id: &String| candidates.contains(id);
                    let tools = all.ids.iter().zip(&all.tools).filter(|(id, _)| is_candidate(id));
                    let tools = tools.map(|(id, tool)| (id.clone(), tool.clone())).collect();
                    chosen.insert(key.clone(), Toolbox::new(tools));
                }
                &chosen[&key]
            }
        };
        outcomes.push(outcome(row, all, few));
    }
    Ok(Score::new(set, &outcomes))
}

fn outcome(row: &Row, all: &Toolbox, few: &Toolbox) -> Outcome {
    let gold = row.gold();
    let begin = Instant::now();
    let ranked = all.selector.select(&row.query, COUNT);
    let micros = begin.elapsed().as_secs_f64() * 1e6;
    let found = |count: usize| all.ids(&ranked).take(count).filter(|id| gold.contains(id)).count();
    let recall = |count: usize| share(found(count), gold.len().min(count));
    let decision = few.selector.decide(&row.query, 1);
    let (decided, first) = match &decision {
        Decision::UseTool { ranked } => (Action::Tool, few.ids(ranked).next()),
        Decision::NoTool => (Action::None, None),
        Decision::AskHuman { ranked, .. } => (Action::AskHuman, few.ids(ranked).next()),
    };
    let is_first_right = first.is_some_and(|first| gold.contains(&first));
    let is_top_right = all.ids(&ranked).next().is_some_and(|first| gold.contains(&first));
    Outcome {
        action: row.action,
        decided,
        is_first_right,
        is_top_right,
        recall_at_5: recall(5),
        recall_at_5_of_all: share(found(5), gold.len()),
        recall_at_8: recall(COUNT),
        micros,
    }
}

impl Toolbox {
    fn new(tools: Vec<(String, ToolText)>) -> Self {
        let (ids, tools): (Vec<String>, Vec<ToolText>) = tools.into_iter().unzip();
        Self { selector: Selector::new(&tools), tools, ids }
    }

    fn ids<'a>(&'a self, ranked: &'a [Ranked]) -> impl Iterator<Item = &'a str> {
        ranked.iter().map(|it| self.ids[it.position].as_str())
    }
}

impl Score {
    fn new(set: &Set, outcomes: &[Outcome]) -> Self {
        let of = |action| outcomes.iter().filter(move |it: &&Outcome| it.action == action);
        let tools: Vec<&Outcome> = of(Action::Tool).collect();
        let mean_of_tools = |value: fn(&Outcome) -> f64| mean(tools.iter().map(|it| value(it)));
        let is_right = |it: &&Outcome| {
            it.decided == it.action && (it.action != Action::Tool || it.is_first_right)
        };
        let asked = |it: &Outcome| f64::from(u8::from(it.decided == Action::AskHuman));
        let mut micros: Vec<f64> = outcomes.iter().map(|it| it.micros).collect();
        micros.sort_unstable_by(f64::total_cmp);
        Self {
            set: set.name.clone(),
            requests: outcomes.len(),
            top_1: mean_of_tools(|it| f64::from(u8::from(it.is_top_right))),
            recall_at_5: mean_of_tools(|it| it.recall_at_5),
            recall_at_5_of_all: mean_of_tools(|it| it.recall_at_5_of_all),
            recall_at_8: mean_of_tools(|it| it.recall_at_8),
            hit_at_5: mean_of_tools(|it| f64::from(u8::from(it.recall_at_5 > 0.0))),
            none: Told::new(outcomes, Action::None),
            ask: mean(of(Action::AskHuman).map(asked)),
            decisions: share(outcomes.iter().filter(is_right).count(), outcomes.len()),
            latency_us_p50: micros.get(micros.len() / 2).copied().unwrap_or_default(),
        }
    }

    /// Means over sets: of rankings over those that are made for it.
    pub(super) fn means(scores: &[Self]) -> Means {
        let is_ranking = |it: &&Self| it.set.starts_with("select_") || it.set.starts_with("multi_");
        let ranking = |value: fn(&Self) -> Option<f64>| {
            mean(scores.iter().filter(is_ranking).filter_map(value))
        };
        let over_requests = |value: fn(&Self) -> Option<f64>| {
            let sets = scores.iter().filter(is_ranking);
            let all = sets.flat_map(|it| value(it).into_iter().cycle().take(it.requests));
            mean(all)
        };
        Means {
            top_1: ranking(|it| it.top_1),
            recall_at_5: ranking(|it| it.recall_at_5),
            recall_at_5_of_all: ranking(|it| it.recall_at_5_of_all),
            hit_at_5: ranking(|it| it.hit_at_5),
            top_1_over_requests: over_requests(|it| it.top_1),
            recall_at_5_over_requests: over_requests(|it| it.recall_at_5),
            decisions: mean(scores.iter().map(|it| it.decisions)),
            none_f1: Told::together(scores.iter().filter_map(|it| it.none.as_ref()))
                .map(|it| it.f1),
        }
    }
}

impl Told {
    fn new(outcomes: &[Outcome], action: Action) -> Option<Self> {
        let is = outcomes.iter().filter(|it| it.action == action).count();
        if is == 0 {
            return None;
        }
        let said = outcomes.iter().filter(|it| it.decided == action).count();
        let both = outcomes.iter().filter(|it| it.decided == action && it.action == action).count();
        Some(Self::of(Counts { both, said, is }))
    }

    fn of(counts: Counts) -> Self {
        let Counts { both, said, is } = counts;
        let (precision, recall) = (share(both, said), share(both, is));
        let sum = precision + recall;
        let f1 = if sum > 0.0 { 2.0 * precision * recall / sum } else { 0.0 };
        Self { precision, recall, f1, counts }
    }

    /// Of the requests of several sets.
    fn together<'a>(sets: impl Iterator<Item = &'a Self>) -> Option<Self> {
        let add = |a: Counts, b: &Self| Counts {
            both: a.both + b.counts.both,
            said: a.said + b.counts.said,
            is: a.is + b.counts.is,
        };
        let counts = sets.fold(Counts::default(), add);
        (counts.is > 0).then(|| Self::of(counts))
    }
}

#[allow(clippy::cast_precision_loss, reason = "there are thousands of requests, not billions")]
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[allow(clippy::cast_precision_loss, reason = "there are thousands of requests, not billions")]
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
