//! The supported forms of a script.

use super::*;

/// Proves S2-FR-002: `def` and `async def`, and the default entrypoint.
#[tokio::test]
async fn plain_and_async_functions_run() {
    let plain = Bench::new("def run(args):\n    return {'sum': args['a'] + args['b']}");
    assert_eq!(plain.data(r#"{"a":1,"b":2}"#).await, r#"{"sum":3}"#);
    let waiting = Bench::new(
        "import asyncio\nasync def run(args: dict) -> dict:\n    await asyncio.sleep(0)\n    return args",
    );
    assert_eq!(waiting.data(r#"{"a": 1}"#).await, r#"{"a":1}"#);
    assert_eq!(waiting.data(r#"{"b": 2}"#).await, r#"{"b":2}"#);
}

/// Proves S2-FR-002: the loop of an async tool persists between calls.
#[tokio::test]
async fn async_calls_share_one_loop() {
    let bench = Bench::new(
        "import asyncio\nseen = set()\nasync def run(args):\n    seen.add(id(asyncio.get_running_loop()))\n    return len(seen)",
    );
    for _ in 0..3 {
        assert_eq!(bench.data("{}").await, "1");
    }
}

/// Proves S2-FR-002: `config.entrypoint` and a script in a sub-directory with a helper beside it.
#[tokio::test]
async fn another_entrypoint_and_a_helper_beside_the_script() {
    let bench = Bench::with("", |settings| {
        settings.script_path = "sub/weather.py".into();
        settings.entrypoint = "forecast".into();
        settings.args = vec!["--fast".into()];
    });
    fs::create_dir(bench.tools.path().join("sub")).unwrap();
    bench.write("sub/units.py", "def name():\n    return 'celsius'");
    bench.write(
        "sub/weather.py",
        "import sys, units\nassert __name__ != '__main__'\n\
         def forecast(args):\n    return [units.name(), __file__, sys.argv[1:], sys.stdin.read()]\n\
         if __name__ == '__main__':\n    raise Exception('not to be run')",
    );
    let expected = format!(r#"["celsius","{}",["--fast"],""]"#, bench.path("sub/weather.py"));
    assert_eq!(bench.data("{}").await, expected);
    assert!(!bench.tools.path().join("sub/__pycache__").exists(), "no litter");
}

/// Any result of a decorator on a function of the script is an entrypoint.
#[tokio::test]
async fn every_way_to_define_a_function_is_an_entrypoint() {
    for script in [
        "import helper\n@helper.wrapping\ndef run(args): return 1",
        "import helper\n@helper.plain\ndef run(args): return 1",
        "import helper\n@helper.Task\ndef run(args): return 1",
        "import helper\nif True:\n    @helper.plain\n    async def run(args): return 1",
        "import functools\n@functools.lru_cache\ndef one(n): return n\n@functools.wraps(one)\ndef run(args): return one(1)",
        "import functools\ndef add(a, args): return a\nrun = functools.partial(add, 1)",
        "run = lambda args: 1",
        "def make():\n    def inner(args): return 1\n    return inner\nrun = make()",
        "class Tool:\n    def __call__(self, args): return 1\nrun = Tool()",
        "class Tool:\n    def go(self, args): return 1\nrun = Tool().go",
        "import helper\nclass Tool(helper.Base): pass\nrun = Tool()",
    ] {
        let bench = Bench::new(script);
        bench.write(
            "helper.py",
            "import functools\n\
             def wrapping(function):\n    @functools.wraps(function)\n    def call(*args): return function(*args)\n    return call\n\
             def plain(function): return lambda args: function(args)\n\
             class Task:\n    def __init__(self, function): self.function = function\n    def __call__(self, args): return self.function(args)\n\
             class Base:\n    def __call__(self, args): return 1\n",
        );
        assert_eq!(bench.data("{}").await, "1", "{script}");
    }
}

#[tokio::test]
async fn a_function_gets_as_much_as_it_asks_for() {
    let context = r#"{"execution_id":"e1","session":null,"caller":"cli","tool":"tool"}"#;
    for (script, expected) in [
        ("def run(args, context): return context", context),
        ("def run(args, what): return what", context),
        ("def run(args, *, context): return context", context),
        ("def run(args, context=None): return context", context),
        ("def run(args, verbose=False): return verbose", "false"),
        ("def run(): return 7", "7"),
        ("def run(*args): return args", r#"[{"a":1}]"#),
        ("def run(**args): return args", r#"{"a":1}"#),
        (
            "class Run:\n    def __call__(self, args, context): return args\nrun = Run()",
            r#"{"a":1}"#,
        ),
        (
            "import functools\nrun = functools.partial(lambda x, args: [x, args], 0)",
            r#"[0,{"a":1}]"#,
        ),
    ] {
        assert_eq!(Bench::new(script).data(r#"{"a":1}"#).await, expected, "{script}");
    }
}

/// Keys, large numbers and every character arrive unmodified, in both directions.
#[tokio::test]
async fn arguments_and_answers_keep_their_form() {
    let bench = Bench::new("def run(args):\n    return args");
    let arguments = "{\n  \"z\": 123456789012345678901234567890,\n  \"a\": \"도구 \\\"\\u0000\"\n}";
    let expected = "{\"z\":123456789012345678901234567890,\"a\":\"도구 \\\"\\u0000\"}";
    assert_eq!(bench.data(arguments).await, expected);
}

#[tokio::test]
async fn a_string_is_shown_as_text() {
    let output = Bench::new("def run(args):\n    return 'two\\nlines'").call("{}").await.unwrap();
    assert_eq!(text(&output), "two\nlines");
    assert_eq!(output.data.unwrap().get(), r#""two\nlines""#);
}

/// Proves S2-FR-009, S2-Q-01 and S2-EC-03: environment, directory and user are the runtime's own.
#[tokio::test]
async fn a_script_sees_what_the_runtime_sees() {
    let bench = Bench::new(
        "import os\ndef run(args):\n    own = {k: v for k, v in os.environ.items()}\n    return [own, os.getcwd(), os.getuid()]",
    );
    let answer: Value = serde_json::from_str(&bench.data("{}").await).unwrap();
    // `python3` may be a shell script that looks for the real one, and shells set these.
    let by_shells = ["PATH", "PWD", "OLDPWD", "SHLVL", "_"];
    for (name, value) in std::env::vars().filter(|(name, _)| !by_shells.contains(&name.as_str())) {
        assert_eq!(answer[0][&name].as_str(), Some(value.as_str()), "{name}");
    }
    assert_eq!(answer[1].as_str(), std::env::current_dir().unwrap().to_str());
    assert_eq!(answer[2].as_u64(), Some(rustix::process::getuid().as_raw().into()));
}

/// Proves S2-EC-03: a trusted script reads and writes whatever the process may.
#[tokio::test]
async fn a_script_may_write_outside_the_tools_directory() {
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("written");
    let bench = Bench::new("def run(args):\n    return open(args['file'], 'w').write('hello')");
    let arguments = serde_json::json!({ "file": file }).to_string();
    assert_eq!(bench.data(&arguments).await, "5");
    assert_eq!(fs::read_to_string(file).unwrap(), "hello");
}
