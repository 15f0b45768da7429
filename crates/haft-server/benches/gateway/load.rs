//! The load, the same for every contender.

use std::cell::Cell;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use testkit::times::Times;
use tokio::time::sleep;

use super::Failure;
use super::contenders::{Contender, Reach};
use super::http::{Address, Connection};
use super::messages::{self, Names};
use super::pipe::Pipe;
use super::process::{Memory, Process};

/// Calls in flight at once.
pub(crate) const IN_FLIGHT: usize = 64;
/// Time limit of a contender for its first answer.
const START_TIMEOUT: Duration = Duration::from_mins(1);
/// Poll interval while a contender starts.
const ASK_EVERY: Duration = Duration::from_millis(2);
/// Pause of a contender before its memory is read.
const REST: Duration = Duration::from_millis(300);

/// The amount of work to measure.
pub(crate) struct Effort {
    pub(crate) rounds: usize,
    pub(crate) warm_up: usize,
    pub(crate) one_at_a_time: usize,
    pub(crate) flood: Duration,
    pub(crate) blobs: usize,
    /// Time limit of one measurement if a contender is slow; the calls done by then count.
    pub(crate) patience: Duration,
}

/// The measurements of one round.
pub(crate) struct Figures {
    pub(crate) start: Duration,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) per_second: f64,
    /// The processor time of the contender's own process for each call in flight with others.
    pub(crate) cpu_micros: f64,
    pub(crate) blob: Duration,
    pub(crate) idle: Memory,
    pub(crate) after_load: Memory,
}

/// Starts a contender, measures it and ends it.
pub(crate) async fn measure(contender: &Contender, effort: &Effort) -> Result<Figures, Failure> {
    let (command, reach) = contender.launch()?;
    let started = Instant::now();
    let mut process = Process::start(command)?;
    let mut client = match reach {
        Reach::Pipe => Client::Pipe(Pipe::open(&mut process.child)?),
        Reach::Http(address) => Client::Http(reach_http(&address, &mut process, started).await?),
    };
    client.echo().await?;
    let start = started.elapsed();
    sleep(REST).await;
    let idle = process.memory();
    for _ in 0..effort.warm_up {
        client.echo().await?;
    }
    let mut times = Vec::with_capacity(effort.one_at_a_time);
    let begun = Instant::now();
    while times.len() < effort.one_at_a_time && begun.elapsed() < effort.patience {
        let sent = Instant::now();
        client.echo().await?;
        times.push(sent.elapsed());
    }
    let times = Times::new(times);
    client.flood(effort.flood / 4).await?;
    let (begun, cpu) = (Instant::now(), process.cpu());
    let calls = client.flood(effort.flood).await?;
    let (took, cpu) = (begun.elapsed(), process.cpu().saturating_sub(cpu));
    let mut blobs = Vec::with_capacity(effort.blobs);
    let begun = Instant::now();
    while blobs.len() < effort.blobs && begun.elapsed() < effort.patience {
        let sent = Instant::now();
        client.blob().await?;
        blobs.push(sent.elapsed());
    }
    sleep(REST).await;
    Ok(Figures {
        start,
        p50: times.median(),
        p99: times.percentile(99),
        per_second: calls / took.as_secs_f64(),
        cpu_micros: cpu.as_secs_f64() * 1e6 / calls.max(1.0),
        blob: Times::new(blobs).median(),
        idle,
        after_load: process.memory(),
    })
}

enum Client {
    Pipe(Pipe),
    Http(Http),
}

impl Client {
    async fn echo(&mut self) -> Result<(), Failure> {
        match self {
            Self::Pipe(pipe) => pipe.echo(),
            Self::Http(http) => http.first.echo(http.next.take_one(), &http.names.echo).await,
        }
    }

    async fn blob(&mut self) -> Result<(), Failure> {
        match self {
            Self::Pipe(pipe) => pipe.blob(),
            Self::Http(http) => http.first.blob(http.next.take_one(), &http.names.blob).await,
        }
    }

    /// Keeps calls in flight for a time and counts the answers.
    async fn flood(&mut self, time: Duration) -> Result<f64, Failure> {
        let until = Instant::now() + time;
        match self {
            Self::Pipe(pipe) => pipe.flood(until),
            Self::Http(http) => http.flood(until).await,
        }
    }
}

struct Http {
    address: Address,
    session: Option<String>,
    first: Connection,
    names: Names,
    next: Ids,
}

struct Ids(Cell<u64>);

impl Ids {
    fn take_one(&self) -> u64 {
        self.0.replace(self.0.get() + 1)
    }
}

impl Http {
    async fn open(address: &Address) -> Result<Self, Failure> {
        let next = Ids(Cell::new(1));
        let mut greeted = Connection::open(address, None).await?;
        let session = greeted.begin(next.take_one()).await?;
        let mut first = Connection::open(address, session.as_deref()).await?;
        if session.is_some() {
            first.tell(messages::INITIALIZED).await?;
        }
        let names = Names::find(&first.list(next.take_one()).await?)?;
        Ok(Self { address: address.clone(), session, first, names, next })
    }

    async fn flood(&mut self, until: Instant) -> Result<f64, Failure> {
        let answers = self.call_at_once(until).await?;
        // Servers close what was idle for as long.
        self.first = Connection::open(&self.address, self.session.as_deref()).await?;
        Ok(answers)
    }

    async fn call_at_once(&self, until: Instant) -> Result<f64, Failure> {
        let answers = Cell::new(0.0);
        let callers = (0..IN_FLIGHT).map(|_| async {
            let mut own = Connection::open(&self.address, self.session.as_deref()).await?;
            while Instant::now() < until {
                own.echo(self.next.take_one(), &self.names.echo).await?;
                answers.set(answers.get() + 1.0);
            }
            Ok::<(), Failure>(())
        });
        try_join_all(callers).await?;
        Ok(answers.get())
    }
}

/// Asks until it answers.
async fn reach_http(
    address: &Address,
    process: &mut Process,
    started: Instant,
) -> Result<Http, Failure> {
    loop {
        let error = match Http::open(address).await {
            Ok(http) => return Ok(http),
            Err(error) => error,
        };
        if let Some(status) = process.ended() {
            return Err(format!("it ended with {status}").into());
        }
        if started.elapsed() > START_TIMEOUT {
            return Err(format!("no answer within {START_TIMEOUT:?}: {error}").into());
        }
        sleep(ASK_EVERY).await;
    }
}
