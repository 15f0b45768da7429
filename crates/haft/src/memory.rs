//! One budget for the bytes of everything in flight: request bodies, arguments, answers, the log's queue.
//!
//! What is charged is an estimate of the memory it takes, with its copies. The process may take more than the
//! budget for a moment, and stays below twice as much beyond what it takes when idle.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The setting that limits the bytes in flight.
pub const SETTING: &str = "limits.in_flight_bytes_max";

/// One caller or server may use at most one part in this many of the budget, and less while others
/// use theirs.
const SHARE: usize = 2;

/// Number of counters that the owners share. Two owners with one counter share its part; a keyed
/// hash assigns them, so no caller can choose one.
const COUNTERS: usize = 1024;

/// The memory that one value or key of a parsed JSON document takes, measured with room for growth: 72 bytes for a
/// value in a list that doubles, about 200 for a key and its value in an object.
const NODE_BYTES: usize = 128;
/// Reservations up to this size count against the whole budget only, and not against the owner's
/// share, unless memory is scarce.
const UNSHARED_BYTES: usize = 16 * 1024;
/// Documents shorter than this are charged at this factor without scanning.
const SMALL_BYTES: usize = 4 * 1024;
const SMALL_FACTOR: usize = 16;

/// The bytes in flight and their limit. Clones share it.
#[derive(Debug, Clone)]
pub struct MemoryBudget(Arc<State>);

#[derive(Debug)]
struct State {
    limit: AtomicUsize,
    in_flight: AtomicUsize,
    refused: AtomicU64,
    owners: Box<[AtomicUsize]>,
    hasher: RandomState,
}

/// The owner whose share is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner<'a> {
    /// A caller, by name. All callers without a name count as one.
    Caller(Option<&'a str>),
    /// An MCP server, by name.
    Server(&'a str),
}

/// Bytes in flight, released when dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: MemoryBudget,
    owner: Option<usize>,
    bytes: usize,
}

/// Statistics of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryStats {
    /// The bytes in flight.
    pub in_flight: usize,
    /// The limit.
    pub max: usize,
    /// Number of refused reservations.
    pub refused: u64,
}

/// No room for more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct OverBudget {
    needed: usize,
    /// Including the bytes the same reservation already holds.
    together: usize,
    limit: usize,
    is_share: bool,
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { needed, limit, is_share, .. } = self;
        let of = if *is_share { "one caller or server" } else { "everything in flight" };
        write!(f, "{needed} more bytes do not fit into the {limit} for {of} (`{SETTING}`)")
    }
}

impl OverBudget {
    /// Returns true if waiting may help: the bytes fit an empty budget.
    pub fn is_transient(&self) -> bool {
        self.together <= self.limit
    }
}

impl MemoryBudget {
    /// Creates an unused budget of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(State {
            limit: AtomicUsize::new(limit),
            in_flight: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            owners: (0..COUNTERS).map(|_| AtomicUsize::new(0)).collect(),
            hasher: RandomState::new(),
        }))
    }

    /// Changes the limit. Reservations beyond a lowered limit stay.
    pub fn set_limit(&self, limit: usize) {
        self.0.limit.store(limit, Ordering::Relaxed);
    }

    /// Reserves `bytes` of the budget and of the owner's share.
    pub fn reserve(&self, bytes: usize, owner: Owner<'_>) -> Result<Reservation, OverBudget> {
        let is_scarce = || {
            let MemoryStats { in_flight, max, .. } = self.stats();
            in_flight > max / SHARE
        };
        let has_share = bytes > UNSHARED_BYTES || is_scarce();
        let owner = has_share.then(|| self.counter(owner));
        self.take(bytes, owner)?;
        Ok(Reservation { budget: self.clone(), owner, bytes })
    }

    /// Counts bytes that already exist and cannot be refused. They reduce the room, first of all
    /// for their owner.
    pub fn charge(&self, bytes: usize, owner: Option<Owner<'_>>) -> Reservation {
        let owner = owner.map(|owner| self.counter(owner));
        self.0.in_flight.fetch_add(bytes, Ordering::Relaxed);
        if let Some(owner) = owner {
            self.0.owners[owner].fetch_add(bytes, Ordering::Relaxed);
        }
        Reservation { budget: self.clone(), owner, bytes }
    }

    /// Returns the current statistics.
    pub fn stats(&self) -> MemoryStats {
        MemoryStats {
            in_flight: self.0.in_flight.load(Ordering::Relaxed),
            max: self.0.limit.load(Ordering::Relaxed),
            refused: self.0.refused.load(Ordering::Relaxed),
        }
    }

    fn counter(&self, owner: Owner<'_>) -> usize {
        let hash = self.0.hasher.hash_one(owner);
        usize::try_from(hash % COUNTERS as u64).unwrap_or_default()
    }

    fn take(&self, bytes: usize, owner: Option<usize>) -> Result<(), OverBudget> {
        let State { limit, in_flight, owners, .. } = &*self.0;
        let limit = limit.load(Ordering::Relaxed);
        if let Some(owner) = owner {
            let share = limit / SHARE;
            // An owner never gets more than what stays free: alone it gets half, and each of n
            // greedy owners gets one part in n + 1, which leaves one part for everyone else.
            let free = limit.saturating_sub(in_flight.load(Ordering::Relaxed));
            if bytes > free && bytes <= share {
                return Err(self.refuse(bytes, limit, false));
            }
            if !take_up_to(&owners[owner], bytes, share.min(free.saturating_sub(bytes))) {
                return Err(self.refuse(bytes, share, true));
            }
        }
        if !take_up_to(in_flight, bytes, limit) {
            if let Some(owner) = owner {
                owners[owner].fetch_sub(bytes, Ordering::Relaxed);
            }
            return Err(self.refuse(bytes, limit, false));
        }
        Ok(())
    }

    fn give_back(&self, bytes: usize, owner: Option<usize>) {
        self.0.in_flight.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(owner) = owner {
            self.0.owners[owner].fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    fn refuse(&self, needed: usize, limit: usize, is_share: bool) -> OverBudget {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
        OverBudget { needed, together: needed, limit, is_share }
    }
}

/// Adds `bytes` unless that exceeds `limit`. Returns true if they were added.
fn take_up_to(counter: &AtomicUsize, bytes: usize, limit: usize) -> bool {
    let add = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= limit);
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
}

impl Reservation {
    /// Reserves `more` bytes. Keeps the existing bytes if there is no room.
    pub fn grow(&mut self, more: usize) -> Result<(), OverBudget> {
        let together = self.bytes + more;
        let taken = self.budget.take(more, self.owner);
        taken.map_err(|over| OverBudget { together, ..over })?;
        self.bytes = together;
        Ok(())
    }

    /// The number of reserved bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes, self.owner);
    }
}

/// A reservation that a value holds until its last clone is dropped.
#[derive(Debug, Clone, Default)]
pub struct Held(Option<Arc<Reservation>>);

impl Held {
    /// Returns true if it holds no reservation.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl From<Reservation> for Held {
    fn from(reservation: Reservation) -> Self {
        Self(Some(Arc::new(reservation)))
    }
}

/// Estimates the memory of a JSON text once it is parsed into values.
pub fn parsed_bytes(json: &[u8]) -> usize {
    if json.len() <= SMALL_BYTES {
        return json.len() * SMALL_FACTOR;
    }
    json.len() + nodes(json) * NODE_BYTES
}

/// Estimates the number of values and keys of a JSON text by counting separators outside strings.
fn nodes(json: &[u8]) -> usize {
    let mut count = 1;
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        at += 1;
        match byte {
            b',' | b':' | b'[' | b'{' => count += 1,
            b'"' => at = end_of_string(json, at),
            _ => {}
        }
    }
    count
}

/// The position after the quote that ends the string starting at `at`.
fn end_of_string(json: &[u8], mut at: usize) -> usize {
    while let Some(found) = json.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found + 1;
        if json[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 100 * UNSHARED_BYTES;

    #[derive(Debug, Clone)]
    enum Step {
        Reserve(usize, usize),
        Grow(usize, usize),
        Charge(usize, usize),
        Drop(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..LIMIT / 3, 0..3_usize).prop_map(|(bytes, owner)| Step::Reserve(bytes, owner)),
            (any::<usize>(), 0..LIMIT / 3).prop_map(|(at, bytes)| Step::Grow(at, bytes)),
            (0..LIMIT / 10, 0..3_usize).prop_map(|(bytes, owner)| Step::Charge(bytes, owner)),
            any::<usize>().prop_map(Step::Drop),
        ]
    }

    /// Greedy owners cannot take the whole budget together.
    #[test]
    fn greedy_owners_leave_room_for_others() {
        let budget = MemoryBudget::new(LIMIT);
        let piece = 2 * UNSHARED_BYTES;
        let mut held = Vec::new();
        for round in 0..2 * LIMIT / piece {
            let name = ["a", "b", "c"][round % 3];
            held.extend(budget.reserve(piece, Owner::Caller(Some(name))));
        }
        let free = LIMIT - budget.stats().in_flight;
        assert!(free >= LIMIT / 4 - piece, "{free} of {LIMIT} bytes are free");
        assert!(budget.reserve(piece, Owner::Caller(Some("honest"))).is_ok());
        // Early owners lose the part they would have alone.
        assert!(budget.reserve(piece, Owner::Caller(Some("a"))).is_err());
    }

    proptest! {
        /// For any sequence of reservations the sum is correct, no owner exceeds its share, and the
        /// end is zero.
        #[test]
        fn the_sum_is_right_within_the_limit_and_zero_in_the_end(
            steps in prop::collection::vec(step(), 0..60),
        ) {
            let budget = MemoryBudget::new(LIMIT);
            let names = ["a", "b", "c"];
            let mut held: Vec<Reservation> = Vec::new();
            let mut charged = 0;
            for step in steps {
                match step {
                    Step::Reserve(bytes, owner) => {
                        let taken = budget.reserve(bytes, Owner::Caller(Some(names[owner])));
                        held.extend(taken);
                    }
                    Step::Grow(at, bytes) if !held.is_empty() => {
                        let at = at % held.len();
                        let _ = held[at].grow(bytes);
                    }
                    Step::Charge(bytes, owner) => {
                        charged += bytes;
                        held.push(budget.charge(bytes, Some(Owner::Caller(Some(names[owner])))));
                    }
                    Step::Drop(at) if !held.is_empty() => {
                        drop(held.swap_remove(at % held.len()));
                    }
                    Step::Grow(..) | Step::Drop(_) => {}
                }
                let sum: usize = held.iter().map(Reservation::bytes).sum();
                prop_assert_eq!(budget.stats().in_flight, sum);
                prop_assert!(sum <= LIMIT + charged);
                let shares = budget.0.owners.iter().map(|it| it.load(Ordering::Relaxed));
                prop_assert!(shares.max().unwrap_or_default() <= LIMIT / SHARE + charged);
            }
            drop(held);
            prop_assert_eq!(budget.stats().in_flight, 0);
            prop_assert!(budget.0.owners.iter().all(|it| it.load(Ordering::Relaxed) == 0));
        }

        /// The estimate never falls below the computed size of a tree of values.
        #[test]
        fn the_estimate_counts_every_value_and_key(
            json in "[\\[\\]{}:,\"a-c\\\\0-9 ]{0,40}",
        ) {
            if let Ok(value) = serde_json::from_str::<serde_json::Value>(&json) {
                prop_assert!(nodes(json.as_bytes()) >= count(&value));
            }
        }
    }

    fn count(value: &serde_json::Value) -> usize {
        match value {
            serde_json::Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
            serde_json::Value::Object(map) => {
                1 + map.values().map(|value| 1 + count(value)).sum::<usize>()
            }
            _ => 1,
        }
    }

    #[test]
    fn many_threads_never_exceed_the_limit_and_leave_nothing() {
        let budget = MemoryBudget::new(LIMIT);
        std::thread::scope(|scope| {
            for thread in 0..8_usize {
                let budget = budget.clone();
                scope.spawn(move || {
                    let name = format!("caller {}", thread % 4);
                    let mut held = Vec::new();
                    for round in 0..20_000_usize {
                        let bytes = (round * 7 + thread * 13) % (LIMIT / 3);
                        held.extend(budget.reserve(bytes, Owner::Caller(Some(&name))));
                        assert!(budget.stats().in_flight <= LIMIT);
                        if let Some(last) = held.last_mut() {
                            let _ = last.grow(bytes / 2);
                        }
                        if held.len() > 3 {
                            held.remove(round % held.len());
                        }
                    }
                });
            }
        });
        let MemoryStats { in_flight, refused, .. } = budget.stats();
        assert_eq!(in_flight, 0);
        assert!(refused > 0, "the test has to reach the limit");
    }

    /// Names of callers that do not share a counter by chance.
    fn strangers<const N: usize>(budget: &MemoryBudget) -> [String; N] {
        let mut names: Vec<String> = Vec::new();
        let counter = |name: &str| budget.counter(Owner::Caller(Some(name)));
        for name in (0..).map(|n| format!("caller {n}")) {
            if names.len() == N {
                break;
            }
            if names.iter().all(|other| counter(other) != counter(&name)) {
                names.push(name);
            }
        }
        names.try_into().unwrap()
    }

    #[test]
    fn a_refusal_names_the_setting_and_says_whether_to_wait() {
        let budget = MemoryBudget::new(100_000);
        let [one, other] = strangers(&budget);
        let (one, other) = (Owner::Caller(Some(&one)), Owner::Caller(Some(&other)));
        let _held = budget.reserve(40_000, one).unwrap();
        let refused = budget.reserve(20_000, one).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "20000 more bytes do not fit into the 50000 for one caller or server \
             (`limits.in_flight_bytes_max`)"
        );
        assert!(refused.is_transient());
        assert!(!budget.reserve(50_001, other).unwrap_err().is_transient());
        let mut grown = budget.reserve(30_000, other).unwrap();
        assert!(!grown.grow(30_000).unwrap_err().is_transient(), "together they never fit");
        drop(grown);
        let _all = budget.charge(60_000, None);
        let refused = budget.reserve(1, other).unwrap_err();
        assert!(refused.to_string().contains("100000 for everything in flight"), "{refused}");
    }

    #[test]
    fn who_has_more_than_a_share_gets_nothing_while_memory_is_scarce() {
        let budget = MemoryBudget::new(100_000);
        let [greedy, modest, third] = strangers(&budget);
        let [greedy, modest, third] =
            [&greedy, &modest, &third].map(|name| Owner::Caller(Some(name.as_str())));
        let _kept = budget.charge(50_000, Some(greedy));
        assert!(budget.reserve(1, greedy).is_ok(), "there is plenty");
        let _other = budget.reserve(20_000, third).unwrap();
        let scarce = budget.reserve(1, greedy).unwrap_err();
        assert!(scarce.to_string().contains("one caller"), "{scarce}");
        assert!(budget.reserve(1, modest).is_ok());
    }

    #[test]
    fn separators_in_strings_are_not_counted() {
        assert_eq!(nodes(br#"{"a,b":[1,"x\",y"]}"#), 5);
        assert_eq!(nodes(b"\"never ends\\"), 1);
    }
}
