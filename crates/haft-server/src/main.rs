//! The `haft` command.

use std::process::ExitCode;

/// A call makes about a hundred small allocations, many of them freed by another thread. This allocator needs
/// fewer instructions for them than the system's. `.cargo/config.toml` sets how it treats large blocks.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    haft_server::main()
}
