//! Decisions over the built-in tools as they are shipped, and over toolboxes of several servers.

use haft::select::{Decision, Selector, ToolText};

use crate::set::{Row, rows, tools};

/// Right decisions, requests, and the decisions for "no tool".
#[derive(Debug, Default, Clone, Copy)]
struct Figures {
    requests: usize,
    right: usize,
    none_right: usize,
    none_wrong: usize,
    none_missed: usize,
}

impl Figures {
    fn of(tools: &[ToolText], requests: &str) -> Self {
        let selector = Selector::new(tools);
        rows(requests).iter().fold(Self::default(), |figures, row| figures.with(&selector, row))
    }

    fn with(mut self, selector: &Selector, row: &Row) -> Self {
        let is_none = row.action == "none";
        let is_right = match selector.decide(&row.query, 1) {
            Decision::NoTool => {
                self.none_right += usize::from(is_none);
                self.none_wrong += usize::from(!is_none);
                is_none
            }
            Decision::UseTool { ranked } => {
                self.none_missed += usize::from(is_none);
                let first = ranked[0].tool.as_str();
                !is_none && row.gold.as_array().unwrap().contains(&first.into())
            }
            Decision::AskHuman { .. } => {
                self.none_missed += usize::from(is_none);
                false
            }
        };
        self.requests += 1;
        self.right += usize::from(is_right);
        self
    }

    fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            right: self.right + other.right,
            none_right: self.none_right + other.none_right,
            none_wrong: self.none_wrong + other.none_wrong,
            none_missed: self.none_missed + other.none_missed,
        }
    }

    /// The F1 of "no tool", in percent.
    fn none_f1(self) -> usize {
        200 * self.none_right / (2 * self.none_right + self.none_wrong + self.none_missed)
    }
}

macro_rules! decide {
    ($path:literal) => {
        include_str!(concat!("../data/decide/", $path))
    };
}

fn builtins() -> Figures {
    Figures::of(&haft::builtin_tools(), decide!("tune/builtins.jsonl"))
}

fn toolboxes() -> Figures {
    let sets = [
        (decide!("toolsets/office.jsonl"), decide!("tune/office.jsonl")),
        (decide!("toolsets/sixty.jsonl"), decide!("tune/sixty.jsonl")),
        (decide!("toolsets/workspace.jsonl"), decide!("tune/workspace.jsonl")),
    ];
    let figures = sets.map(|(toolbox, requests)| Figures::of(&tools(toolbox), requests));
    figures.into_iter().fold(Figures::default(), Figures::plus)
}

/// Proves S2-SC-001 for the built-in tools. A guard against regressions on data that was tuned on, a few points below
/// what is reached: it is not evidence of how good the choice is.
#[test]
fn decisions_over_the_builtin_tools_stay_right() {
    let figures = builtins();
    println!("{figures:?}");
    assert!(figures.right * 100 >= figures.requests * BUILTINS_PERCENT, "{figures:?}");
}

/// Proves S2-SC-001 for toolboxes of several servers, in the same way.
#[test]
fn decisions_over_toolboxes_stay_right() {
    let figures = toolboxes();
    println!("{figures:?}");
    assert!(figures.right * 100 >= figures.requests * TOOLBOXES_PERCENT, "{figures:?}");
}

/// Proves S2-SC-005 for the decision without a model, in the same way.
#[test]
fn no_tool_stays_told_from_some_tool() {
    let figures = builtins().plus(toolboxes());
    println!("{figures:?}: F1 {}", figures.none_f1());
    assert!(figures.none_f1() >= NONE_F1_PERCENT, "{figures:?}");
}

const BUILTINS_PERCENT: usize = 92;
const TOOLBOXES_PERCENT: usize = 60;
const NONE_F1_PERCENT: usize = 70;

fn decide(tools: &[ToolText], request: &str) -> (&'static str, String) {
    match Selector::new(tools).decide(request, 1) {
        Decision::UseTool { ranked } => ("tool", ranked[0].tool.clone()),
        Decision::AskHuman { ranked, .. } => ("ask", ranked[0].tool.clone()),
        Decision::NoTool => ("none", String::new()),
    }
}

/// The verb distinguishes the tools of one server.
#[test]
fn tools_of_one_server_are_told_apart_by_what_they_do() {
    let office = tools(decide!("toolsets/office.jsonl"));
    let is = |request: &str, tool: &str| {
        assert_eq!(decide(&office, request), ("tool", tool.to_owned()), "{request}");
    };
    is("open the record of C-2210", "crm_get_contact");
    is("move m-5501 and m-5502 into the folder Contracts", "mail_move");
    is("accept the invitation ev-90", "calendar_respond_to_invite");
}

/// Words within a path do not choose the action, and a parameter of every tool of a server is not
/// asked for.
#[test]
fn values_do_not_choose_the_tool() {
    let workspace = tools(decide!("toolsets/workspace.jsonl"));
    let is = |request: &str, tool: &str| {
        assert_eq!(decide(&workspace, request), ("tool", tool.to_owned()), "{request}");
    };
    is("make a directory /home/commit/log/branch", "create_directory");
    is("show me commit 77ab01c in /work/shop", "git_show");
    is("switch to the branch develop", "git_checkout");
}
