//! Properties of every ranking.

use haft::select::{Decision, Selector, ToolText};
use serde_json::{Value, json};

pub fn tool(name: &str, description: &str, input_schema: Value) -> ToolText {
    ToolText {
        name: name.into(),
        server: None,
        title: None,
        description: description.into(),
        input_schema,
        examples: Vec::new(),
    }
}

fn required(names: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        names.iter().map(|&name| (name.to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "object", "properties": properties, "required": names})
}

fn office() -> Vec<ToolText> {
    vec![
        tool(
            "get_weather",
            "Get the current weather conditions for a location.",
            required(&["location"]),
        ),
        tool(
            "send_email",
            "Send an email message to one or more recipients.",
            required(&["to", "subject", "body"]),
        ),
        tool(
            "searchFlights",
            "Search for available flights between airports on a date.",
            required(&[]),
        ),
        tool("read_file", "Read the contents of a text file.", required(&["path"])),
        tool("calculate", "Evaluate a mathematical expression exactly.", required(&["expression"])),
    ]
}

fn names(selector: &Selector, request: &str, count: usize) -> Vec<String> {
    selector.select(request, count).into_iter().map(|ranked| ranked.tool).collect()
}

/// Proves S2-FR-004: by meaning, also where no word is shared.
#[test]
fn tools_are_found_by_meaning() {
    let selector = Selector::new(&office());
    for (request, tool) in [
        ("Do I need an umbrella in Oslo?", "get_weather"),
        ("I want to fly from Vienna to Madrid", "searchFlights"),
        ("What is 12 * (3 + 4)?", "calculate"),
        ("Let Maria know by mail that I am late", "send_email"),
        ("Open notes.md", "read_file"),
    ] {
        assert_eq!(names(&selector, request, 1), [tool], "{request}");
    }
}

/// Proves S2-FR-004: a name is a name, with a slip or in another spelling too.
#[test]
fn a_tool_that_is_named_comes_first() {
    let selector = Selector::new(&office());
    for (request, tool) in [
        ("calculate", "calculate"),
        ("read file", "read_file"),
        ("search_flights", "searchFlights"),
        ("get_wether", "get_weather"),
        ("please use send_email for the weather in the file", "send_email"),
    ] {
        assert_eq!(names(&selector, request, 1), [tool], "{request}");
    }
    let decision = selector.decide("use searchFlights, thank you", 1);
    assert!(matches!(decision, Decision::UseTool { .. }), "{decision:?}");
}

/// The reasons are there to be shown.
#[test]
fn a_ranking_says_what_it_rests_on() {
    let best = Selector::new(&office()).select("weather conditions in Bergen", 2);
    assert_eq!(best.len(), 2);
    assert_eq!(best[0].why.words, ["weather", "conditions"]);
    assert!(best[0].why.lexical > 0.2 && best[0].why.semantic > 0.4, "{best:?}");
    assert!(best[0].score > best[1].score);
}

/// Equal tools keep their order, and asking twice gives the same answer.
#[test]
fn the_order_is_always_the_same() {
    let same = |name: &str| tool(name, "Does a thing with things.", json!({}));
    let tools: Vec<ToolText> = (0..50).map(|at| same(&format!("thing{at:02}"))).collect();
    let selector = Selector::new(&tools);
    let first = selector.select("do the thing", 50);
    assert_eq!(first, selector.select("do the thing", 50));
    assert_eq!(first, Selector::new(&tools).select("do the thing", 50));
    let few: Vec<_> = first.iter().take(7).cloned().collect();
    assert_eq!(few, selector.select("do the thing", 7));
}

/// Strange toolboxes and requests have answers too.
#[test]
fn nothing_is_too_odd_to_rank() {
    let empty = Selector::new(&[]);
    assert!(empty.select("anything", 5).is_empty());
    assert_eq!(empty.decide("anything", 5), Decision::NoTool);
    let odd = tool("", "", Value::Null);
    let chinese =
        tool("bing_search", "使用必应搜索指定的关键词", json!({"required": "x", "properties": 3}));
    let selector = Selector::new(&[odd, chinese]);
    for request in ["", " ", "\"", "搜索", "…!?", "é\u{301}\u{0}", "a\n;;;.", ", and , and"] {
        assert_eq!(selector.select(request, 5).len(), 2, "{request:?}");
        selector.decide(request, 1);
    }
    assert_eq!(names(&selector, "搜索", 1), ["bing_search"]);
    let long = "weather and then flights. ".repeat(20_000);
    assert_eq!(selector.select(&long, 0), []);
    assert_eq!(selector.select(&long, 1).len(), 1);
}

/// Proves S2-FR-004: a request for several things finds a tool for each.
#[test]
fn every_part_of_a_request_gets_its_tool() {
    let mut best = names(
        &Selector::new(&office()),
        "Tell me the weather in Paris tomorrow, then look for flights to Paris, and finally mail the result to anna@example.org.",
        3,
    );
    best.sort();
    assert_eq!(best, ["get_weather", "searchFlights", "send_email"]);
}

/// Proves S2-FR-004: one wish that many tools could grant does not take all the places.
#[test]
fn no_part_of_a_request_takes_all_the_places() {
    let code = |at: usize| {
        tool(&format!("qr_code_{at}"), "Generate a QR code image for a link or a text.", json!({}))
    };
    let mut tools: Vec<ToolText> = (0..8).map(code).collect();
    tools.push(tool("captcha", "Make a captcha that tells people from programs.", json!({})));
    let selector = Selector::new(&tools);
    let request =
        "Generate a QR code image with the link. Additionally, make a captcha for the form.";
    let best = selector.select(request, 5);
    assert!(best.iter().any(|it| it.tool == "captcha"), "{best:?}");
    assert!(best.is_sorted_by(|a, b| a.score >= b.score), "{best:?}");
    assert_eq!(best, selector.select(request, 9)[..5]);
}

/// Proves S2-SC-005 for the decision without a model: missing arguments are named, given ones are
/// not asked for.
#[test]
fn missing_arguments_are_asked_for() {
    let selector = Selector::new(&office());
    let missing = |request: &str| match selector.decide(request, 1) {
        Decision::AskHuman { missing, ranked } => {
            let names: Vec<String> = missing.into_iter().map(|it| it.name).collect();
            format!("{}: {}", ranked[0].tool, names.join(", "))
        }
        Decision::UseTool { ranked } => ranked[0].tool.clone(),
        Decision::NoTool => "none".to_owned(),
    };
    assert_eq!(missing("Send an email."), "send_email: to, subject, body");
    assert_eq!(missing("What is the weather?"), "get_weather: location");
    assert_eq!(missing("What is the weather in Lima?"), "get_weather");
    assert_eq!(missing("Read the file."), "read_file: path");
    assert_eq!(missing("Read the file src/main.rs"), "read_file");
}

/// Proves S2-SC-005 for the decision without a model: one number does not fill two arguments, and a
/// year is not a place.
#[test]
fn what_is_said_once_is_one_argument() {
    let number = json!({"type": "number"});
    let place = json!({"type": "object", "properties": {"latitude": number, "longitude": number},
        "required": ["latitude", "longitude"]});
    let way = required(&["origin", "destination"]);
    let selector = Selector::new(&[
        tool("reverse_geocode", "Find the address for coordinates.", place),
        tool("find_trains", "Find trains between two cities.", way),
        tool("get_forecast", "Get the weather forecast for a city.", required(&["city"])),
    ]);
    let missing = |request: &str| match selector.decide(request, 1) {
        Decision::AskHuman { missing, .. } => {
            missing.into_iter().map(|it| it.name).collect::<Vec<_>>().join(", ")
        }
        Decision::UseTool { .. } | Decision::NoTool => String::new(),
    };
    assert_eq!(missing("Find the address for the coordinates at latitude 40.7128"), "longitude");
    assert_eq!(missing("Find the address for the coordinates 40.7128, -74.0060"), "");
    assert_eq!(missing("Find trains to Salzburg between two cities"), "destination");
    assert_eq!(missing("Find trains from Vienna to Salzburg"), "");
    assert_eq!(missing("Get the weather forecast for 10 March 2027"), "city");
}

/// Small talk and general knowledge need no tool.
#[test]
fn no_tool_is_an_answer() {
    let selector = Selector::new(&office());
    for request in
        ["Hi!", "Who wrote Don Quixote?", "Thanks, you are very kind.", "Why do cats purr?"]
    {
        assert_eq!(selector.decide(request, 3), Decision::NoTool, "{request}");
    }
    for filler in ["a", "the", "to", "for a"] {
        assert_eq!(selector.decide(filler, 3), Decision::NoTool, "{filler}");
    }
}

/// Proves S2-FR-004: examples decide where descriptions do not.
#[test]
fn examples_help_to_choose() {
    let mut tools = vec![
        tool("alpha", "Internal system A.", json!({})),
        tool("beta", "Internal system B.", json!({})),
    ];
    tools[1].examples = vec!["How many holidays do I have left?".into()];
    let selector = Selector::new(&tools);
    assert_eq!(names(&selector, "how many days of holiday are left for me", 1), ["beta"]);
    tools.swap(0, 1);
    tools[0].examples.clear();
    tools[1].examples = vec!["How many holidays do I have left?".into()];
    assert_eq!(
        names(&selector.updated(&tools), "how many days of holiday are left for me", 1),
        ["alpha"]
    );
}

/// An updated index equals one built from scratch.
#[test]
fn a_changed_toolbox_is_ranked_as_if_it_were_new() {
    let mut tools = office();
    let before = Selector::new(&tools);
    tools.remove(0);
    tools.push(tool("get_news", "Get the latest headlines.", json!({})));
    tools[1].description = "Find trains and buses.".into();
    let (updated, new) = (before.updated(&tools), Selector::new(&tools));
    for request in ["headlines of today", "a bus to Graz", "Will it rain?", "get_news"] {
        assert_eq!(updated.select(request, 9), new.select(request, 9));
        assert_eq!(updated.decide(request, 9), new.decide(request, 9));
    }
}
