//! The growth of an expression's cost with the arguments: a power of their size, found before it runs.

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, operators};
use serde_json::Value;

use super::ExpressionError;
use super::names::{ARGS, Names};

/// Most nodes of an expression, after its macros are expanded.
const NODES_MAX: usize = 400;
/// Most loops of an expression.
const LOOPS_MAX: usize = 8;
/// The highest power of the size of the arguments that the cost may grow with.
const DEGREE_MAX: u32 = 2;
/// Most steps of an evaluation whose cost grows with the square. Takes about two seconds.
const STEPS_MAX: u64 = 20_000_000;
/// Bytes that a function on strings reads in one step.
const STEP_BYTES: u64 = 16;

/// The cost of an expression.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    nodes: u64,
    degree: u32,
}

impl Cost {
    pub(super) fn of(root: &IdedExpr) -> Result<Self, ExpressionError> {
        let mut count = Count { nodes: 0, loops: 0 };
        let mut scope = Vec::new();
        let growth = measure(root, &mut scope, &mut count);
        let Count { nodes, loops } = count;
        let problem = if nodes > NODES_MAX {
            format!("the expression has {nodes} parts, and {NODES_MAX} are possible")
        } else if loops > LOOPS_MAX {
            format!("the expression has {loops} loops, and {LOOPS_MAX} are possible")
        } else if growth.cost > DEGREE_MAX {
            "the loops of the expression are nested too deeply: its cost grows with more than the square of \
             the arguments"
                .to_owned()
        } else {
            return Ok(Self { nodes: nodes as u64, degree: growth.cost });
        };
        Err(ExpressionError { problem, remedy: "split it into several rules".to_owned() })
    }

    pub(super) fn steps(self, args: &Value, names: &Names) -> u64 {
        let Size { values, bytes } = size(args, names, self.degree);
        let loops = values.saturating_pow(self.degree.min(DEGREE_MAX));
        let text = match self.degree {
            0 | 1 => bytes / STEP_BYTES,
            _ => values.saturating_mul(bytes / STEP_BYTES),
        };
        self.nodes.saturating_mul(loops).saturating_add(text)
    }

    /// Refuses arguments that would take seconds.
    pub(super) fn require_small(self, args: &Value, names: &Names) -> Result<(), String> {
        if self.degree < DEGREE_MAX || self.steps(args, names) <= STEPS_MAX {
            return Ok(());
        }
        Err("the arguments are too large for its nested loops".to_owned())
    }
}

struct Size {
    values: u64,
    bytes: u64,
}

/// The size of the arguments that the expression reads. Without loops, only constant work depends on the values.
fn size(args: &Value, names: &Names, degree: u32) -> Size {
    let mut size = Size { values: 1, bytes: 0 };
    let Value::Object(all) = args else { return size };
    if degree > 0 {
        for (_, value) in all.iter().filter(|(name, _)| names.arguments.includes(name)) {
            add(value, &mut size);
        }
    }
    size
}

fn add(value: &Value, size: &mut Size) {
    size.values += 1;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => size.bytes += text.len() as u64,
        Value::Array(items) => items.iter().for_each(|item| add(item, size)),
        Value::Object(entries) => {
            for (name, value) in entries {
                size.bytes += name.len() as u64;
                add(value, size);
            }
        }
    }
}

struct Count {
    nodes: usize,
    loops: usize,
}

/// The growth of an expression, as powers of the size of the arguments.
#[derive(Debug, Clone, Copy, Default)]
struct Growth {
    /// Of the time to evaluate it.
    cost: u32,
    /// Of its value, summed over the items of the loops around it.
    value: u32,
    /// Of its value alone.
    whole: u32,
}

impl Growth {
    fn max(self, other: Self) -> Self {
        Self {
            cost: self.cost.max(other.cost),
            value: self.value.max(other.value),
            whole: self.whole.max(other.whole),
        }
    }
}

/// The loops around a part of an expression.
struct Frame<'e> {
    variables: Vec<LoopVariable<'e>>,
    /// The variables of outer loops that this one's range depends on.
    range: Vec<&'e str>,
}

/// A variable of a loop.
struct LoopVariable<'e> {
    name: &'e str,
    whole: u32,
}

type Scope<'e> = Vec<Frame<'e>>;

fn measure<'e>(expr: &'e IdedExpr, scope: &mut Scope<'e>, count: &mut Count) -> Growth {
    count.nodes += 1;
    match &expr.expr {
        Expr::Unspecified | Expr::Literal(_) => Growth::default(),
        Expr::Ident(name) => variable(name, scope),
        Expr::Select(select) => measure(&select.operand, scope, count),
        Expr::Call(call) => measure_call(call, scope, count),
        Expr::List(list) => all(list.elements.iter(), scope, count),
        Expr::Map(map) => {
            let entries = map.entries.iter().flat_map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
                EntryExpr::StructField(field) => vec![&field.value],
            });
            all(entries, scope, count)
        }
        Expr::Struct(message) => {
            let entries = message.entries.iter().flat_map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
                EntryExpr::StructField(field) => vec![&field.value],
            });
            all(entries, scope, count)
        }
        Expr::Comprehension(it) => measure_loop(it, scope, count),
    }
}

/// The items of a loop are together as large as what it iterates over, so a variable counts nothing, unless a loop
/// inside iterates over a part of the same item.
fn variable(name: &str, scope: &Scope<'_>) -> Growth {
    let bound = scope.iter().enumerate().rev().find_map(|(at, frame)| {
        frame.variables.iter().find(|it| it.name == name).map(|it| (at, it.whole))
    });
    match bound {
        Some((at, whole)) => {
            let is_range = scope.iter().skip(at + 1).any(|inner| inner.range.contains(&name));
            Growth { cost: 0, value: if is_range { whole } else { 0 }, whole }
        }
        None if name == ARGS => Growth { cost: 0, value: 1, whole: 1 },
        None => Growth::default(),
    }
}

/// The variables of loops that an expression depends on, also through the ranges of those loops.
fn dependencies<'e>(expr: &'e IdedExpr, scope: &Scope<'e>) -> Vec<&'e str> {
    let references = expr.references();
    let frames = scope.iter().filter(|frame| {
        frame.variables.iter().any(|variable| references.has_variable(variable.name))
    });
    frames
        .flat_map(|frame| {
            frame.variables.iter().map(|variable| variable.name).chain(frame.range.iter().copied())
        })
        .collect()
}

fn all<'e>(
    parts: impl Iterator<Item = &'e IdedExpr>,
    scope: &mut Scope<'e>,
    count: &mut Count,
) -> Growth {
    parts.fold(Growth::default(), |most, part| most.max(measure(part, scope, count)))
}

fn measure_call<'e>(call: &'e CallExpr, scope: &mut Scope<'e>, count: &mut Count) -> Growth {
    let CallExpr { func_name, target, args } = call;
    let parts = all(target.as_deref().into_iter().chain(args), scope, count);
    // A function reads its arguments once.
    let cost = parts.cost.max(parts.value);
    if is_small(func_name) {
        return Growth { cost, value: 0, whole: 0 };
    }
    // Selecting and indexing read no more than a name.
    let cost = if is_access(func_name) { parts.cost } else { cost };
    Growth { cost, ..parts }
}

fn is_access(function: &str) -> bool {
    [operators::INDEX, operators::OPT_INDEX, operators::OPT_SELECT].contains(&function)
}

/// True for functions whose value is a boolean or a number.
fn is_small(function: &str) -> bool {
    let operators = [
        operators::LOGICAL_AND,
        operators::LOGICAL_OR,
        operators::LOGICAL_NOT,
        operators::EQUALS,
        operators::NOT_EQUALS,
        operators::LESS,
        operators::LESS_EQUALS,
        operators::GREATER,
        operators::GREATER_EQUALS,
        operators::IN,
        operators::NOT_STRICTLY_FALSE,
    ];
    let functions = ["size", "contains", "startsWith", "endsWith", "matches", "hasValue", "type"];
    operators.contains(&function) || functions.contains(&function)
}

fn measure_loop<'e>(it: &'e ComprehensionExpr, scope: &mut Scope<'e>, count: &mut Count) -> Growth {
    count.loops += 1;
    let range = measure(&it.iter_range, scope, count);
    let start = measure(&it.accu_init, scope, count);
    let variable = |name: &'e str, whole: u32| LoopVariable { name, whole };
    let mut variables = vec![variable(&it.accu_var, 0), variable(&it.iter_var, range.whole)];
    variables.extend(it.iter_var2.as_deref().map(|name| variable(name, range.whole)));
    let frame = Frame { variables, range: dependencies(&it.iter_range, scope) };
    scope.push(frame);
    let step = measure(&it.loop_step, scope, count).max(measure(&it.loop_cond, scope, count));
    let result = measure(&it.result, scope, count);
    scope.pop();
    let body = step.cost.max(step.value).max(result.cost);
    Growth {
        cost: range.cost.max(start.cost).max(range.value.saturating_add(body)),
        value: range.value.saturating_add(step.value),
        whole: range.whole.saturating_add(step.whole),
    }
}
