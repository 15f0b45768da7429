//! Types of an expression: against themselves at load, and against the input schema of a tool.

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, operators};
use haft_text::nearest;
use serde_json::Value;

use super::ExpressionError;
use super::names::{ARGS, CALLER, TOOL, path_of, string_literal};
use types::{Typed, Types};

mod types;

/// A part of an expression that does not fit the input schema of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaMismatch {
    /// The kind of mismatch.
    pub kind: SchemaProblem,
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

/// The kinds of mismatches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaProblem {
    /// The tool has no such argument.
    UnknownArgument {
        /// Its path, such as `args.path`.
        path: String,
        /// True if the expression tests for it with `has`, so that it is needed for one tool only.
        is_tested: bool,
    },
    /// Values of these types cannot be combined.
    WrongType,
    /// The argument may be missing, and the expression does not test for it: such a call is denied.
    OptionalArgument,
}

/// Refuses an expression that cannot be evaluated whatever the arguments are.
pub(super) fn require_bool(root: &IdedExpr) -> Result<(), ExpressionError> {
    let mut checker = Checker::new(root, None);
    let types = checker.typed(root).types;
    let wrong = checker.found.into_iter().find(|it| it.kind == SchemaProblem::WrongType);
    if let Some(SchemaMismatch { problem, remedy, .. }) = wrong {
        return Err(ExpressionError { problem, remedy });
    }
    if types.meets(Types::BOOL) {
        return Ok(());
    }
    Err(ExpressionError {
        problem: format!("the expression is {types}, not true or false"),
        remedy: "compare it with something, such as `args.count > 10`".to_owned(),
    })
}

/// Compares an expression with an input schema.
pub(super) fn against(root: &IdedExpr, schema: &Value) -> Vec<SchemaMismatch> {
    let mut checker = Checker::new(root, Some(schema));
    checker.typed(root);
    checker.found
}

struct Checker<'e> {
    schema: Option<&'e Value>,
    /// The paths that the expression tests with `has` or `in`.
    tested: Vec<Vec<&'e str>>,
    bound: Vec<(&'e str, Typed<'e>)>,
    found: Vec<SchemaMismatch>,
}

impl<'e> Checker<'e> {
    fn new(root: &'e IdedExpr, schema: Option<&'e Value>) -> Self {
        let mut tested = Vec::new();
        collect_tests(root, &mut tested);
        Self { schema, tested, bound: Vec::new(), found: Vec::new() }
    }

    fn typed(&mut self, expr: &'e IdedExpr) -> Typed<'e> {
        match &expr.expr {
            Expr::Unspecified | Expr::Struct(_) => Typed::ANY,
            Expr::Literal(literal) => Typed::of(literal_types(literal)),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => {
                let operand = self.typed(&select.operand);
                if select.test {
                    self.field(expr, operand, &select.field, Access::Tested);
                    return Typed::of(Types::BOOL);
                }
                self.field(expr, operand, &select.field, Access::Read)
            }
            Expr::List(list) => {
                let items = list.elements.iter().map(|item| self.typed(item).types);
                let items = items.reduce(Types::or);
                Typed { types: Types::LIST, schema: None, items }
            }
            Expr::Map(_) => Typed::of(Types::MAP),
            Expr::Call(call) => self.call(expr, call),
            Expr::Comprehension(it) => self.comprehension(it),
        }
    }

    fn variable(&self, name: &str) -> Typed<'e> {
        let bound = self.bound.iter().rev().find(|(bound, _)| *bound == name);
        match (bound, name) {
            (Some((_, typed)), _) => *typed,
            (None, ARGS) => Typed { types: Types::MAP, schema: self.schema, items: None },
            (None, TOOL | CALLER) => Typed::of(Types::MAP),
            (None, _) => Typed::ANY,
        }
    }

    fn field(
        &mut self,
        expr: &'e IdedExpr,
        operand: Typed<'e>,
        field: &str,
        access: Access,
    ) -> Typed<'e> {
        let path = path_of(expr).unwrap_or_default();
        if let [TOOL | CALLER, field] = path.as_slice() {
            return Typed::of(if *field == "annotations" { Types::MAP } else { Types::STRING });
        }
        if path.first() == Some(&TOOL) {
            return Typed::of(Types::BOOL);
        }
        if !operand.types.meets(Types::MAP) {
            let problem = format!("`{field}` is read of {}, which has no fields", operand.types);
            self.wrong(problem, "read a field of an object");
            return Typed::ANY;
        }
        let Some(schema) = operand.schema else { return Typed::ANY };
        match types::property(self.schema, schema, field) {
            types::Property::Known { schema, is_required } => {
                let is_tested = self.tested.contains(&path);
                if !is_required && !is_tested && access == Access::Read && !path.is_empty() {
                    let path = path.join(".");
                    self.found.push(SchemaMismatch {
                        kind: SchemaProblem::OptionalArgument,
                        problem: format!(
                            "`{path}` is optional, and the rule denies every call without it"
                        ),
                        remedy: format!("write `has({path}) && ...`, or `!has({path}) || ...`"),
                    });
                }
                types::of_schema(self.schema, schema)
            }
            types::Property::Free => Typed::ANY,
            types::Property::Unknown { known } => {
                self.unknown(&path, field, &known);
                Typed::ANY
            }
        }
    }

    fn unknown(&mut self, path: &[&str], field: &str, known: &[&str]) {
        let is_tested = self.tested.iter().any(|tested| tested.as_slice() == path);
        let remedy = match nearest(field, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => "the tool has no arguments there".to_owned(),
            None => format!("it has {}", haft_text::list(known)),
        };
        let path = if path.is_empty() { field.to_owned() } else { path.join(".") };
        let problem = format!("there is no argument `{path}`");
        let kind = SchemaProblem::UnknownArgument { path, is_tested };
        self.found.push(SchemaMismatch { kind, problem, remedy });
    }

    fn wrong(&mut self, problem: String, remedy: &str) {
        let remedy = remedy.to_owned();
        self.found.push(SchemaMismatch { kind: SchemaProblem::WrongType, problem, remedy });
    }

    fn call(&mut self, expr: &'e IdedExpr, call: &'e CallExpr) -> Typed<'e> {
        let CallExpr { func_name, target, args } = call;
        let function = func_name.as_str();
        if function == operators::INDEX || function == operators::OPT_INDEX {
            return self.index(expr, args, function == operators::INDEX);
        }
        if function == operators::OPT_SELECT {
            // The value may be missing, and the expression handles that.
            if let [operand, field] = args.as_slice()
                && let Some(field) = string_literal(field)
            {
                let operand = self.typed(operand);
                self.field(expr, operand, field, Access::Tested);
            }
            return Typed::ANY;
        }
        let parts: Vec<(&IdedExpr, Typed<'e>)> = target
            .as_deref()
            .into_iter()
            .chain(args)
            .map(|part| (part, self.typed(part)))
            .collect();
        self.function(function, &parts)
    }

    fn function(&mut self, function: &str, parts: &[(&'e IdedExpr, Typed<'e>)]) -> Typed<'e> {
        let types = |at: usize| parts.get(at).map_or(Types::ANY, |(_, typed)| typed.types);
        let bool = Typed::of(Types::BOOL);
        match function {
            operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT => {
                self.each(parts, Types::BOOL, "is used as a condition");
                bool
            }
            operators::EQUALS
            | operators::NOT_EQUALS
            | operators::LESS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::GREATER_EQUALS => {
                self.compare(parts);
                bool
            }
            operators::IN => {
                self.membership(parts);
                bool
            }
            operators::CONDITIONAL => {
                self.each(
                    parts.get(..1).unwrap_or_default(),
                    Types::BOOL,
                    "is used as a condition",
                );
                Typed::of(types(1).or(types(2)))
            }
            operators::ADD => {
                self.compare(parts);
                Typed::of(types(0).and(types(1)))
            }
            operators::SUBSTRACT
            | operators::MULTIPLY
            | operators::DIVIDE
            | operators::MODULO
            | operators::NEGATE => {
                self.each(parts, Types::NUMBER, "is used as a number");
                Typed::of(Types::NUMBER)
            }
            "startsWith" | "endsWith" | "contains" | "matches" => {
                let phrase = format!("is searched with `{function}`, which is for strings");
                self.each(parts, Types::STRING, &phrase);
                bool
            }
            "size" => {
                let sized = Types::STRING.or(Types::LIST).or(Types::MAP);
                self.each(parts, sized, "has no size");
                Typed::of(Types::NUMBER)
            }
            "string" => Typed::of(Types::STRING),
            "int" | "uint" | "double" => Typed::of(Types::NUMBER),
            "bool" | "hasValue" | operators::NOT_STRICTLY_FALSE => bool,
            _ => Typed::ANY,
        }
    }

    fn index(&mut self, expr: &'e IdedExpr, args: &'e [IdedExpr], reads: bool) -> Typed<'e> {
        let [operand_expr, index] = args else { return Typed::ANY };
        let operand = self.typed(operand_expr);
        self.typed(index);
        if let Some(field) = string_literal(index) {
            let access = if reads { Access::Read } else { Access::Tested };
            return self.field(expr, operand, field, access);
        }
        types::item(self.schema, operand)
    }

    fn each(&mut self, parts: &[(&'e IdedExpr, Typed<'e>)], wanted: Types, phrase: &str) {
        for (expr, typed) in parts {
            if !typed.types.meets(wanted) {
                let problem = format!("{} {phrase}", described(expr, typed.types));
                self.wrong(problem, &format!("use {wanted}"));
            }
        }
    }

    fn compare(&mut self, parts: &[(&'e IdedExpr, Typed<'e>)]) {
        let [(left, left_type), (right, right_type)] = parts else { return };
        // Comparing with null is how an expression asks for a value that is there and empty.
        let is_null = |typed: &Typed<'_>| typed.types == Types::NULL;
        if left_type.types.meets(right_type.types) || is_null(left_type) || is_null(right_type) {
            return;
        }
        let problem = format!(
            "{} is combined with {}",
            described(left, left_type.types),
            described(right, right_type.types)
        );
        self.wrong(problem, "combine values of one type; `string(x)` and `int(x)` convert");
    }

    fn membership(&mut self, parts: &[(&'e IdedExpr, Typed<'e>)]) {
        let [(left, left_type), (right, right_type)] = parts else { return };
        if !right_type.types.meets(Types::LIST.or(Types::MAP)) {
            let problem = format!("{} is searched with `in`", described(right, right_type.types));
            self.wrong(problem, "use a list, or `contains` for a string");
            return;
        }
        let items = right_type.items.or_else(|| {
            let is_list = right_type.types == Types::LIST;
            is_list.then(|| types::item(self.schema, *right_type).types)
        });
        if let Some(items) = items.filter(|items| !items.meets(left_type.types)) {
            let problem = format!(
                "{} is searched in a list of which each item is {items}",
                described(left, left_type.types)
            );
            self.wrong(problem, "use values of one type");
        }
    }

    fn comprehension(&mut self, it: &'e ComprehensionExpr) -> Typed<'e> {
        let range = self.typed(&it.iter_range);
        if !range.types.meets(Types::LIST.or(Types::MAP)) {
            let problem = format!("{} is iterated over", described(&it.iter_range, range.types));
            self.wrong(problem, "use a list or an object");
        }
        let item = if range.types == Types::MAP {
            Typed::of(Types::STRING)
        } else {
            types::item(self.schema, range)
        };
        let accumulator = match &it.accu_init.expr {
            Expr::Literal(literal) => Typed::of(literal_types(literal)),
            _ => Typed::of(Types::LIST),
        };
        let depth = self.bound.len();
        self.bound.push((&it.iter_var, item));
        self.bound.push((&it.accu_var, accumulator));
        self.typed(&it.loop_step);
        let result = self.typed(&it.result);
        self.bound.truncate(depth);
        result
    }
}

/// The use of a field by an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// It fails if the field is missing.
    Read,
    /// It asks whether the field is there.
    Tested,
}

fn collect_tests<'e>(expr: &'e IdedExpr, tested: &mut Vec<Vec<&'e str>>) {
    match &expr.expr {
        Expr::Select(select) => {
            if select.test {
                tested.extend(path_of(expr));
            }
            collect_tests(&select.operand, tested);
        }
        Expr::Call(CallExpr { func_name, target, args }) => {
            if func_name == operators::IN
                && let [name, map] = args.as_slice()
                && let (Some(name), Some(mut path)) = (string_literal(name), path_of(map))
            {
                path.push(name);
                tested.push(path);
            }
            for part in target.as_deref().into_iter().chain(args) {
                collect_tests(part, tested);
            }
        }
        Expr::List(list) => list.elements.iter().for_each(|item| collect_tests(item, tested)),
        Expr::Comprehension(it) => {
            let parts = [&it.iter_range, &it.loop_step, &it.result];
            for part in parts {
                collect_tests(part, tested);
            }
        }
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) | Expr::Map(_) | Expr::Struct(_) => {}
    }
}

fn literal_types(literal: &LiteralValue) -> Types {
    match literal {
        LiteralValue::Boolean(_) => Types::BOOL,
        LiteralValue::Bytes(_) => Types::ANY,
        LiteralValue::Double(_) | LiteralValue::Int(_) | LiteralValue::UInt(_) => Types::NUMBER,
        LiteralValue::Null => Types::NULL,
        LiteralValue::String(_) => Types::STRING,
    }
}

fn described(expr: &IdedExpr, types: Types) -> String {
    match path_of(expr) {
        Some(path) => format!("`{}` ({types})", path.join(".")),
        None => types.to_string(),
    }
}
