//! Any order of commands, results and pauses against the machine, with a model of the connections it opens.

use proptest::prelude::*;

use super::*;
use crate::server_state::ServerState;

/// A step of the world around the machine.
#[derive(Debug, Clone)]
enum Step {
    Connect,
    Reconnect,
    ListsChanged,
    /// The connection of the latest attempt is lost, or that of an earlier one.
    Lost {
        is_stale: bool,
    },
    Stop,
    Finish(Outcome),
    Pass(Duration),
}

/// The result of a job, as far as it fits the job.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    is_success: bool,
    is_transient: bool,
    is_session_expired: bool,
    retry_after_secs: Option<u64>,
}

fn outcome() -> impl Strategy<Value = Outcome> {
    (any::<bool>(), any::<bool>(), any::<bool>(), proptest::option::of(0..100_u64)).prop_map(
        |(is_success, is_transient, is_session_expired, retry_after_secs)| Outcome {
            is_success,
            is_transient,
            is_session_expired,
            retry_after_secs,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Connect),
        2 => Just(Step::Reconnect),
        3 => Just(Step::ListsChanged),
        4 => any::<bool>().prop_map(|is_stale| Step::Lost { is_stale }),
        12 => outcome().prop_map(Step::Finish),
        8 => (0..70_000_u64).prop_map(|millis| Step::Pass(Duration::from_millis(millis))),
    ]
}

fn steps_with_stop() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(prop_oneof![30 => step(), 1 => Just(Step::Stop)], 0..80)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), 0..80)
}

/// A caller that waits as `Connection` does: the value that it has to see exceeded.
#[derive(Debug)]
enum Waiter {
    Client { after: u64 },
    Reconnect { ticket: u64 },
    Lists { after: u64, attempt: u64 },
}

/// The machine, a clock, and what a supervisor would have open.
struct World {
    machine: Machine<u64, u64>,
    now: Instant,
    running: Option<Job>,
    /// The connections and half-made connections that exist.
    open: usize,
    tickets: u64,
    waiters: Vec<Waiter>,
    lists: u64,
}

impl World {
    fn new(retries_max: u32) -> Self {
        let policy = ReconnectPolicy {
            retries_max,
            base: Duration::from_secs(1),
            factor: 2.0,
            pause_max: Duration::from_mins(1),
        };
        Self {
            machine: Machine::new(policy, 7, Status::new(None)),
            now: Instant::now(),
            running: None,
            open: 0,
            tickets: 0,
            waiters: Vec::new(),
            lists: 0,
        }
    }

    fn apply(&mut self, event: Event<u64, u64>) {
        let before = self.machine.status().clone();
        let was_stopped = matches!(before.link, Link::Stopped);
        self.machine.apply(event, self.now);
        let after = self.machine.status();
        assert!(after.rounds >= before.rounds && after.list_reads >= before.list_reads);
        assert!(after.reconnects >= before.reconnects && after.reconnects <= self.tickets);
        assert!(!was_stopped || matches!(after.link, Link::Stopped), "a stop is for good");
        self.answer();
        self.start_job();
    }

    /// Removes the waiters that the published state answers.
    fn answer(&mut self) {
        let status = self.machine.status();
        if let Link::Stopped = status.link {
            return self.waiters.clear();
        }
        let is_ready = self.machine.watched().is_some();
        let attempt = self.machine.attempts;
        self.waiters.retain(|waiter| match *waiter {
            Waiter::Client { after } => !is_ready && status.rounds <= after,
            Waiter::Reconnect { ticket } => status.reconnects < ticket,
            Waiter::Lists { after, attempt: of } => attempt == of && status.list_reads <= after,
        });
    }

    fn start_job(&mut self) {
        let due = self.machine.job();
        if due == self.running {
            return;
        }
        // Dropping a job closes nothing: only jobs that end do.
        self.running = due;
        if let Some(Job::Attempt { .. }) = due {
            assert_eq!(self.open, 0, "a second connection");
            self.open = 1;
        }
    }

    fn finish(&mut self, outcome: Outcome) {
        let Some(job) = self.running.take() else { return };
        let Outcome { is_success, is_transient, is_session_expired, retry_after_secs } = outcome;
        let reason = || Reason::from("it failed".to_owned());
        self.lists += 1;
        let listed = Listed { lists: self.lists, gap: is_transient.then(reason) };
        let event = match job {
            Job::Attempt { number, .. } if is_success => {
                Event::Attempted(Ok(Connected { client: number, listed }))
            }
            Job::Attempt { .. } => {
                self.open = 0;
                let retry_after = retry_after_secs.map(Duration::from_secs);
                Event::Attempted(Err(AttemptError { reason: reason(), is_transient, retry_after }))
            }
            Job::ExamineLoss => {
                self.open = 0;
                Event::LossExamined { reason: reason(), is_session_expired }
            }
            Job::ReadLists if is_success => Event::ListsRead(Ok(listed)),
            Job::ReadLists => Event::ListsRead(Err(ReadError::Failed(reason()))),
            Job::Close => {
                self.open = 0;
                Event::Closed
            }
        };
        self.apply(event);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Connect => {
                let after = self.machine.status().rounds;
                self.waiters.push(Waiter::Client { after });
                self.apply(Event::Connect { after });
            }
            Step::Reconnect => {
                self.tickets += 1;
                self.waiters.push(Waiter::Reconnect { ticket: self.tickets });
                self.apply(Event::Reconnect { ticket: self.tickets });
            }
            Step::ListsChanged => {
                if self.machine.watched().is_some() {
                    let (after, attempt) =
                        (self.machine.status().list_reads, self.machine.attempts);
                    self.waiters.push(Waiter::Lists { after, attempt });
                }
                self.apply(Event::ListsChanged);
            }
            Step::Lost { is_stale } => {
                let latest = self.machine.attempts;
                let attempt = if is_stale { latest.saturating_sub(1) } else { latest };
                self.apply(Event::Lost { attempt });
            }
            Step::Stop => self.apply(Event::Stop),
            Step::Finish(outcome) => self.finish(outcome),
            Step::Pass(time) => {
                self.now += time;
                if self.machine.deadline().is_some_and(|deadline| deadline <= self.now) {
                    self.apply(Event::DeadlineReached);
                }
            }
        }
    }

    /// Finishes jobs and lets time pass until nothing is due for a minute.
    fn settle(&mut self, outcome: Outcome) {
        for _ in 0..40 {
            match self.machine.deadline() {
                _ if self.running.is_some() => self.finish(outcome),
                Some(deadline) => {
                    self.now = self.now.max(deadline);
                    self.apply(Event::DeadlineReached);
                }
                None => return,
            }
        }
    }
}

proptest! {
    /// No lost wake-up: every caller that waits is answered, whatever happened before and whether the server can be
    /// connected or not.
    #[test]
    fn every_waiter_is_answered(retries_max in 0..4_u32, steps in steps(), last in outcome()) {
        let mut world = World::new(retries_max);
        for step in steps {
            world.step(&step);
        }
        world.settle(last);
        prop_assert!(world.waiters.is_empty(), "{:?} wait in {:?}", world.waiters, world.machine);
    }

    /// No second connection: `World::start_job` asserts that nothing is open when an attempt begins. A stop always
    /// ends in `Stopped`, with nothing left open.
    #[test]
    fn a_stop_ends_everything(retries_max in 0..4_u32, steps in steps_with_stop(), last in outcome()) {
        let mut world = World::new(retries_max);
        for step in steps {
            world.step(&step);
        }
        world.step(&Step::Stop);
        world.settle(last);
        prop_assert!(matches!(world.machine.status().link, Link::Stopped));
        prop_assert_eq!((world.open, world.machine.job(), world.machine.deadline()), (0, None, None));
    }

    /// The server is Ready exactly while a connection is open that no report calls lost.
    #[test]
    fn a_ready_server_has_a_connection(retries_max in 0..4_u32, steps in steps_with_stop()) {
        let mut world = World::new(retries_max);
        for step in steps {
            world.step(&step);
            if let Link::Ready { client, .. } = world.machine.status().link {
                prop_assert_eq!((world.open, client), (1, world.machine.attempts));
            }
            prop_assert!(world.machine.job().is_none() || world.machine.deadline().is_none());
        }
    }
}

const FAILED: Outcome = Outcome {
    is_success: false,
    is_transient: true,
    is_session_expired: false,
    retry_after_secs: None,
};
const CONNECTED: Outcome = Outcome { is_success: true, is_transient: false, ..FAILED };

fn state(world: &World) -> (ServerState, u32) {
    let (state, _, retries) = world.machine.status().link.health();
    (state, retries)
}

#[test]
fn a_round_ends_after_the_configured_retries() {
    let mut world = World::new(2);
    world.step(&Step::Connect);
    for retries in 1..=2 {
        world.finish(FAILED);
        assert_eq!(state(&world), (ServerState::Connecting, retries));
        world.step(&Step::Pass(Duration::from_mins(1)));
    }
    assert_eq!(world.machine.status().rounds, 0);
    world.finish(FAILED);
    assert_eq!((state(&world), world.machine.status().rounds), ((ServerState::Unavailable, 2), 1));
    assert_eq!(world.machine.deadline(), Some(world.now + RETRY_EVERY));
}

/// A caller whose round has failed does not start another one.
#[test]
fn a_late_command_of_an_answered_caller_starts_nothing() {
    let mut world = World::new(0);
    world.step(&Step::Connect);
    world.finish(FAILED);
    let rounds = world.machine.status().rounds;
    world.apply(Event::Connect { after: rounds - 1 });
    assert_eq!((world.machine.job(), world.machine.status().rounds), (None, rounds));
}

/// A late report about an earlier connection does not end the current one.
#[test]
fn a_report_about_an_earlier_connection_changes_nothing() {
    let mut world = World::new(3);
    world.step(&Step::Connect);
    world.finish(CONNECTED);
    world.step(&Step::Lost { is_stale: false });
    world.finish(FAILED);
    world.settle_pause();
    world.settle_pause();
    world.finish(CONNECTED);
    world.step(&Step::Lost { is_stale: true });
    assert_eq!((state(&world), world.machine.job()), ((ServerState::Ready, 0), None));
}

/// A change that the server announces while its lists are read leads to another read.
#[test]
fn a_change_during_a_read_is_not_lost() {
    let mut world = World::new(0);
    world.step(&Step::Connect);
    world.step(&Step::ListsChanged);
    world.finish(CONNECTED);
    for _ in 0..2 {
        world.step(&Step::Pass(NOTICES_WAIT));
        assert_eq!(world.machine.job(), Some(Job::ReadLists));
        world.step(&Step::ListsChanged);
        world.finish(CONNECTED);
    }
    world.step(&Step::Pass(NOTICES_WAIT));
    world.finish(CONNECTED);
    assert_eq!((world.machine.job(), world.machine.deadline()), (None, None));
}

/// A server that is lost soon after each connection is tried after growing pauses, one that lived long at once.
#[test]
fn pauses_grow_with_short_lives() {
    let mut world = World::new(5);
    let mut pauses = Vec::new();
    world.step(&Step::Connect);
    for life in [0, 0, 0, 60] {
        world.finish(CONNECTED);
        world.step(&Step::Pass(Duration::from_secs(life)));
        world.step(&Step::Lost { is_stale: false });
        world.finish(FAILED);
        world.apply(Event::DeadlineReached);
        pauses.push(world.machine.deadline().map(|at| (at - world.now).as_secs_f64().round()));
        world.settle_pause();
    }
    assert_eq!(pauses, [Some(1.0), Some(2.0), Some(4.0), None]);
}

impl World {
    fn settle_pause(&mut self) {
        if let Some(deadline) = self.machine.deadline() {
            self.now = deadline;
            self.apply(Event::DeadlineReached);
        }
    }
}
