//! `web_search`: the four services, their results, and everything they answer in place of results.

use std::time::Duration;

use haft::{Code, Envelope, Runtime, Status, ToolCall};
use serde_json::{Value, json};
use testkit::search::{
    DUCKDUCKGO_ANOMALY, DUCKDUCKGO_NOTHING, SearchAnswer, SearchServer, Searched,
};

use crate::support::Bench;

const KEY: &str = "key-that-nobody-may-see";

/// The settings of `builtin.web_search` for each service.
fn settings(backend: &str, server: &SearchServer) -> String {
    let url = format!("http://{}", server.address);
    match backend {
        "searxng" | "duckduckgo" => format!("{backend}: {{url: '{url}'}}"),
        _ => format!("{backend}: {{url: '{url}/', api_key: {KEY}}}"),
    }
}

const BACKENDS: [&str; 4] = ["searxng", "brave", "tavily", "duckduckgo"];

struct Searching {
    server: SearchServer,
    runtime: Runtime,
    bench: Bench,
}

impl Searching {
    async fn with(backend: &str, more: &str) -> Self {
        let (server, bench) = (SearchServer::start().await, Bench::new());
        let service = settings(backend, &server);
        let yaml = format!("builtin: {{web_search: {{backend: {backend}, {service}{more}}}}}\n");
        let runtime = Runtime::start(bench.config(&yaml)).await.unwrap();
        Self { server, runtime, bench }
    }

    async fn call(&self, arguments: Value) -> Envelope {
        self.runtime.call(ToolCall::new("web_search", &arguments)).await
    }

    async fn search(&self) -> Envelope {
        self.call(json!({"query": "rust language"})).await
    }

    fn only_request(&self) -> Searched {
        let mut asked = self.server.asked();
        assert_eq!(asked.len(), 1, "{asked:?}");
        asked.remove(0)
    }
}

fn results(answer: &Envelope) -> Value {
    let data = answer.data.as_ref().unwrap_or_else(|| panic!("{:?}", answer.error));
    serde_json::from_str::<Value>(data.get()).unwrap()["results"].clone()
}

/// The code, the message and the remedy of a failure, in one text. Never with a key.
fn failure(answer: &Envelope) -> String {
    assert_eq!(answer.status, Status::Error, "{:?}", answer.data);
    assert!(answer.data.is_none() && answer.content.is_empty());
    let shown = serde_json::to_string(answer).unwrap();
    assert!(!shown.contains(KEY), "{shown}");
    let error = answer.error.as_ref().unwrap();
    let code = serde_json::to_value(error.code).unwrap();
    format!("{}: {}\n  {}", code.as_str().unwrap(), error.message, error.remedy.as_ref().unwrap())
}

/// Proves S2-FR-007 for `web_search`.
#[tokio::test]
async fn searxng_is_asked_for_json() {
    let searching = Searching::with("searxng", "").await;
    let answer = searching.call(json!({"query": " rust\nlanguage ", "time_range": "week"})).await;
    insta::assert_snapshot!(answer.model_text(), @"
    1. Rust Programming Language — https://www.rust-lang.org/
       A language empowering everyone to build reliable and efficient software.
    2. The Rust Blog — https://blog.rust-lang.org/ (2026-10-29T00:00:00)
       Empowering everyone, if a <b and c> d.
    3. The Book — https://doc.rust-lang.org/book/
    ");
    let first = json!({
        "title": "Rust Programming Language",
        "url": "https://www.rust-lang.org/",
        "snippet": "A language empowering everyone to build reliable and efficient software.",
    });
    assert_eq!(results(&answer)[0], first);
    let asked = searching.only_request();
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("GET", "/search"));
    assert_eq!(asked.query, "q=rust+language&format=json&time_range=week");
    assert_eq!(asked.header("authorization"), None);
}

#[tokio::test]
async fn brave_is_asked_with_its_token() {
    let searching = Searching::with("brave", "").await;
    let call = json!({"query": "rust language", "max_results": 2, "time_range": "day"});
    let answer = searching.call(call).await;
    insta::assert_snapshot!(answer.model_text(), @"
    1. Rust Programming Language — https://www.rust-lang.org/ (2026-10-01T08:00:00)
       A language empowering everyone & more.
    2. The Rust Blog — https://blog.rust-lang.org/ (2 days ago)
       News.
    ");
    let asked = searching.only_request();
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("GET", "/res/v1/web/search"));
    assert_eq!(asked.query, "q=rust+language&count=2&freshness=pd");
    assert_eq!(asked.header("x-subscription-token"), Some(KEY));
}

#[tokio::test]
async fn tavily_is_asked_with_its_key() {
    let searching = Searching::with("tavily", "").await;
    let answer = searching.call(json!({"query": "rust language", "time_range": "year"})).await;
    insta::assert_snapshot!(answer.model_text(), @"
    1. Rust Programming Language — https://www.rust-lang.org/
       A language empowering everyone.
    2. The Rust Blog — https://blog.rust-lang.org/ (Thu, 29 Oct 2026 00:00:00 GMT)
       News.
    ");
    let asked = searching.only_request();
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/search"));
    assert_eq!(asked.header("authorization"), Some(&*format!("Bearer {KEY}")));
    let body: Value = serde_json::from_str(&asked.body).unwrap();
    let expected = json!({"query": "rust language", "max_results": 5, "search_depth": "basic",
                          "include_answer": false, "time_range": "year"});
    assert_eq!(body, expected);
}

#[tokio::test]
async fn the_page_of_duckduckgo_is_read_without_its_advertisements() {
    let searching = Searching::with("duckduckgo", "").await;
    let answer = searching.call(json!({"query": "rust & language", "time_range": "month"})).await;
    insta::assert_snapshot!(answer.model_text(), @"
    1. Rust Programming Language — https://www.rust-lang.org/
       Rust is a fast, reliable & productive language. It's free.
    2. Rust (programming language) - Wikipedia — https://en.wikipedia.org/wiki/Rust_(programming_language)
       A general-purpose language.
    ");
    let asked = searching.only_request();
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/html/"));
    assert_eq!(asked.body, "q=rust+%26+language&b=&df=m");
}

/// An empty result is a valid answer.
#[tokio::test]
async fn no_results_are_a_good_answer() {
    let pages = [
        r#"{"query": "x", "results": [], "unresponsive_engines": []}"#,
        r#"{"type": "search", "query": {"original": "x"}, "mixed": {}}"#,
        r#"{"query": "x", "results": []}"#,
        DUCKDUCKGO_NOTHING,
    ];
    for (backend, page) in BACKENDS.into_iter().zip(pages) {
        let searching = Searching::with(backend, "").await;
        searching.server.says(200, page);
        let answer = searching.search().await;
        assert_eq!(answer.status, Status::Success, "{backend}: {:?}", answer.error);
        assert_eq!(results(&answer), json!([]));
        let expected =
            "No results were found for `rust language`. Other or fewer words may find some.";
        assert_eq!(answer.model_text(), expected);
    }
}

/// For every failure of a service, the model receives the cause and the operator the remedy.
#[tokio::test]
async fn every_refusal_has_its_cause_and_its_remedy() {
    let page = |status: u16, body: &str| SearchAnswer::Page(status, Vec::new(), body.to_owned());
    let with = |status: u16, name: &'static str, value: &str| {
        SearchAnswer::Page(status, vec![(name, value.to_owned())], String::new())
    };
    let answers = |rude: &str| {
        [
            ("401", page(401, rude)),
            ("403", page(403, "")),
            ("404", page(404, "")),
            ("422", page(422, rude)),
            ("429", with(429, "retry-after", "17")),
            ("503", page(503, rude)),
            ("302", with(302, "location", "https://elsewhere.example/")),
            ("another page", page(200, "<html></html>")),
            ("another document", page(200, "{\"ok\": true}")),
            ("half a document", page(200, "{\"results\": [")),
            ("silence", SearchAnswer::Silence),
        ]
    };
    let mut said = String::new();
    for backend in BACKENDS {
        // A service may repeat what it was sent, and more.
        let sent = if matches!(backend, "brave" | "tavily") { KEY } else { "nothing" };
        for (what, answer) in &answers(&format!("you sent {sent}\u{1b}[31m")) {
            let is_silent = matches!(answer, SearchAnswer::Silence);
            let more = if is_silent { ", request_timeout: 200ms" } else { "" };
            // A new service each time, because DuckDuckGo allows one request per second.
            let searching = Searching::with(backend, more).await;
            searching.server.answers(answer.clone());
            said += &format!("{backend}, {what}\n{}\n", failure(&searching.search().await));
            assert!(!format!("{:?}", searching.bench.logged()).contains(KEY));
        }
    }
    insta::assert_snapshot!(said);
}

/// Proves that a page which asks whether a person is there is never taken for results.
#[tokio::test]
async fn duckduckgo_having_enough_is_an_error() {
    for (status, page) in [(202, DUCKDUCKGO_ANOMALY), (200, DUCKDUCKGO_ANOMALY), (202, "")] {
        let searching = Searching::with("duckduckgo", "").await;
        searching.server.says(status, page);
        let answer = searching.search().await;
        assert_eq!(answer.error.as_ref().unwrap().code, Code::ServiceUnavailable);
        let text = failure(&answer);
        assert!(text.contains("DuckDuckGo allows no more searches for now"), "{text}");
        assert!(text.contains("BRAVE_API_KEY"), "{text}");
    }
    let searching = Searching::with("duckduckgo", "").await;
    searching.server.says(200, "<html><body>Something new</body></html>");
    let text = failure(&searching.search().await);
    assert!(text.contains("not a list of results"), "{text}");
}

#[tokio::test]
async fn searxng_whose_engines_all_failed_has_not_found_nothing() {
    let searching = Searching::with("searxng", "").await;
    let page =
        r#"{"results": [], "unresponsive_engines": [["google", "CAPTCHA"], ["bing", "timeout"]]}"#;
    searching.server.says(200, page);
    let text = failure(&searching.search().await);
    assert!(text.contains("its engines failed: google CAPTCHA, bing timeout"), "{text}");
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off() {
    let searching = Searching::with("tavily", "").await;
    searching.server.says(200, &" ".repeat(5 << 20));
    let text = failure(&searching.search().await);
    assert!(text.contains("longer than 4194304 bytes"), "{text}");
}

#[tokio::test]
async fn a_service_that_is_not_there_is_named() {
    let bench = Bench::new();
    let yaml = "builtin: {web_search: {searxng: {url: 'http://user:hidden@127.0.0.1:1/'}}}\n";
    let runtime = Runtime::start(bench.config(yaml)).await.unwrap();
    let answer = runtime.call(ToolCall::new("web_search", &json!({"query": "x"}))).await;
    let text = failure(&answer);
    assert!(text.contains("SearXNG cannot be reached: Connection refused"), "{text}");
    assert!(
        text.contains("`builtin.web_search.searxng.url`") && !text.contains("hidden"),
        "{text}"
    );
}

/// `auto`: the first that is configured.
#[tokio::test]
async fn who_is_configured_is_asked() {
    let server = SearchServer::start().await;
    let service = |backend: &str| settings(backend, &server);
    let duckduckgo = service("duckduckgo");
    for (services, path) in [
        (vec![service("searxng"), service("brave"), service("tavily")], "GET /search"),
        (vec![service("tavily"), service("brave")], "GET /res/v1/web/search"),
        (vec![service("tavily")], "POST /search"),
        (vec![format!("brave: {{url: 'http://{}'}}", server.address)], "POST /html/"),
    ] {
        let bench = Bench::new();
        let yaml = format!("builtin: {{web_search: {{{}, {duckduckgo}}}}}\n", services.join(", "));
        let runtime = Runtime::start(bench.config(&yaml)).await.unwrap();
        let answer = runtime.call(ToolCall::new("web_search", &json!({"query": "x"}))).await;
        assert_eq!(answer.status, Status::Success, "{:?}", answer.error);
        let asked: Vec<String> =
            server.asked().iter().map(|asked| format!("{} {}", asked.method, asked.path)).collect();
        assert_eq!(asked, [path]);
    }
    let bench = Bench::new();
    let yaml = "builtin: {web_search: {backend: brave}}\n";
    let runtime = Runtime::start(bench.config(yaml)).await.unwrap();
    let answer = runtime.call(ToolCall::new("web_search", &json!({"query": "x"}))).await;
    assert!(
        failure(&answer).contains("Brave was not asked, for it needs a key\n  set a valid key")
    );
}

#[tokio::test]
async fn the_same_question_is_asked_once_while_it_is_kept() {
    let kept = Searching::with("searxng", "").await;
    let (first, second) = (kept.search().await, kept.search().await);
    assert_eq!(results(&first), results(&second));
    assert_eq!(kept.server.asked().len(), 1);
    assert_eq!(
        results(&kept.call(json!({"query": "rust language", "max_results": 1})).await)[1],
        Value::Null
    );
    assert_eq!(kept.server.asked().len(), 1, "another question");
    // An error is not an answer that is worth keeping.
    kept.server.says(503, "");
    failure(&kept.call(json!({"query": "other"})).await);
    kept.server.answers(SearchAnswer::Results);
    assert_eq!(kept.call(json!({"query": "other"})).await.status, Status::Success);
    kept.runtime.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn arguments_that_make_no_sense_are_refused() {
    let searching = Searching::with("searxng", "").await;
    for arguments in [
        json!({}),
        json!({"query": ""}),
        json!({"query": "x", "max_results": 0}),
        json!({"query": "x", "max_results": 21}),
        json!({"query": "x", "time_range": "decade"}),
    ] {
        let error = searching.call(arguments).await.error.unwrap();
        assert_eq!(error.code, Code::ValidationError);
    }
    assert!(failure(&searching.call(json!({"query": " \n"})).await).contains("`query` is empty"));
    assert!(searching.server.asked().is_empty());
}
