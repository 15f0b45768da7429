//! `requestState`: what a client carries from one round of a request to the next. It comes back through
//! hands that may change it, so it is signed, and binding to who may use it, for what, and until when.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// As much as the hash takes in at once.
const KEY_BYTES: usize = 64;
const TAG_BYTES: usize = 32;
/// The signed part: the id of the suspended request, and the expiry of the state, in seconds since 1970.
const ID_BYTES: usize = 16;
const PAYLOAD_BYTES: usize = ID_BYTES + 8;

/// The id of a request that waits for its client.
pub(super) type SuspendedId = [u8; ID_BYTES];

/// Signs and checks states. The key lives as long as the program, and so does what waits.
pub(super) struct StateSigner([u8; KEY_BYTES]);

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
    /// A signer with a new key.
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key)?;
        Ok(Self(key))
    }

    pub(super) fn sign(&self, id: SuspendedId, binding: &StateBinding, lasts: Duration) -> String {
        let expires = now().saturating_add(lasts.as_secs());
        let mut payload = [0; PAYLOAD_BYTES];
        payload[..ID_BYTES].copy_from_slice(&id);
        payload[ID_BYTES..].copy_from_slice(&expires.to_be_bytes());
        let tag = self.mac(&payload, binding).finalize().into_bytes();
        BASE64_URL_SAFE_NO_PAD.encode([&payload[..], &tag[..]].concat())
    }

    pub(super) fn verify(
        &self,
        state: &str,
        binding: &StateBinding,
    ) -> Result<SuspendedId, StateError> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(state).map_err(|_| StateError::Foreign)?;
        if bytes.len() != PAYLOAD_BYTES + TAG_BYTES {
            return Err(StateError::Foreign);
        }
        let (payload, tag) = bytes.split_at(PAYLOAD_BYTES);
        self.mac(payload, binding).verify_slice(tag).map_err(|_| StateError::Foreign)?;
        let (id, expires) = payload.split_at(ID_BYTES);
        let expires =
            expires.try_into().map(u64::from_be_bytes).map_err(|_| StateError::Foreign)?;
        if expires < now() {
            return Err(StateError::Expired);
        }
        id.try_into().map_err(|_| StateError::Foreign)
    }

    fn mac(&self, payload: &[u8], binding: &StateBinding) -> Hmac<Sha256> {
        // Fixed lengths in front of the one that varies: no two inputs look the same.
        let mut mac = Hmac::<Sha256>::new(&self.0.into());
        mac.update(payload);
        mac.update(&binding.request);
        mac.update(binding.principal.as_bytes());
        mac
    }
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
        let signer = StateSigner::new().unwrap();
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
        assert_eq!(StateSigner::new().unwrap().verify(&state, &binding), Err(StateError::Foreign));
        for changed in [format!("{state}-TAMPERED"), state[1..].to_owned(), String::new()] {
            assert_eq!(signer.verify(&changed, &binding), Err(StateError::Foreign), "{changed}");
        }
    }

    #[test]
    fn a_state_expires() {
        let signer = StateSigner::new().unwrap();
        let binding = StateBinding::new("a", "tools/call", "{}");
        let mut payload = [0; PAYLOAD_BYTES];
        payload[ID_BYTES..].copy_from_slice(&1_u64.to_be_bytes());
        let tag = signer.mac(&payload, &binding).finalize().into_bytes();
        let state = BASE64_URL_SAFE_NO_PAD.encode([&payload[..], &tag[..]].concat());
        assert_eq!(signer.verify(&state, &binding), Err(StateError::Expired));
    }
}
