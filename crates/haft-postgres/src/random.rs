//! Random tokens and delays.

use std::time::Duration;

/// A token of 32 hexadecimal digits.
pub(crate) fn token() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(haft_text::hex(&bytes))
}

/// A random duration of at most `most`.
pub(crate) fn up_to(most: Duration) -> Duration {
    let mut bytes = [0; 2];
    // Without random numbers every replica waits the same time, which is harmless.
    let _ = getrandom::fill(&mut bytes);
    most * u32::from(u16::from_le_bytes(bytes)) / u32::from(u16::MAX)
}
