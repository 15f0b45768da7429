//! The faults of each replica so far. A check that fails asks here whether a fault explains the failure.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;

use crate::client::RunClock;

/// Time without the database from which on other replicas may count one as dead: 10 s without a heartbeat, of which there is
/// one every 2 s, and a poll before it.
const DEAD_AFTER: Duration = Duration::from_millis(7_400);
/// Time until a replica that was cut off has reconnected, and all others know it again.
const KNOWN_AGAIN_MAX: Duration = Duration::from_secs(8);
/// Time until every replica that reaches the database knows a new one.
const KNOWN_MAX: Duration = Duration::from_secs(4);
/// Time until connections that a fault broke are noticed.
const NOTICED_MAX: Duration = Duration::from_secs(1);

/// A fault of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Its process was killed; a later one has another incarnation.
    Killed,
    /// Its process stands still.
    Suspended,
    /// It does not reach the database.
    Database,
    /// Other replicas do not reach it.
    Peers,
    /// It is new, and a replica without the database does not know it.
    New,
}

/// A process of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) replica: usize,
    incarnation: u32,
}

#[derive(Debug, Clone, Copy)]
struct Interval {
    replica: usize,
    trouble: Trouble,
    from: Duration,
    to: Option<Duration>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    incarnation: u32,
    started: Duration,
}

/// The faults of all replicas.
#[derive(Debug)]
pub(crate) struct Health {
    clock: RunClock,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    replicas: Vec<State>,
    numbers: BTreeMap<u16, Owner>,
    intervals: Vec<Interval>,
}

impl Health {
    pub(crate) fn new(replicas: usize, clock: RunClock) -> Self {
        let replicas = vec![State::default(); replicas];
        Self { clock, inner: Mutex::new(Inner { replicas, ..Inner::default() }) }
    }

    /// The clock of the run.
    pub(crate) fn clock(&self) -> RunClock {
        self.clock
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Notes the process that a replica now is, with its number in ids.
    pub(crate) fn started(&self, replica: usize, number: u16) {
        self.end(replica, Trouble::Killed);
        let mut inner = self.inner.lock();
        let incarnation = inner.replicas[replica].incarnation;
        inner.replicas[replica].started = self.now();
        inner.numbers.insert(number, Owner { replica, incarnation });
    }

    pub(crate) fn begin(&self, replica: usize, trouble: Trouble) {
        let from = self.now();
        let mut inner = self.inner.lock();
        if trouble == Trouble::Killed {
            inner.replicas[replica].incarnation += 1;
        }
        inner.intervals.push(Interval { replica, trouble, from, to: None });
    }

    pub(crate) fn end(&self, replica: usize, trouble: Trouble) {
        let now = self.now();
        let mut inner = self.inner.lock();
        let open = inner.intervals.iter_mut().rev();
        let mut open = open.filter(|it| it.replica == replica && it.trouble == trouble);
        if let Some(open) = open.next() {
            open.to = Some(now);
        }
    }

    /// The process that a replica is now.
    pub(crate) fn current(&self, replica: usize) -> Owner {
        Owner { replica, incarnation: self.inner.lock().replicas[replica].incarnation }
    }

    /// The process with a number.
    pub(crate) fn owner(&self, number: u16) -> Option<Owner> {
        self.inner.lock().numbers.get(&number).copied()
    }

    /// The process with a number. One that has just started may serve before it is noted.
    pub(crate) async fn owner_soon(&self, number: u16) -> Option<Owner> {
        let end = self.now() + KNOWN_MAX;
        loop {
            let owner = self.owner(number);
            if owner.is_some() || self.now() > end {
                return owner;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The process that an id ends with, such as `...7c02`.
    pub(crate) fn owner_of_id(&self, id: &str) -> Option<Owner> {
        let digits = id.get(id.len().checked_sub(4)?..)?;
        self.owner(u16::from_str_radix(digits, 16).ok()?)
    }

    /// The fault that explains why state of a process could not be reached between `from` and now. Without one it is
    /// reachable, and an error that says otherwise is wrong.
    pub(crate) fn explains(&self, owner: Owner, from: Duration) -> Option<Trouble> {
        let inner = self.inner.lock();
        let state = inner.replicas[owner.replica];
        if state.incarnation != owner.incarnation {
            return Some(Trouble::Killed);
        }
        let now = self.now();
        let own = inner.intervals.iter().filter(|it| it.replica == owner.replica);
        let hit = own.filter(|it| it.explains(from, now)).map(|it| it.trouble).next();
        hit.or_else(|| inner.is_new(owner.replica, from, now).then_some(Trouble::New))
    }

    /// True if a process was killed since it was looked up.
    pub(crate) fn was_killed(&self, owner: Owner) -> bool {
        self.inner.lock().replicas[owner.replica].incarnation != owner.incarnation
    }

    /// True if any replica was killed between `from` and now: a connection through the balancer may have broken.
    pub(crate) fn was_any_killed(&self, from: Duration) -> bool {
        let inner = self.inner.lock();
        let killed = inner.intervals.iter().filter(|it| it.trouble == Trouble::Killed);
        killed.clone().any(|it| it.to.is_none_or(|to| to + NOTICED_MAX > from))
    }

    /// True if a replica runs and has reached the database without a fault for the given time.
    pub(crate) fn is_connected_for(&self, replica: usize, time: Duration) -> bool {
        let now = self.now();
        let inner = self.inner.lock();
        let cuts = inner.intervals.iter().filter(|it| it.replica == replica);
        let mut cuts = cuts.filter(|it| it.trouble != Trouble::Peers);
        cuts.all(|it| it.to.is_some_and(|to| to + time < now))
            && inner.replicas[replica].started + time < now
    }
}

impl Interval {
    fn explains(&self, from: Duration, now: Duration) -> bool {
        let length = self.to.unwrap_or(now).saturating_sub(self.from);
        let after = match self.trouble {
            Trouble::New => return false,
            // Before it serves again; afterwards its incarnation differs.
            Trouble::Killed => Duration::ZERO,
            Trouble::Peers => NOTICED_MAX,
            Trouble::Suspended if length < DEAD_AFTER => NOTICED_MAX,
            Trouble::Database if length < DEAD_AFTER => return false,
            Trouble::Suspended | Trouble::Database => KNOWN_AGAIN_MAX,
        };
        self.to.is_none_or(|to| to + after > from)
    }
}

impl Inner {
    /// True if another replica lost the database before it can have known this one, and may not know it yet.
    fn is_new(&self, replica: usize, from: Duration, now: Duration) -> bool {
        let started = self.replicas[replica].started;
        let is_blind = |it: &&Interval| {
            it.replica != replica && matches!(it.trouble, Trouble::Database | Trouble::Suspended)
        };
        now < started + KNOWN_MAX
            || self.intervals.iter().filter(is_blind).any(|it| {
                it.from < started + KNOWN_MAX
                    && it.to.is_none_or(|to| to > started && to + KNOWN_AGAIN_MAX > from)
            })
    }
}
