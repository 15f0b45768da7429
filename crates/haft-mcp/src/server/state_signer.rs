//! `requestState`: what a client carries from one round of a request to the next. It comes back through
//! hands that may change it, so it is signed, and binding to who may use it, for what, and until when.

use std::num::NonZeroU16;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::replica::{Replica, SigningKeys, TAG_BYTES};

/// The signed part: the number of the replica where the request waits (zero without replicas), the id of the suspended
/// request, and the expiry of the state, in seconds since 1970.
const REPLICA_BYTES: usize = 2;
const ID_BYTES: usize = 16;
const PAYLOAD_BYTES: usize = REPLICA_BYTES + ID_BYTES + 8;

/// What the keys sign here.
const PURPOSE: &str = "requestState";

/// The id of a request that waits for its client.
pub(super) type SuspendedId = [u8; ID_BYTES];

/// Signs and checks states. Without replicas the key lives as long as the program, and so does what waits.
pub(super) struct StateSigner {
    keys: SigningKeys,
    replica: u16,
}

/// The request and principal that a state is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StateBinding {
    pub(super) principal: String,
    /// Of the method and everything in the parameters that stays the same from round to round.
    pub(super) request: [u8; 32],
}

/// Why a state is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateError {
    /// It is not one of ours, or belongs to another request or client.
    Foreign,
    /// It took too long to come back.
    Expired,
}

impl StateSigner {
    /// The signer of a replica; without one, a signer with a new key.
    pub(super) fn new(replica: Option<&Replica>) -> Result<Self, getrandom::Error> {
        Ok(match replica {
            Some(Replica { number, keys, .. }) => {
                Self { keys: keys.clone(), replica: number.get() }
            }
            None => Self { keys: SigningKeys::random()?, replica: 0 },
        })
    }

    pub(super) fn sign(&self, id: SuspendedId, binding: &StateBinding, lasts: Duration) -> String {
        self.sign_until(id, binding, now().saturating_add(lasts.as_secs()))
    }

    fn sign_until(&self, id: SuspendedId, binding: &StateBinding, expires: u64) -> String {
        let payload =
            [&self.replica.to_be_bytes()[..], &id[..], &expires.to_be_bytes()[..]].concat();
        let tag = self.keys.sign(PURPOSE, &binding.parts(&payload));
        BASE64_URL_SAFE_NO_PAD.encode([&payload[..], &tag[..]].concat())
    }

    pub(super) fn verify(
        &self,
        state: &str,
        binding: &StateBinding,
    ) -> Result<SuspendedId, StateError> {
        let bytes = decoded(state).ok_or(StateError::Foreign)?;
        let (payload, tag) = bytes.split_at(PAYLOAD_BYTES);
        if !self.keys.is_signed(PURPOSE, &binding.parts(payload), tag) {
            return Err(StateError::Foreign);
        }
        let (id, expires) = payload[REPLICA_BYTES..].split_at(ID_BYTES);
        let expires =
            expires.try_into().map(u64::from_be_bytes).map_err(|_| StateError::Foreign)?;
        if expires < now() {
            return Err(StateError::Expired);
        }
        id.try_into().map_err(|_| StateError::Foreign)
    }
}

/// The replica that a state names. Unverified: it is good for finding the replica that verifies the state.
pub(super) fn named_replica(state: &str) -> Option<NonZeroU16> {
    let bytes = decoded(state)?;
    let number = bytes.first_chunk()?;
    NonZeroU16::new(u16::from_be_bytes(*number))
}

fn decoded(state: &str) -> Option<Vec<u8>> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(state).ok()?;
    (bytes.len() == PAYLOAD_BYTES + TAG_BYTES).then_some(bytes)
}

impl StateBinding {
    /// Binds to a client and to its request. `params` is the same text for equal parameters.
    pub(super) fn new(principal: &str, method: &str, params: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update((method.len() as u64).to_be_bytes());
        hash.update(method);
        hash.update(params);
        Self { principal: principal.to_owned(), request: hash.finalize().into() }
    }

    fn parts<'a>(&'a self, payload: &'a [u8]) -> [&'a [u8]; 3] {
        [payload, &self.request, self.principal.as_bytes()]
    }
}

fn now() -> u64 {
    // A clock before 1970 expires nothing, and everything is gone with the program anyway.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LASTS: Duration = Duration::from_mins(1);

    #[test]
    fn a_state_is_good_for_one_client_and_one_request() {
        let signer = StateSigner::new(None).unwrap();
        let binding = StateBinding::new("key:a", "tools/call", "{}");
        let state = signer.sign([7; ID_BYTES], &binding, LASTS);
        assert_eq!(signer.verify(&state, &binding), Ok([7; ID_BYTES]));
        for other in [
            StateBinding::new("key:b", "tools/call", "{}"),
            StateBinding::new("key:a", "prompts/get", "{}"),
            StateBinding::new("key:a", "tools/call", "{\"a\":1}"),
        ] {
            assert_eq!(signer.verify(&state, &other), Err(StateError::Foreign));
        }
        assert_eq!(
            StateSigner::new(None).unwrap().verify(&state, &binding),
            Err(StateError::Foreign)
        );
        for changed in [format!("{state}-TAMPERED"), state[1..].to_owned(), String::new()] {
            assert_eq!(signer.verify(&changed, &binding), Err(StateError::Foreign), "{changed}");
        }
    }

    #[test]
    fn a_state_expires() {
        let signer = StateSigner::new(None).unwrap();
        let binding = StateBinding::new("a", "tools/call", "{}");
        let state = signer.sign_until([0; ID_BYTES], &binding, 1);
        assert_eq!(signer.verify(&state, &binding), Err(StateError::Expired));
    }

    #[test]
    fn every_replica_verifies_a_state_and_reads_who_keeps_the_request() {
        let replica = |number| Replica {
            number: NonZeroU16::new(number).unwrap(),
            keys: SigningKeys::new([[7; 32]]).unwrap(),
            endpoint: "".into(),
        };
        let (one, other) = (replica(31746), replica(2));
        let (one, other) = (StateSigner::new(Some(&one)), StateSigner::new(Some(&other)));
        let binding = StateBinding::new("a", "tools/call", "{}");
        let state = one.unwrap().sign([3; ID_BYTES], &binding, LASTS);
        assert_eq!(named_replica(&state).map(NonZeroU16::get), Some(31746));
        assert_eq!(other.unwrap().verify(&state, &binding), Ok([3; ID_BYTES]));
        let alone = StateSigner::new(None).unwrap();
        assert_eq!(named_replica(&alone.sign([3; ID_BYTES], &binding, LASTS)), None);
        assert_eq!(named_replica("no state"), None);
    }
}
