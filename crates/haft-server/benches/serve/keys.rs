//! Rates of many keys over HTTP: each key gets its own, whatever the others do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::config::call_limits::{CallLimits, Rate};
use haft_server::keys::{KeyFile, NewKey, Scope};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinSet;

use super::Failure;
use super::host::{Hosted, KEYS, Server};

const KEYS_COUNT: u32 = 100;
const GROUP: usize = 10;
const CALLERS: usize = 64;
const TIME: Duration = Duration::from_secs(30);
const BODY: &str = r#"{"arguments":{"city":"Seoul","days":3}}"#;

/// A key that always has another call to make.
struct LimitedKey {
    secret: String,
    rate: Rate,
}

/// The keys by the time at which each calls again.
type Due = Mutex<BinaryHeap<Reverse<(Instant, usize)>>>;

pub(crate) async fn measure(folder: &Path) -> Result<(), Failure> {
    println!("\n# {KEYS_COUNT} keys with different rates, {CALLERS} parallel callers, {TIME:?}");
    let folder = folder.join("keys");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(
        folder.join("haft.yaml"),
        "defaults: {max_concurrent: 64}\ntools: [{name: noop, max_instances: 64}]\n",
    )?;
    let keys: Result<Vec<LimitedKey>, Failure> =
        (0..KEYS_COUNT).map(|at| create(&folder, at)).collect();
    let keys = Arc::new(keys?);
    let haft = Hosted::start(Server::Haft(folder))?;
    // The client wants to know with what it would do TLS; this one fails only where that is known.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build()?;
    let url = format!("{}/api/v1/tools/noop/call", haft.url);
    let start = Instant::now();
    let due: Arc<Due> =
        Arc::new(Mutex::new((0..keys.len()).map(|key| Reverse((start, key))).collect()));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (client, url) = (client.clone(), url.clone());
        let (keys, due) = (Arc::clone(&keys), Arc::clone(&due));
        callers.spawn(async move {
            call_until(&client, &url, &keys, &due, start + TIME).await.map_err(|it| it.to_string())
        });
    }
    let mut granted = vec![0_u32; keys.len()];
    while let Some(made) = callers.join_next().await {
        for key in made?? {
            granted[key] += 1;
        }
    }
    print(&keys, &granted, start.elapsed().min(TIME));
    Ok(())
}

fn create(folder: &Path, at: u32) -> Result<LimitedKey, Failure> {
    let text = format!("{}/min", 120 + 2 * at);
    let limits = CallLimits::parse(Some(&text), None, None)?;
    let new = NewKey { limits, ..NewKey::new(&format!("key{at}"), Scope::Call) };
    let (key, _) = KeyFile::new(folder.join(KEYS)).create_with(new)?;
    Ok(LimitedKey { secret: key.expose().to_owned(), rate: Rate::parse(&text)? })
}

/// Calls with whichever key is due, and returns the keys of the calls that ran.
async fn call_until(
    client: &reqwest::Client,
    url: &str,
    keys: &[LimitedKey],
    due: &Due,
    end: Instant,
) -> Result<Vec<usize>, Failure> {
    let mut granted = Vec::new();
    loop {
        let next = due.lock().pop();
        // Every key is in the hands of another caller.
        let Some(Reverse((at, key))) = next else {
            if Instant::now() >= end {
                return Ok(granted);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        };
        if at >= end {
            return Ok(granted);
        }
        tokio::time::sleep_until(at.into()).await;
        let request = client.post(url).header("x-api-key", &keys[key].secret).body(BODY);
        let answer = request.header("content-type", "application/json").send().await?;
        let again = match answer.status().as_u16() {
            200 => {
                granted.push(key);
                Duration::ZERO
            }
            429 => {
                let body: Value = serde_json::from_str(&answer.text().await?)?;
                let wait = body["error"]["details"]["retry_after_ms"].as_u64();
                Duration::from_millis(wait.ok_or("no `retry_after_ms`")?)
            }
            status => return Err(format!("{status}: {}", answer.text().await?).into()),
        };
        due.lock().push(Reverse((Instant::now() + again, key)));
    }
}

fn print(keys: &[LimitedKey], granted: &[u32], time: Duration) {
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for (at, (keys, granted)) in keys.chunks(GROUP).zip(granted.chunks(GROUP)).enumerate() {
        let allowed: Vec<f64> = keys.iter().map(|key| allowed(key.rate, time)).collect();
        let deviations = allowed.iter().zip(granted);
        let deviations: Vec<f64> =
            deviations.map(|(allowed, granted)| f64::from(*granted) / allowed - 1.0).collect();
        let low = deviations.iter().copied().fold(f64::INFINITY, f64::min);
        let high = deviations.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (least, most) = (least.min(low), most.max(high));
        println!(
            "keys {:>2} to {:>2}, {} to {}: {} granted of {:.0} allowed; deviation {:+.1} % to {:+.1} %",
            at * GROUP,
            at * GROUP + keys.len() - 1,
            keys[0].rate,
            keys[keys.len() - 1].rate,
            granted.iter().sum::<u32>(),
            allowed.iter().sum::<f64>(),
            low * 100.0,
            high * 100.0
        );
    }
    println!(
        "largest deviation of one key: {:+.1} % and {:+.1} % (target: at least -5 %, and no key more than allowed)",
        least * 100.0,
        most * 100.0
    );
}

/// The calls of a rate in this time: its burst, and one after each interval.
fn allowed(rate: Rate, time: Duration) -> f64 {
    let burst = f64::from(rate.default_burst().get());
    burst + (time.as_secs_f64() / rate.interval().as_secs_f64()).floor()
}
