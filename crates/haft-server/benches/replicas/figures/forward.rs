//! The additional time of a request that another replica answers.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::times::Times;

use super::Effort;
use super::http::Connection;
use super::service::{Replicas, Sharing};
use super::table::{Table, millis};
use crate::Failure;

pub(super) async fn measure(effort: &Effort, table: &mut Table) -> Result<(), Failure> {
    let replicas = Replicas::start(2, Sharing::All).await?;
    let [owner, other] = &replicas.services[..] else { return Err("two replicas".into()) };
    // A question that stays open: its state is at its owner only.
    let mut asking = owner.connect().await?;
    let body = json!({"arguments": {"question": "Which?"}}).to_string();
    let asked = asking.send("POST", "/api/v1/tools/request_human_input/call", &body);
    let measured = async {
        let open = async || {
            let mut connection = owner.connect().await.ok()?;
            let list = connection.send("GET", "/api/v1/inbox", "").await.ok()?.json().ok()?;
            list["items"][0]["id"].as_str().map(str::to_owned)
        };
        let id = owner.until("the question is open", open).await?;
        let path = format!("/api/v1/inbox/{id}");
        let (mut direct, mut forwarded) = (Vec::new(), Vec::new());
        let (mut to_owner, mut to_other) = (owner.connect().await?, other.connect().await?);
        for _ in 0..effort.one_at_a_time {
            direct.push(time(&mut to_owner, &path).await?);
            forwarded.push(time(&mut to_other, &path).await?);
        }
        let answer = json!({"answer": "this one"}).to_string();
        to_other.send("POST", &path, &answer).await?.checked()?;
        Ok::<_, Failure>((Times::new(direct).median(), Times::new(forwarded).median()))
    };
    let (asked, measured) = tokio::join!(asked, measured);
    let (direct, forwarded) = measured?;
    asked?.checked()?;
    let more = forwarded.saturating_sub(direct);
    let value = format!("{} ({} instead of {})", millis(more), millis(forwarded), millis(direct));
    table.add("a forwarded request, more at p50", value, "< 1 ms");
    Ok(())
}

async fn time(connection: &mut Connection, path: &str) -> Result<Duration, Failure> {
    let sent = Instant::now();
    connection.send("GET", path, "").await?.checked()?;
    Ok(sent.elapsed())
}
