//! A stream of events, read one by one.

use serde_json::Value;

pub(crate) struct Events {
    response: reqwest::Response,
    text: String,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    /// Empty where the stream has no ids.
    pub(crate) id: String,
    pub(crate) data: Value,
}

impl Events {
    pub(crate) async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = tokio::time::timeout(testkit::DEADLINE, request.send()).await;
        let response = response.expect("an answer in time").unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// A header of the answer.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.response.headers()[name].to_str().unwrap()
    }

    /// The next event: its name and its data.
    pub(crate) async fn next(&mut self) -> (String, Value) {
        let Event { name, data, .. } = self.event().await.expect("the stream goes on");
        (name, data)
    }

    /// The next event; nothing at the end of the stream, which has to be in order.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name));
                    line.unwrap_or_default().trim().to_owned()
                };
                let (name, id, data) = (field("event:"), field("id:"), field("data:"));
                // Others are keep-alives.
                if !name.is_empty() {
                    return Some(Event { name, id, data: serde_json::from_str(&data).unwrap() });
                }
                continue;
            }
            let chunk = tokio::time::timeout(testkit::DEADLINE, self.response.chunk()).await;
            let chunk = chunk.expect("an event in time").expect("a stream that ends in order")?;
            self.text += std::str::from_utf8(&chunk).unwrap();
        }
    }

    /// Everything up to the first event of this name, that one included.
    pub(crate) async fn up_to(&mut self, name: &str) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let event = self.event().await;
            events.push(event.unwrap_or_else(|| panic!("no `{name}` in {events:?}")));
            if events.last().is_some_and(|event| event.name == name) {
                return events;
            }
        }
    }

    /// Everything up to the end.
    pub(crate) async fn rest(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        events
    }
}

/// The names of events. The number of deltas is not checked.
pub(crate) fn names(events: &[Event]) -> Vec<&str> {
    let mut names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    names.dedup_by(|one, other| one == other && *one == "text.delta");
    names
}
