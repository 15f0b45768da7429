//! Facts that the server recorded, for the tool `stats` and for a file that tests read.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};

use crate::scenario::Scenario;

/// Every event of this process, in order.
#[derive(Debug)]
pub struct Facts {
    events: Mutex<Vec<Value>>,
    file: Option<File>,
}

impl Facts {
    /// Opens the scenario's file, which other processes may be writing too, and notes the start.
    pub fn open(scenario: &Scenario) -> std::io::Result<Self> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        let file = scenario.facts.as_ref().map(open).transpose()?;
        let facts = Self { events: Mutex::default(), file };
        let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let env = std::env::vars_os().map(|(name, value)| (lossy(name), json!(lossy(value))));
        facts.note(
            "start",
            json!({
                "argv": std::env::args_os().map(lossy).collect::<Vec<_>>(),
                "cwd": std::env::current_dir().ok(),
                "env": env.collect::<Map<_, _>>(),
            }),
        );
        Ok(facts)
    }

    /// Notes an event. `details` is an object.
    pub fn note(&self, event: &str, details: Value) {
        let mut fact = Map::new();
        fact.insert("event".to_owned(), json!(event));
        fact.insert("at_ms".to_owned(), json!(now_ms()));
        fact.insert("pid".to_owned(), json!(std::process::id()));
        if let Value::Object(details) = details {
            fact.extend(details);
        }
        let fact = Value::Object(fact);
        // One write per line, so that lines of several processes never mix.
        if let Some(mut file) = self.file.as_ref() {
            drop(file.write_all(format!("{fact}\n").as_bytes()));
        }
        self.events().push(fact);
    }

    /// Notes a message that came in, whatever becomes of it.
    pub fn received(&self, message: &Value) {
        self.note("message", json!({ "message": message }));
    }

    /// Notes the end of the process and ends it.
    pub fn exit(&self, code: i32) -> ! {
        self.note("exit", json!({ "code": code }));
        std::process::exit(code)
    }

    /// Everything seen so far, in the form `stats` answers with.
    pub fn stats(&self, in_flight_max: u64) -> Value {
        let events = self.events();
        let of =
            |kind: &str| events.iter().filter(|fact| fact["event"] == kind).collect::<Vec<_>>();
        let messages = of("message");
        let messages = || messages.iter().map(|fact| &fact["message"]);
        let with = |method: &str| messages().filter(|message| message["method"] == method).count();
        let request = |message: &Value| {
            let method = message.get("method")?;
            Some(json!({ "method": method, "params": message["params"] }))
        };
        let cancelled = messages().filter(|message| message["method"] == "notifications/cancelled");
        let http = of("http");
        let deleted = http.iter().filter(|fact| fact["method"] == "DELETE");
        let start = &events[0];
        json!({
            "initialize": with("initialize"),
            "discover": with("server/discover"),
            "connections": of("connection").len(),
            "in_flight_max": in_flight_max,
            "requests": messages().filter_map(request).collect::<Vec<_>>(),
            "cancelled": cancelled.map(|message| &message["params"]).collect::<Vec<_>>(),
            "http": http,
            "deleted": deleted.count(),
            "argv": start["argv"],
            "cwd": start["cwd"],
            "env": start["env"],
            "pid": start["pid"],
        })
    }

    fn events(&self) -> MutexGuard<'_, Vec<Value>> {
        self.events.lock()
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
