//! `requestState`: what a client carries from one round of a request to the next. It comes back through
//! hands that may change it, so it is signed, and bound to who may use it, for what, and until when.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// As much as the hash takes in at once.
const KEY_BYTES: usize = 64;
const TAG_BYTES: usize = 32;
/// What is signed: the id of what waits, and when the state expires, in seconds since 1970.
const ID_BYTES: usize = 16;
const PAYLOAD_BYTES: usize = ID_BYTES + 8;

/// The id of a request that waits for its client.
pub(super) type ParkedId = [u8; ID_BYTES];

/// Signs and checks states. The key lives as long as the program, and so does what waits.
pub(super) struct Seal([u8; KEY_BYTES]);

/// What a state is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) principal: String,
    /// Of the method and everything in the parameters that stays the same from round to round.
    pub(super) request: [u8; 32],
}

/// Why a state is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// It is not one of ours, or belongs to another request or client.
    Foreign,
    /// It took too long to come back.
    Expired,
}

impl Seal {
    /// A seal with a new key.
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key)?;
        Ok(Self(key))
    }

    pub(super) fn close(&self, id: ParkedId, bound: &Bound, lasts: Duration) -> String {
        let expires = now().saturating_add(lasts.as_secs());
        let mut payload = [0; PAYLOAD_BYTES];
        payload[..ID_BYTES].copy_from_slice(&id);
        payload[ID_BYTES..].copy_from_slice(&expires.to_be_bytes());
        let tag = self.mac(&payload, bound).finalize().into_bytes();
        BASE64_URL_SAFE_NO_PAD.encode([&payload[..], &tag[..]].concat())
    }

    pub(super) fn open(&self, state: &str, bound: &Bound) -> Result<ParkedId, Broken> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(state).map_err(|_| Broken::Foreign)?;
        if bytes.len() != PAYLOAD_BYTES + TAG_BYTES {
            return Err(Broken::Foreign);
        }
        let (payload, tag) = bytes.split_at(PAYLOAD_BYTES);
        self.mac(payload, bound).verify_slice(tag).map_err(|_| Broken::Foreign)?;
        let (id, expires) = payload.split_at(ID_BYTES);
        let expires = expires.try_into().map(u64::from_be_bytes).map_err(|_| Broken::Foreign)?;
        if expires < now() {
            return Err(Broken::Expired);
        }
        id.try_into().map_err(|_| Broken::Foreign)
    }

    fn mac(&self, payload: &[u8], bound: &Bound) -> Hmac<Sha256> {
        // Fixed lengths in front of the one that varies: no two inputs look the same.
        let mut mac = Hmac::<Sha256>::new(&self.0.into());
        mac.update(payload);
        mac.update(&bound.request);
        mac.update(bound.principal.as_bytes());
        mac
    }
}

impl Bound {
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
        let seal = Seal::new().unwrap();
        let bound = Bound::new("key:a", "tools/call", "{}");
        let state = seal.close([7; ID_BYTES], &bound, LASTS);
        assert_eq!(seal.open(&state, &bound), Ok([7; ID_BYTES]));
        for other in [
            Bound::new("key:b", "tools/call", "{}"),
            Bound::new("key:a", "prompts/get", "{}"),
            Bound::new("key:a", "tools/call", "{\"a\":1}"),
        ] {
            assert_eq!(seal.open(&state, &other), Err(Broken::Foreign));
        }
        assert_eq!(Seal::new().unwrap().open(&state, &bound), Err(Broken::Foreign));
        for changed in [format!("{state}-TAMPERED"), state[1..].to_owned(), String::new()] {
            assert_eq!(seal.open(&changed, &bound), Err(Broken::Foreign), "{changed}");
        }
    }

    #[test]
    fn a_state_expires() {
        let seal = Seal::new().unwrap();
        let bound = Bound::new("a", "tools/call", "{}");
        let mut payload = [0; PAYLOAD_BYTES];
        payload[ID_BYTES..].copy_from_slice(&1_u64.to_be_bytes());
        let tag = seal.mac(&payload, &bound).finalize().into_bytes();
        let state = BASE64_URL_SAFE_NO_PAD.encode([&payload[..], &tag[..]].concat());
        assert_eq!(seal.open(&state, &bound), Err(Broken::Expired));
    }
}
