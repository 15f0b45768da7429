//! Expressions as operators write them: what they mean, what is refused, what it costs.

use serde_json::json;

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "tests write the arguments in place")]
fn evaluate(source: &str, args: Value) -> Result<bool, String> {
    let expression = Expression::compile(source).unwrap_or_else(|error| panic!("{error:?}"));
    let tool =
        ToolInput { name: "read_file", server: "files", annotations: Annotations::default() };
    let caller =
        CallerInput { name: "key:agent", key: "agent", scope: "call", ..CallerInput::default() };
    expression.evaluate(&Inputs { args: &args, tool, caller })
}

fn refused(source: &str) -> String {
    let error = Expression::compile(source).map(|it| it.source().to_owned()).unwrap_err();
    format!("{} ({})", error.problem, error.remedy)
}

#[test]
fn an_expression_sees_arguments_tool_and_caller() {
    let args = json!({"path": "/tmp/a", "n": 3, "f": 2.5, "tags": ["a", "b"], "o": {"deep": true}});
    for source in [
        "args.path.startsWith('/tmp/')",
        "args.n > 2 && args.n < 3.5 && args.f == 2.5 && args.n == 3.0",
        "'a' in args.tags && !('z' in args.tags)",
        "args.tags.exists(tag, tag == 'b') && args.tags.size() == 2",
        "args.o.deep && args['o']['deep']",
        "has(args.path) && !has(args.missing)",
        "args.?missing.orValue('none') == 'none'",
        "tool.server == 'files' && tool.name == 'read_file' && tool.annotations.destructiveHint",
        "caller.key == 'agent' && caller.scope == 'call' && caller.profile == ''",
        "args.path.matches('^/tmp/[a-z]$')",
        "args.all(name, name != 'secret')",
        "type(args.n) == int && string(args.n) == '3'",
    ] {
        assert_eq!(evaluate(source, args.clone()), Ok(true), "{source}");
    }
}

#[test]
fn what_cannot_be_evaluated_is_an_error() {
    for (source, args, problem) in [
        ("args.path == 'x'", json!({}), "No such key: path"),
        ("args.n > 1", json!({"n": "three"}), "found no matching overload"),
        ("args.n / 0 == 1", json!({"n": 1}), "Division by zero"),
        ("args.flag", json!({"flag": 1}), "the result is of type int, not bool"),
        ("args.n + 9223372036854775807 > 0", json!({"n": 1}), "Overflow"),
    ] {
        let error = evaluate(source, args).unwrap_err();
        assert!(error.contains(problem), "{source}: {error}");
    }
    let long = evaluate("args.text > 1", json!({"text": "x".repeat(10_000)})).unwrap_err();
    assert!(long.len() < 1000, "{}", long.len());
}

#[test]
fn mistakes_are_refused_at_load() {
    for (source, problem) in [
        ("args.path = 'x'", "the expression is not CEL"),
        ("", "the expression is not CEL"),
        ("arg.path == 'x'", "no value `arg` (did you mean `args`?)"),
        ("tool.nmae == 'x'", "no field `nmae` (did you mean `name`?)"),
        ("caller.role == 'x'", "no field `role`"),
        ("tool.annotations.readOnly", "no field `readOnly` (did you mean `readOnlyHint`?)"),
        ("args.path.beginsWith('x')", "no function `beginsWith`"),
        ("my_function(args.path)", "no function `my_function`"),
        ("_own(args.path)", "no function `_own`"),
        ("args.path.matches('[')", "not a regular expression"),
        ("args.path.matches(args.pattern)", "not a literal"),
        ("args.n + 1", "is a number, not true or false"),
        ("'a'", "is a string, not true or false"),
        ("caller.name == 1", "`caller.name` (a string) is combined with a number"),
        ("tool.name.size().startsWith('a')", "which is for strings"),
        (
            "args.a.all(x, x.b.all(y, x.c.all(z, args.d.exists(w, z == w && x.e == y))))",
            "nested too deeply",
        ),
        ("args.a.all(x, args.b.all(y, args.c.all(z, x == y && y == z)))", "nested too deeply"),
        ("Foo{bar: 1} == 2", "cannot make a `Foo`"),
    ] {
        let found = refused(source);
        assert!(found.contains(problem), "{source}: {found}");
    }
    let long = format!("args.a == '{}'", "x".repeat(EXPRESSION_BYTES_MAX));
    assert!(refused(&long).contains("more than 2048 bytes"));
}

#[test]
fn hostile_expressions_end_neither_the_process_nor_the_stack() {
    let deep = format!("{}true{}", "(".repeat(1000), ")".repeat(1000));
    let chain = format!("true{}", "||true".repeat(340));
    let sum = format!("1{} > 0", "+1".repeat(1000));
    let select = format!("args{} == 1", ".a".repeat(1000));
    let list = format!("1 in {}{}", "[".repeat(500), "]".repeat(500));
    for source in [deep, chain, sum, select, list] {
        refused(&source);
    }
    // Two negations are none.
    assert!(Expression::compile(&format!("{}true", "!".repeat(2000))).is_ok());
    let many =
        (0..9).map(|at| format!("args.a.all(x, x != {at})")).collect::<Vec<_>>().join(" && ");
    assert!(refused(&many).contains("9 loops"), "{}", refused(&many));
    let doubled = "args.a.map(x, x + x)".to_owned() + &".map(x, x + x)".repeat(9) + ".size() > 1";
    assert!(refused(&doubled).contains("10 loops"));
}

#[test]
fn the_cost_follows_the_arguments() {
    let degree = |source: &str| Expression::compile(source).unwrap().0.cost;
    let steps = |source: &str, args: Value| {
        degree(source)
            .steps(&args, &Names { paths: Vec::new(), arguments: names::ReadArguments::All })
    };
    let items: Vec<u32> = (0..1000).collect();
    let args = json!({"a": items, "b": [{"tags": items}]});
    let flat = steps("args.a.size() > 1", args.clone());
    let linear = steps("args.a.filter(x, x > 1).exists(y, y == 3)", args.clone());
    let nested = steps("args.b.exists(x, x.tags.exists(t, t == 3))", args.clone());
    let square = steps("args.a.all(x, args.a.exists(y, x == y))", args.clone());
    assert!(flat < 20_000 && linear < 100_000 && nested < 100_000, "{flat} {linear} {nested}");
    assert!(square > 1_000_000, "{square}");
    let large: Vec<u32> = (0..20_000).collect();
    let error = evaluate("args.a.all(x, args.a.exists(y, x == y))", json!({"a": large}));
    assert_eq!(error, Err("the arguments are too large for its nested loops".to_owned()));
    let large: Vec<u32> = (0..20_000).collect();
    assert_eq!(evaluate("args.a.all(x, x < 20000)", json!({"a": large})), Ok(true));
}

#[test]
fn only_named_arguments_are_read() {
    let paths = |source: &str| {
        let expression = Expression::compile(source).unwrap();
        let paths: Vec<String> = expression.paths().iter().map(ToString::to_string).collect();
        (paths, expression.0.names.arguments.includes("other"))
    };
    let (found, reads_other) = paths("args.a.b == 1 || args['c'] in ['x'] || has(args.d)");
    assert_eq!(found, ["args.a.b", "args.c", "args.d"]);
    assert!(!reads_other);
    let (found, reads_other) = paths("args.exists(name, name == 'x') && tool.name == 't'");
    assert_eq!(found, ["args", "tool.name"]);
    assert!(reads_other);
}

#[test]
fn a_schema_finds_what_an_expression_gets_wrong() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"}, "count": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "mode": {"enum": ["a", "b"]}, "target": {"$ref": "#/$defs/target"},
        },
        "required": ["path", "count", "tags", "target"],
        "$defs": {"target": {"type": "object", "properties": {"host": {"type": "string"}}, "required": ["host"]}},
    });
    let found = |source: &str| -> Vec<String> {
        let found = Expression::compile(source).unwrap().check(&schema);
        found.into_iter().map(|it| format!("{} ({})", it.problem, it.remedy)).collect()
    };
    for fine in [
        "args.path.startsWith('/') && args.count > 1 && 'x' in args.tags",
        "args.tags.all(tag, tag.startsWith('a'))",
        "has(args.mode) && args.mode == 'a'",
        "args.?mode.orValue('a') == 'a'",
        "args.target.host == 'localhost'",
        "'mode' in args && args.mode == 'b'",
    ] {
        assert_eq!(found(fine), Vec::<String>::new(), "{fine}");
    }
    for (source, problem) in [
        ("args.pth == 'x'", "there is no argument `args.pth` (did you mean `path`?)"),
        (
            "args.target.hots == 'x'",
            "there is no argument `args.target.hots` (did you mean `host`?)",
        ),
        ("args.count == '3'", "`args.count` (a number) is combined with a string"),
        ("args.path > 3", "`args.path` (a string) is combined with a number"),
        ("args.count.startsWith('3')", "`args.count` (a number) is searched with `startsWith`"),
        ("args.tags.exists(tag, tag > 3)", "`tag` (a string) is combined with a number"),
        ("args.count in ['a']", "each item is a string"),
        ("args.path.x == 1", "which has no fields"),
        ("args.mode == 'a'", "`args.mode` is optional"),
        ("args.count.exists(x, x == 1)", "is iterated over"),
    ] {
        let found = found(source);
        assert!(found.iter().any(|it| it.contains(problem)), "{source}: {found:?}");
    }
}
