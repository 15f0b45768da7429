//! Reads the text of an expression.

use std::thread;

use cel::ParseErrors;
use cel::common::ast::{EntryExpr, Expr, IdedExpr};

use super::{ExpressionError, functions, shortened};

/// Deepest nesting of an expression. Evaluation needs a part of the stack for each level.
const DEPTH_MAX: u16 = 40;
/// The parser recurses about eight times for each level, also where levels are a chain such as `1+1+1`. The longest
/// expression needs less than this in a debug build.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// Parses an expression on a stack of its own: one that is nested too deeply is an error, not the end of the process.
pub(super) fn parse(source: &str) -> Result<IdedExpr, ExpressionError> {
    let text = source.to_owned();
    let worker = thread::Builder::new()
        .name("haft-expression".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || parse_here(&text));
    match worker.map(thread::JoinHandle::join) {
        Ok(Ok(parsed)) => parsed,
        // The parser has assertions.
        Ok(Err(_)) => Err(unreadable("the expression cannot be read".to_owned())),
        Err(error) => Err(ExpressionError {
            problem: format!("the expression cannot be read: no thread could be started: {error}"),
            remedy: "raise the limit of threads for this user".to_owned(),
        }),
    }
}

fn parse_here(source: &str) -> Result<IdedExpr, ExpressionError> {
    let parser = functions::environment()
        .parser()
        // Chains such as `1+1+1` do not count here, so the depth is measured below as well.
        .max_recursion_depth(DEPTH_MAX)
        .enable_ident_escape_syntax(true);
    let root = parser.parse(source).map_err(|errors| syntax(&errors))?;
    if depth(&root) > usize::from(DEPTH_MAX) {
        return Err(ExpressionError {
            problem: format!("the expression is nested deeper than {DEPTH_MAX} levels"),
            remedy: "split it into several rules, or compare with a list: `args.x in ['a', 'b']`"
                .to_owned(),
        });
    }
    Ok(root)
}

fn depth(expr: &IdedExpr) -> usize {
    let deepest = |parts: Vec<&IdedExpr>| parts.into_iter().map(depth).max().unwrap_or(0);
    let entries = |entries: &[cel::common::ast::IdedEntryExpr]| {
        let entries = entries.iter().map(|entry| match &entry.expr {
            EntryExpr::StructField(field) => depth(&field.value),
            EntryExpr::MapEntry(entry) => depth(&entry.key).max(depth(&entry.value)),
        });
        entries.max().unwrap_or(0)
    };
    1 + match &expr.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => 0,
        Expr::Call(call) => deepest(call.target.as_deref().into_iter().chain(&call.args).collect()),
        Expr::Comprehension(it) => {
            deepest(vec![&it.iter_range, &it.accu_init, &it.loop_cond, &it.loop_step, &it.result])
        }
        Expr::List(list) => deepest(list.elements.iter().collect()),
        Expr::Map(map) => entries(&map.entries),
        Expr::Struct(message) => entries(&message.entries),
        Expr::Select(select) => depth(&select.operand),
    }
}

fn syntax(errors: &ParseErrors) -> ExpressionError {
    let Some(first) = errors.errors.first() else {
        return unreadable("the expression cannot be read".to_owned());
    };
    // The parser marks errors without a position with zero.
    let problem = match first.pos {
        (1.., column @ 1..) if first.pos.0 == 1 => format!("at character {column}: {}", first.msg),
        (line @ 1.., column) => format!("at line {line}, character {column}: {}", first.msg),
        _ => first.msg.clone(),
    };
    unreadable(format!("the expression is not CEL: {}", shortened(&problem)))
}

fn unreadable(problem: String) -> ExpressionError {
    let remedy =
        "write such as `args.path.startsWith('/tmp/') && caller.scope != 'admin'`".to_owned();
    ExpressionError { problem, remedy }
}
