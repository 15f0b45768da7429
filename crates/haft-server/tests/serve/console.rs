//! The web console over HTTP: its page, its sessions, and the keys that it manages.

use haft_server::keys::Scope;
use reqwest::{Method, redirect};
use serde_json::{Value, json};

use crate::faults::until;
use crate::served::{Answer, Served, answer, toolbox};

const SESSION: &str = "/api/v1/session";
const KEYS: &str = "/api/v1/keys";

/// The cookie of an answer, as a browser sends it back.
fn cookie(answer: &Answer) -> String {
    answer.header("set-cookie").split(';').next().unwrap().to_owned()
}

/// A request with a session cookie and no key.
async fn by_cookie(served: &Served, cookie: &str, method: Method, path: &str) -> Answer {
    let request = reqwest::Client::new().request(method, format!("{}{path}", served.url));
    answer(request.header("cookie", cookie)).await
}

async fn sign_in(served: &Served, key: &str) -> String {
    let opened = answer(served.request_as(key, Method::POST, SESSION)).await;
    assert_eq!(opened.status, 200, "{}", opened.text);
    let header = opened.header("set-cookie");
    assert!(header.contains("HttpOnly") && header.contains("SameSite=Strict"), "{header}");
    cookie(&opened)
}

/// The address of a page that a person types leads to the page; programs receive a 404.
#[tokio::test]
async fn a_typed_address_leads_to_its_page() {
    let served = Served::open(toolbox());
    let browser = reqwest::Client::builder().redirect(redirect::Policy::none()).build().unwrap();
    for path in ["/chat", "/servers/a%2Fb", "/log?status=error", "/inbox"] {
        let address = format!("{}{path}", served.url);
        let led = answer(browser.get(&address).header("accept", "text/html,*/*")).await;
        assert_eq!((led.status, led.header("location")), (303, &*format!("/#{path}")));
        let program = answer(browser.get(&address).header("accept", "application/json")).await;
        assert_eq!((program.status, &program.json()["docs"]), (404, &json!("/api/docs")));
    }
}

/// Browsers receive the page with a policy that allows its own files only; programs receive an index.
#[tokio::test]
async fn the_page_is_for_browsers_and_the_index_for_programs() {
    let served = Served::open(toolbox());
    let client = reqwest::Client::new();
    let page = answer(client.get(&served.url).header("accept", "text/html,*/*")).await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(page.text.contains("<div id=\"root\">"), "{}", page.text);
    let script = page.text.split("src=\"/").nth(1).unwrap().split('"').next().unwrap();
    let script = answer(client.get(format!("{}/{script}", served.url))).await;
    assert_eq!(script.status, 200);
    assert!(script.header("cache-control").contains("immutable"));
    assert_eq!(answer(client.get(format!("{}/assets/none.js", served.url))).await.status, 404);
    let index = answer(client.get(&served.url)).await.json();
    assert_eq!((&index["name"], &index["api"]), (&json!("haft"), &json!("/api/v1")));
}

/// A cookie stands for its key: it reads, changes only with the console's header, and ends with the key.
#[tokio::test]
async fn a_session_acts_for_its_key_and_ends_with_it() {
    let (served, keys) =
        Served::with_keys(toolbox(), &[("me", Scope::Admin), ("spare", Scope::Admin)]);
    let cookie = sign_in(&served, &keys[0]).await;
    let session = by_cookie(&served, &cookie, Method::GET, SESSION).await.json();
    assert_eq!((&session["name"], &session["scope"]), (&json!("key:me"), &json!("admin")));
    let refused = by_cookie(&served, &cookie, Method::POST, "/api/v1/reload").await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    let client = reqwest::Client::new();
    let change = client.post(format!("{}/api/v1/reload", served.url)).header("cookie", &cookie);
    assert_eq!(answer(change.header("x-haft-console", "1")).await.status, 200);
    let forged = by_cookie(&served, "haft_session=AAAA", Method::GET, SESSION).await;
    assert_eq!(forged.status, 401);
    let revoked = answer(served.request_as(&keys[1], Method::DELETE, "/api/v1/keys/me")).await;
    assert_eq!(revoked.status, 204, "{}", revoked.text);
    until("the session ends with its key", async || {
        (by_cookie(&served, &cookie, Method::GET, SESSION).await.status == 401).then_some(())
    })
    .await;
}

/// A link signs in once.
#[tokio::test]
async fn a_link_signs_in_once() {
    let (served, keys) = Served::with_keys(toolbox(), &[("me", Scope::Admin)]);
    let made = answer(served.request_as(&keys[0], Method::POST, "/api/v1/session/link")).await;
    let path = made.json()["path"].as_str().unwrap().to_owned();
    let no_redirect = reqwest::redirect::Policy::none();
    let client = reqwest::Client::builder().redirect(no_redirect).build().unwrap();
    let followed = answer(client.get(format!("{}{path}", served.url))).await;
    assert_eq!((followed.status, followed.header("location")), (303, "/"));
    let session = by_cookie(&served, &cookie(&followed), Method::GET, SESSION).await;
    assert_eq!(session.json()["name"], "key:me");
    assert_eq!(answer(client.get(format!("{}{path}", served.url))).await.status, 401);
    let closed = client.delete(format!("{}{SESSION}", served.url));
    let closed = closed.header("cookie", cookie(&followed)).header("x-haft-console", "1");
    assert_eq!(answer(closed).await.status, 204);
    assert_eq!(by_cookie(&served, &cookie(&followed), Method::GET, SESSION).await.status, 401);
}

/// Admins create, list and revoke keys; a key's text is in no list.
#[tokio::test]
async fn admins_manage_keys() {
    let (served, keys) =
        Served::with_keys(toolbox(), &[("me", Scope::Admin), ("bot", Scope::Call)]);
    let send = async |key: &str, method: Method, path: &str, body: Value| {
        answer(served.request_as(key, method, path).json(&body)).await
    };
    let created = send(&keys[0], Method::POST, KEYS, json!({"name": "nightly"})).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let text = created.json()["key"].as_str().unwrap().to_owned();
    assert!(text.starts_with("haft_call_"));
    let listed = answer(served.request_as(&keys[0], Method::GET, KEYS)).await;
    assert!(!listed.text.contains(&text), "{}", listed.text);
    let names: Vec<Value> =
        listed.json()["keys"].as_array().unwrap().iter().map(|key| key["name"].clone()).collect();
    assert_eq!(names, ["me", "bot", "nightly"]);
    let mistakes = [
        (json!({"name": "nightly"}), 409),
        (json!({"name": "no such name!"}), 422),
        (json!({"name": "x", "profile": "none"}), 422),
        (json!({"name": "x", "scope": "admin", "profile": "none"}), 422),
    ];
    for (body, status) in mistakes {
        let refused = send(&keys[0], Method::POST, KEYS, body).await;
        assert_eq!(refused.status, status, "{}", refused.text);
    }
    assert_eq!(answer(served.request_as(&keys[1], Method::GET, KEYS)).await.status, 403);
    let unknown = answer(served.request_as(&keys[0], Method::DELETE, "/api/v1/keys/nigthly")).await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.text.contains("did you mean `nightly`"), "{}", unknown.text);
}
