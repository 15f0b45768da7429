//! Conversations over several runs, and whose they are.

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::model::{Format, ModelServer, Step};

use crate::agent::{RUNS, begin, over, path, run, workspace};
use crate::events::Events;
use crate::served::{Answer, Served, answer, haft};

/// The next run has the earlier messages, also after a restart of the service.
#[tokio::test]
async fn a_session_is_continued() {
    for format in [Format::OpenAi, Format::Anthropic] {
        let steps = [
            Step::call("greet", json!({"name": "Ada"})),
            Step::text("I greeted Ada."),
            Step::text("Ada it was."),
            Step::text("Still Ada."),
        ];
        let model = ModelServer::start(format, steps);
        let served = Served::open(workspace(&model, ""));
        let first = run(&served, "Greet Ada.").await;
        assert_eq!(first["text"], "I greeted Ada.");
        let session = first["session"].clone();
        let again = async |served: &Served, input: &str| {
            let next = begin(served, json!({"input": input, "session": session})).await;
            assert_eq!(next["session"], session);
            over(served, &next).await
        };
        assert_eq!(again(&served, "Whom?").await["text"], "Ada it was.");
        let asked = model.last_request();
        let said = Value::from(asked.messages().to_vec()).to_string();
        let order = ["Greet Ada.", "Hello, Ada!", "I greeted Ada.", "Whom?"];
        let places: Vec<Option<usize>> = order.iter().map(|text| said.find(text)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{said}");
        let served = served.restarted();
        assert_eq!(again(&served, "Sure?").await["text"], "Still Ada.");
        let said = Value::from(model.last_request().messages().to_vec()).to_string();
        assert!(said.contains("Ada it was.") && said.contains("Sure?"), "{said}");
    }
}

/// A conversation in use by one run is not available to another until it is over.
#[tokio::test]
async fn one_run_at_a_time_uses_a_session() {
    let model = ModelServer::openai([Step::silence(), Step::text("Here again.")]);
    let served = Served::open(workspace(&model, ""));
    let first = begin(&served, json!({"input": "Hi"})).await;
    crate::until(|| model.requests().len() == 1).await;
    let next = json!({"input": "Hello?", "session": first["session"]});
    let busy = served.post(RUNS, &next.to_string()).await;
    assert_eq!(busy.status, 409, "{}", busy.text);
    assert_eq!(served.delete(&path(&first)).await.status, 202);
    over(&served, &first).await;
    let second = begin(&served, next).await;
    assert_eq!(over(&served, &second).await["text"], "Here again.");
    let asked = model.last_request();
    assert_eq!(asked.last_user_text(), "Hi\n\nHello?");
}

/// A call key sees, follows, cancels and resumes its own runs; an admin all of them.
#[tokio::test]
async fn runs_and_sessions_belong_to_their_callers() {
    let model = ModelServer::openai([
        Step::text("Mine."),
        Step::silence(),
        Step::text("Mine again."),
        Step::text("The boss's."),
    ]);
    let keys = [("boss", Scope::Admin), ("one", Scope::Call), ("two", Scope::Call)];
    let (served, keys) = Served::with_keys(workspace(&model, ""), &keys);
    let [boss, one, two] = [&keys[0], &keys[1], &keys[2]];
    let send = async |key: &str, method: Method, path: &str, body: Value| -> Answer {
        let request = served.request_as(key, method, path);
        answer(request.header("content-type", "application/json").body(body.to_string())).await
    };
    let get = async |key: &str, path: &str| answer(served.request_as(key, Method::GET, path)).await;
    let ids = async |key: &str| {
        let runs = get(key, RUNS).await.json()["runs"].as_array().unwrap().clone();
        runs.into_iter().map(|run| run["id"].clone()).collect::<Vec<Value>>()
    };
    let start = async |key: &str, body: Value| send(key, Method::POST, RUNS, body).await;

    let first = start(one, json!({"input": "Hi"})).await.json();
    assert_eq!(first["caller"], "key:one");
    over(&served, &first).await;
    let going_on = json!({"input": "Wait", "session": first["session"]});
    let second = start(one, going_on.clone()).await.json();
    crate::until(|| model.requests().len() == 2).await;
    assert_eq!(ids(one).await, [first["id"].clone(), second["id"].clone()]);
    assert_eq!(ids(boss).await, ids(one).await);
    assert_eq!(ids(two).await, [] as [Value; 0]);
    for run in [&first, &second] {
        let path = path(run);
        assert_eq!(get(two, &path).await.status, 404);
        assert_eq!(get(two, &format!("{path}/events")).await.status, 404);
        assert_eq!(send(two, Method::DELETE, &path, json!({})).await.status, 404);
    }
    // Not 409, which would reveal that the conversation exists.
    assert_eq!(start(two, going_on.clone()).await.status, 404);
    assert_eq!(start(one, going_on.clone()).await.status, 409);
    assert_eq!(get(one, &path(&second)).await.json()["status"], "running");
    assert_eq!(send(boss, Method::DELETE, &path(&second), json!({})).await.status, 202);
    over(&served, &second).await;

    assert_eq!(start(two, going_on.clone()).await.status, 404);
    let third = start(one, going_on.clone()).await.json();
    assert_eq!(over(&served, &third).await["text"], "Mine again.");
    let fourth = start(boss, going_on).await.json();
    assert_eq!(over(&served, &fourth).await["text"], "The boss's.");
    // The conversation stays its owner's; the run is the admin's.
    assert_eq!(get(one, &path(&fourth)).await.status, 404);
    let events = served.request_as(boss, Method::GET, &format!("{}/events", path(&third)));
    assert_eq!(Events::of(events).await.rest().await.last().unwrap().data["text"], "Mine again.");
    assert_eq!(model.requests().len(), 4);
}

/// A key for one profile of the gateway begins no runs, for these have every tool.
#[tokio::test]
async fn a_key_for_a_profile_begins_no_runs() {
    let model = ModelServer::openai([]);
    let workspace = workspace(&model, "profiles: {small: {tools: [greet]}}\n");
    let args =
        ["--json", "keys", "create", "--scope", "call", "--name", "bound", "--profile", "small"];
    let created = haft(&workspace, &args).run();
    assert_eq!(created.code, 0, "{}", created.stderr);
    let created: Value = serde_json::from_str(&created.stdout).unwrap();
    let key = created["key"].as_str().unwrap();
    let served = Served::open(workspace);
    for method in [Method::POST, Method::GET] {
        let request = served.request_as(key, method, RUNS);
        let request = request.header("content-type", "application/json").body(r#"{"input": "Hi"}"#);
        assert_eq!(answer(request).await.status, 403);
    }
    let nobody = reqwest::Client::new().post(format!("{}{RUNS}", served.url));
    assert_eq!(answer(nobody.body(r#"{"input": "Hi"}"#)).await.status, 401);
    assert_eq!(model.requests().len(), 0);
}
