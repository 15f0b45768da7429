//! Expressions of rules: CEL (Common Expression Language), compiled once, bounded in size and in cost.
//!
//! An expression sees three values: `args` (the arguments of the call), `tool` and `caller`. The author of an expression
//! is the operator and is trusted; the arguments are not. So the bounds are on how the cost grows with the arguments:
//! at most with their square, which is refused at evaluation if the arguments are large.

mod check;
mod cost;
mod functions;
mod names;
mod parse;
mod value;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cel::Context;
use cel::common::ast::IdedExpr;
use serde_json::Value;

pub use check::{SchemaMismatch, SchemaProblem};
use cost::Cost;
use names::Names;
pub use names::ValuePath;

/// Longest expression, in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 2048;
/// Longest error of an evaluation, in characters. It may quote arguments.
const ERROR_CHARS_MAX: usize = 300;

/// A compiled expression.
#[derive(Debug, Clone)]
pub struct Expression(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    source: String,
    root: IdedExpr,
    names: Names,
    cost: Cost,
}

/// An invalid expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

/// The values that an expression sees.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The arguments of the call.
    pub args: &'a Value,
    /// The tool.
    pub tool: ToolInput<'a>,
    /// The caller.
    pub caller: CallerInput<'a>,
}

/// The tool of a call. Missing values are empty strings.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolInput<'a> {
    /// The name under which it is offered.
    pub name: &'a str,
    /// Its server; `local` for a tool that runs here.
    pub server: &'a str,
    /// Its hints, those of MCP with their defaults.
    pub annotations: Annotations,
}

/// The hints about a tool. Those that it does not give have the defaults of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "MCP defines four hints that are true or false")]
pub struct Annotations {
    /// It changes nothing.
    pub read_only: bool,
    /// It may delete or overwrite.
    pub destructive: bool,
    /// A second call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// It reaches systems outside a closed set.
    pub open_world: bool,
}

impl Default for Annotations {
    fn default() -> Self {
        Self { read_only: false, destructive: true, idempotent: false, open_world: true }
    }
}

/// The caller of a tool. Missing values are empty strings.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallerInput<'a> {
    /// Its name in the log.
    pub name: &'a str,
    /// The name of its key.
    pub key: &'a str,
    /// The scope of its key.
    pub scope: &'a str,
    /// The profile it uses.
    pub profile: &'a str,
    /// The session of the call.
    pub session: &'a str,
}

impl Expression {
    /// Compiles an expression and checks everything that does not depend on a tool.
    pub fn compile(source: &str) -> Result<Self, ExpressionError> {
        if source.len() > EXPRESSION_BYTES_MAX {
            return Err(ExpressionError {
                problem: format!("the expression has more than {EXPRESSION_BYTES_MAX} bytes"),
                remedy: "split it into several rules".to_owned(),
            });
        }
        let root = parse::parse(source)?;
        let names = Names::of(&root)?;
        let cost = Cost::of(&root)?;
        check::require_bool(&root)?;
        Ok(Self(Arc::new(Compiled { source: source.to_owned(), root, names, cost })))
    }

    /// The text.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// The values that the expression reads, such as `args.path`.
    pub fn paths(&self) -> &[ValuePath] {
        &self.0.names.paths
    }

    /// An estimate of the work of an evaluation, in steps of about a tenth of a microsecond.
    pub fn steps(&self, args: &Value) -> u64 {
        self.0.cost.steps(args, &self.0.names)
    }

    /// Evaluates the expression. The error is a phrase for the log and the caller.
    pub fn evaluate(&self, inputs: &Inputs<'_>) -> Result<bool, String> {
        let Compiled { root, names, cost, .. } = &*self.0;
        cost.require_small(inputs.args, names)?;
        // Functions of the crate may have assertions that hostile arguments break.
        let evaluated = catch_unwind(AssertUnwindSafe(|| {
            let mut context = Context::with_env(Arc::clone(functions::environment()));
            value::bind(&mut context, inputs, names);
            cel::Value::resolve(root, &context)
        }));
        match evaluated {
            Ok(Ok(cel::Value::Bool(is_true))) => Ok(is_true),
            Ok(Ok(other)) => Err(format!("the result is of type {}, not bool", other.type_of())),
            Ok(Err(error)) => Err(shortened(&error.to_string())),
            Err(_) => Err("the evaluation failed unexpectedly".to_owned()),
        }
    }

    /// Compares the expression with the input schema of a tool.
    pub fn check(&self, schema: &Value) -> Vec<SchemaMismatch> {
        check::against(&self.0.root, schema)
    }
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(ERROR_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests;
