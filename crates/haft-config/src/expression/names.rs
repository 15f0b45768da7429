//! The names in an expression: unknown ones are refused, and the values that it reads are known before it runs.

use std::collections::BTreeSet;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use haft_text::{list, nearest};
use serde_json::Value;

use super::ExpressionError;
use super::functions::{self, FUNCTIONS, MACROS, METHODS, TYPES};

pub(super) const ARGS: &str = "args";
pub(super) const TOOL: &str = "tool";
pub(super) const CALLER: &str = "caller";
const VARIABLES: [&str; 3] = [ARGS, TOOL, CALLER];
const TOOL_FIELDS: [&str; 3] = ["name", "server", "annotations"];
const CALLER_FIELDS: [&str; 5] = ["name", "key", "scope", "profile", "session"];
const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
/// Most values that an expression may read.
const PATHS_MAX: usize = 32;

/// A value that an expression reads, such as `args.path`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValuePath(Vec<String>);

impl ValuePath {
    /// The variable it starts at: `args`, `tool` or `caller`.
    pub fn root(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// The names below the variable.
    pub fn steps(&self) -> &[String] {
        self.0.get(1..).unwrap_or_default()
    }

    /// The value below a variable, if it is there.
    pub fn find<'v>(&self, variable: &'v Value) -> Option<&'v Value> {
        self.steps().iter().try_fold(variable, |value, step| value.get(step.as_str()))
    }
}

impl std::fmt::Display for ValuePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// The arguments that an expression reads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadArguments {
    /// Any of them, as `args.all(name, ...)` does.
    All,
    /// These.
    Named(BTreeSet<String>),
}

impl ReadArguments {
    pub(super) fn includes(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.contains(name),
        }
    }
}

/// The names in an expression.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) paths: Vec<ValuePath>,
    pub(super) arguments: ReadArguments,
}

impl Names {
    /// Collects the names, and refuses unknown ones.
    pub(super) fn of(root: &IdedExpr) -> Result<Self, ExpressionError> {
        let mut walk = Walk { paths: BTreeSet::new(), bound: Vec::new() };
        walk.visit(root)?;
        if walk.paths.len() > PATHS_MAX {
            let problem = format!("the expression reads more than {PATHS_MAX} values");
            return Err(ExpressionError { problem, remedy: "split it into several rules".into() });
        }
        let of_args = || walk.paths.iter().filter(|path| path.root() == ARGS);
        let arguments = if of_args().any(|path| path.steps().is_empty()) {
            ReadArguments::All
        } else {
            let names = of_args().filter_map(|path| path.steps().first().cloned());
            ReadArguments::Named(names.collect())
        };
        Ok(Self { paths: walk.paths.into_iter().collect(), arguments })
    }

    pub(super) fn reads(&self, variable: &str) -> bool {
        self.paths.iter().any(|path| path.root() == variable)
    }
}

/// The path that an expression spells, such as `args.a['b']`; `None` for any other expression.
pub(super) fn path_of(expr: &IdedExpr) -> Option<Vec<&str>> {
    match &expr.expr {
        Expr::Ident(name) => Some(vec![name.as_str()]),
        Expr::Select(select) => {
            let mut path = path_of(&select.operand)?;
            path.push(&select.field);
            Some(path)
        }
        Expr::Call(CallExpr { func_name, target: None, args }) if is_index(func_name) => {
            let [operand, step] = args.as_slice() else { return None };
            let mut path = path_of(operand)?;
            path.push(string_literal(step)?);
            Some(path)
        }
        _ => None,
    }
}

fn is_index(function: &str) -> bool {
    [operators::INDEX, operators::OPT_INDEX, operators::OPT_SELECT].contains(&function)
}

pub(super) fn string_literal(expr: &IdedExpr) -> Option<&str> {
    match &expr.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

struct Walk<'e> {
    paths: BTreeSet<ValuePath>,
    /// The variables of the loops around an expression.
    bound: Vec<&'e str>,
}

impl<'e> Walk<'e> {
    fn visit(&mut self, expr: &'e IdedExpr) -> Result<(), ExpressionError> {
        if let Some(path) = path_of(expr) {
            return self.path(&path);
        }
        match &expr.expr {
            Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => Ok(()),
            Expr::Select(select) => self.visit(&select.operand),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => list.elements.iter().try_for_each(|item| self.visit(item)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.visit(&entry.key).and_then(|()| self.visit(&entry.value))
                }
                EntryExpr::StructField(field) => self.visit(&field.value),
            }),
            Expr::Struct(message) => Err(ExpressionError {
                problem: format!("an expression cannot make a `{}`", message.type_name),
                remedy: "compare values with literals".to_owned(),
            }),
            Expr::Comprehension(it) => {
                self.visit(&it.iter_range)?;
                self.visit(&it.accu_init)?;
                let depth = self.bound.len();
                self.bound.extend([it.iter_var.as_str(), it.accu_var.as_str()]);
                self.bound.extend(it.iter_var2.as_deref());
                let parts = [&it.loop_cond, &it.loop_step, &it.result];
                let visited = parts.into_iter().try_for_each(|part| self.visit(part));
                self.bound.truncate(depth);
                visited
            }
        }
    }

    fn path(&mut self, path: &[&'e str]) -> Result<(), ExpressionError> {
        let [root, steps @ ..] = path else { return Ok(()) };
        if self.bound.contains(root) {
            return Ok(());
        }
        if steps.is_empty() && TYPES.contains(root) {
            return Ok(());
        }
        if !VARIABLES.contains(root) {
            return Err(unknown("value", root, &VARIABLES));
        }
        let known: &[&str] = match (*root, steps) {
            (TOOL, ["annotations", _, ..]) => {
                let hint = steps.get(1).copied().unwrap_or_default();
                return self.known_field(path, hint, &HINTS);
            }
            (TOOL, [_, ..]) => &TOOL_FIELDS,
            (CALLER, [_, ..]) => &CALLER_FIELDS,
            _ => &[],
        };
        match steps.first() {
            Some(field) if !known.is_empty() => self.known_field(path, field, known),
            Some(_) | None => {
                self.add(path);
                Ok(())
            }
        }
    }

    fn known_field(
        &mut self,
        path: &[&str],
        field: &str,
        known: &[&str],
    ) -> Result<(), ExpressionError> {
        if !known.contains(&field) {
            return Err(unknown("field", field, known));
        }
        self.add(path);
        Ok(())
    }

    fn add(&mut self, path: &[&str]) {
        self.paths.insert(ValuePath(path.iter().map(|step| (*step).to_owned()).collect()));
    }

    fn call(&mut self, call: &'e CallExpr) -> Result<(), ExpressionError> {
        let CallExpr { func_name, target, args } = call;
        let known: &[&str] = if target.is_some() { &METHODS } else { &FUNCTIONS };
        if !is_operator(func_name) && !known.contains(&func_name.as_str()) {
            let all: Vec<&str> = known.iter().chain(&MACROS).copied().collect();
            return Err(unknown("function", func_name, &all));
        }
        if func_name == "matches" {
            pattern(args)?;
        }
        if let Some(target) = target {
            self.visit(target)?;
        }
        args.iter().try_for_each(|arg| self.visit(arg))
    }
}

/// True for the names of operators, which cannot be written as calls.
fn is_operator(function: &str) -> bool {
    function.starts_with(['@', '!', '-'])
        || (function.starts_with('_')
            && function.contains(|it: char| !it.is_alphanumeric() && it != '_'))
}

/// A pattern is a literal: it is compiled at load, and no caller chooses it.
fn pattern(args: &[IdedExpr]) -> Result<(), ExpressionError> {
    let Some(pattern) = args.last().and_then(string_literal) else {
        return Err(ExpressionError {
            problem: "the pattern of `matches` is not a literal".to_owned(),
            remedy: "write the regular expression as a string, such as `args.to.matches('@example[.]com$')`"
                .to_owned(),
        });
    };
    functions::regex(pattern).map(|_| ()).map_err(|error| {
        let error = error.lines().last().unwrap_or_default().trim().to_owned();
        ExpressionError {
            problem: format!("`{pattern}` is not a regular expression: {error}"),
            remedy: "use the syntax of the Rust crate `regex`".to_owned(),
        }
    })
}

fn unknown(what: &str, name: &str, known: &[&str]) -> ExpressionError {
    let remedy = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known here: {}", list(known)),
    };
    ExpressionError { problem: format!("the expression has no {what} `{name}`"), remedy }
}
