//! Access rights of keys.

use haft_server::keys::{KeyFile, Keyring, Scope};
use haft_server::serve::{Listener, ListenerSettings};
use reqwest::Method;
use testkit::Workspace;
use tokio_util::sync::CancellationToken;

use crate::{Service, client, setup, until};

impl Service {
    /// The status of a request with these headers.
    async fn ask(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> reqwest::Response {
        let mut request = client().build().unwrap().request(method, self.url(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap()
    }

    async fn status(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> u16 {
        self.ask(method, path, headers).await.status().as_u16()
    }
}

/// Proves S2-Q-11 where there is no key yet: reading and calling are open on this machine, writes are
/// refused with the command that creates a key. No text is a key by default.
#[tokio::test]
async fn without_a_key_writes_are_refused() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    assert_eq!(service.status(Method::GET, "/tools", &[]).await, 200);
    let whoami = service.ask(Method::GET, "/whoami", &[]).await;
    assert_eq!(whoami.text().await.unwrap(), "local call");
    for key in ["", "admin", "changeme", "secret", "haft", "haft_admin_"] {
        let answer = service.ask(Method::POST, "/tools", &[("x-api-key", key)]).await;
        assert_eq!(answer.status().as_u16(), 401, "{key}");
        assert!(answer.headers().contains_key("www-authenticate"));
        let text = answer.text().await.unwrap();
        assert!(text.contains("haft keys create --scope admin --name me"), "{text}");
    }
}

/// A new key works at once, also the first one and one that is created right after a read of the file.
#[tokio::test]
async fn a_new_key_is_known_at_once() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    for (name, scope) in [("first", Scope::Admin), ("second", Scope::Admin)] {
        // The server has just looked.
        let _ = service.status(Method::GET, "/tools", &[]).await;
        let (key, _) = service.keys.create(name, scope).unwrap();
        let headers = [("x-api-key", key.expose())];
        assert_ne!(service.status(Method::POST, "/tools", &headers).await, 401, "{name}");
    }
}

/// Proves S2-Q-11: writes need a key in `X-API-Key`; a missing or wrong one is 401, a call key 403.
/// Reading needs a key too as soon as there is one.
#[tokio::test]
async fn with_a_key_every_request_needs_one() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    let admin = service.key("me", Scope::Admin).await;
    let call = service.key("agent", Scope::Call).await;
    let bearer = format!("bearer {admin}");
    let short = &admin[..20];
    let other = admin.replacen("haft_admin_", "haft_call_", 1);
    let (delete, get, post) = (Method::DELETE, Method::GET, Method::POST);
    for (method, path, headers, expected) in [
        (&get, "/healthz", &[][..], 200),
        (&get, "/tools", &[], 401),
        (&get, "/nothing", &[], 401),
        (&post, "/tools", &[], 401),
        (&get, "/tools", &[("x-api-key", call.as_str())], 200),
        (&get, "/whoami", &[("x-api-key", &call)], 200),
        (&post, "/tools", &[("x-api-key", &call)], 403),
        (&delete, "/tools/x", &[("x-api-key", &call)], 403),
        (&post, "/tools", &[("x-api-key", &admin)], 200),
        (&delete, "/tools/x", &[("authorization", &bearer)], 200),
        (&post, "/tools", &[("authorization", &bearer), ("x-api-key", &admin)], 200),
        (&post, "/tools", &[("authorization", &bearer), ("x-api-key", &call)], 401),
        (&post, "/tools", &[("x-api-key", &admin), ("x-api-key", &call)], 401),
        (&post, "/tools", &[("authorization", "Basic YTpi")], 401),
        (&post, "/tools", &[("x-api-key", short)], 401),
        (&post, "/tools", &[("x-api-key", &other)], 401),
    ] {
        let answer = service.ask(method.clone(), path, headers).await;
        assert_eq!(answer.status().as_u16(), expected, "{method} {path} {headers:?}");
        assert_eq!(
            answer.headers().contains_key("www-authenticate"),
            matches!(expected, 401 | 403)
        );
    }
    let whoami = service.ask(Method::GET, "/whoami", &[("x-api-key", &admin)]).await;
    assert_eq!(whoami.text().await.unwrap(), "key:me admin");
}

/// Two keys of one scope work at once; a revoked one stops while the server runs, and revoking or
/// deleting all of them opens nothing.
#[tokio::test]
async fn revoked_keys_stop_and_nothing_opens() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    let old = service.key("old", Scope::Admin).await;
    let new = service.key("new", Scope::Admin).await;
    assert_eq!(service.status(Method::POST, "/tools", &[("x-api-key", &old)]).await, 200);
    service.keys.revoke("old").unwrap();
    until(|| service.ring.verify(&old).is_none()).await;
    assert_eq!(service.status(Method::POST, "/tools", &[("x-api-key", &old)]).await, 401);
    assert_eq!(service.status(Method::POST, "/tools", &[("x-api-key", &new)]).await, 200);
    std::fs::remove_file(service.keys.path()).unwrap();
    until(|| service.ring.is_empty()).await;
    assert_eq!(service.status(Method::GET, "/tools", &[("x-api-key", &new)]).await, 401);
    assert_eq!(service.status(Method::GET, "/tools", &[]).await, 401);
}

/// An unreadable file changes nothing and is reported; a fixed one counts.
#[tokio::test]
async fn a_broken_file_keeps_the_last_good_keys() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    let key = service.key("me", Scope::Admin).await;
    let good = std::fs::read(service.keys.path()).unwrap();
    std::fs::write(service.keys.path(), "{").unwrap();
    until(|| service.ring.last_error().is_some()).await;
    assert_eq!(service.status(Method::POST, "/tools", &[("x-api-key", &key)]).await, 200);
    assert_eq!(service.status(Method::GET, "/tools", &[]).await, 401);
    std::fs::write(service.keys.path(), good).unwrap();
    until(|| service.ring.last_error().is_none()).await;
    assert!(Keyring::open(KeyFile::new(workspace.write("bad.json", "{"))).is_err());
}

/// Guessing is slowed down for each address, and never for a right key.
#[tokio::test]
async fn wrong_keys_are_limited() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    let key = service.key("me", Scope::Call).await;
    let mut statuses = Vec::new();
    for _ in 0..12 {
        let answer = service.ask(Method::GET, "/tools", &[("x-api-key", "wrong")]).await;
        let wait = answer.headers().get("retry-after").cloned();
        let wait: Option<u64> = wait.map(|it| it.to_str().unwrap().parse().unwrap());
        assert_eq!(wait.is_some_and(|secs| (1..=60).contains(&secs)), answer.status() == 429);
        statuses.push(answer.status().as_u16());
    }
    assert_eq!(statuses, [vec![401; 10], vec![429; 2]].concat());
    assert_eq!(service.status(Method::GET, "/tools", &[("x-api-key", &key)]).await, 200);
    assert_eq!(service.status(Method::GET, "/tools", &[]).await, 401);
}

/// Beyond this machine only with a key.
#[tokio::test]
async fn listening_beyond_loopback_needs_a_key() {
    let workspace = Workspace::new();
    let file = KeyFile::new(workspace.path().join("keys.json"));
    for address in ["0.0.0.0:0", "[::]:0"] {
        let ring = Keyring::open(file.clone()).unwrap();
        let settings = ListenerSettings::new(address.parse().unwrap());
        let error = Listener::bind(settings, &ring).await.unwrap_err();
        assert_eq!(
            format!("{error}\n{}", error.remedy()),
            format!(
                "will not listen on `{address}`, which others can reach, without a key\n\
                 create a key with `haft keys create --scope admin --name me`, or listen on \
                 `127.0.0.1`"
            )
        );
    }
    file.create("agent", Scope::Call).unwrap();
    let ring = Keyring::open(file).unwrap();
    let settings = ListenerSettings::new("0.0.0.0:0".parse().unwrap());
    assert!(Listener::bind(settings, &ring).await.is_ok());
}

/// When a key was used is written down at the end at the latest, for `haft keys list`.
#[tokio::test]
async fn the_last_use_is_written_down() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    let key = service.key("me", Scope::Call).await;
    service.keys.create("unused", Scope::Call).unwrap();
    assert_eq!(service.status(Method::GET, "/tools", &[("x-api-key", &key)]).await, 200);
    let stop = CancellationToken::new();
    stop.cancel();
    std::sync::Arc::clone(&service.ring).note_use(stop).await;
    let used = service.keys.last_used(&service.keys.list().unwrap());
    assert_eq!(used.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
}
