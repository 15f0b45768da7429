//! The project's own commands: `cargo xtask test` and `cargo xtask bench NAME`.

mod advisories;
mod api;
mod bench;
mod conformance;
mod console;
mod dist;
mod docs;
mod fuzz;
mod gateways;
mod instructions;
mod model;
mod modules;
mod peers;
mod replicas;
mod run;
mod start;
mod test;
mod tools;
mod words;

use std::process::ExitCode;

use conformance::gateway::Front;

const HELP: &str = "\
cargo xtask test               format, lints, tests, documentation, licences, fuzzing: what CI runs
cargo xtask peers              install the real MCP servers and clients of the tests into target/peers
cargo xtask conformance [PATH] the official conformance suite against Haft's client, or the one at PATH
cargo xtask conformance server --url URL [--revision REVISION] [--scenario NAME]
                               the same suite against a running server
cargo xtask conformance gateway [--replicas]
                               and against `haft serve` with the suite's own server behind it: one process, or three
                               replicas on a PostgreSQL behind a load balancer
cargo xtask bench call-path    what a call costs, in parts and as ratios
cargo xtask bench serve [calls] [keys] [writes] [reload]
                               what serving costs: calls over HTTP (with wrk), rates of 100 keys, registry writes,
                               reloads; all, or those that are named
cargo xtask bench gateway [--prepare] [--quick] [NAME...]
                               `haft serve` beside a bare pass-through and published gateways; --prepare
                               installs and builds only
cargo xtask bench instructions [--debug] [--by-function]
                               instructions and allocations per call by part, against their budget (callgrind)
cargo xtask bench instructions --built
                               the same for the debug build of the tests, as `cargo xtask test` does it
cargo xtask bench replicas [--quick] [--debug] [calls] [statements] [spread] [forward] [log] [outage]
                               replicas on a PostgreSQL: calls against file mode, statements, delays, an outage
cargo xtask bench console      the web console: sizes, first paint, 100,000 log entries, 1,000 tools
cargo xtask bench mcp          Haft's MCP client against the official SDK's, and many servers at once
cargo xtask bench select       choosing among 500 and 4,000 tools: time, memory, start-up
cargo xtask bench start [--binary PATH]
                               how soon a client of `haft mcp` sees the tools of five npx servers, and `haft call`
                               beside a running service
cargo xtask model-test         the agent with a real model: HAFT_MODEL_URL, or HAFT_MODEL_FILE for llama.cpp
cargo xtask faults             the tests of faults at full length: a writing service is killed 300 times, and the
                               load test runs for 5 minutes
cargo xtask faults load [--seconds N] [--minutes N] [--seed N] [--clients N] [--rate N] [--only KIND,KIND]
                               the load test alone: hostile clients and servers beside honest calls
cargo xtask chaos [--minutes N] [--seconds N] [--seed N] [--plant-fault]
                               three replicas on a PostgreSQL with a standby under faults, with checks of registry, log, keys,
                               questions, MCP and leaks;
                               a planted fault makes the check of the registry fail
cargo xtask demo replicas      PostgreSQL, three replicas and a load balancer on this machine, until Ctrl-C
cargo xtask fuzz [--seconds N] [TARGET...]
                               run the fuzz targets, a minute each by default
cargo xtask api [--write]      compare the public API of the libraries with docs/api, or write it there
cargo xtask dist [--binary PATH]
                               a tarball and a Debian package in target/artifacts, with checksums
cargo xtask docs               check links, requirement ids and spelling of the documents
cargo xtask console [--write]   check the web console in a browser, or build its embedded files
cargo xtask modules            check that the modules of each crate form no cycle
cargo xtask words              check the language of comments, documentation and messages
cargo xtask advisories         check the dependencies against the RustSec advisory database
cargo xtask coverage           line coverage of config, registry and policy";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["test"] => test::run(),
        ["peers"] => peers::install(),
        ["conformance"] => conformance::client::run(),
        ["conformance", "gateway"] => conformance::gateway::run(Front::OneProcess),
        ["conformance", "gateway", "--replicas"] => conformance::gateway::run(Front::Replicas),
        ["conformance", "server", ref options @ ..] => conformance::server::run(options),
        ["conformance", client] => conformance::client::run_program(client.as_ref()),
        ["bench", "call-path"] => bench::call_path(),
        ["bench", "serve", ref parts @ ..] => bench::serve(parts),
        ["bench", "gateway", ref options @ ..] => bench::gateway(options),
        ["bench", "instructions", "--built"] => instructions::check_built(),
        ["bench", "instructions", ref options @ ..] => instructions::run(options),
        [instructions::BACKEND] => instructions::run_backend(),
        ["bench", "console"] => console::bench(),
        ["bench", "mcp"] => bench::mcp(),
        ["bench", "replicas", ref options @ ..] => replicas::bench(options),
        ["bench", "select"] => bench::select(),
        ["bench", "start", ref options @ ..] => start::run(options),
        ["model-test"] => model::run(),
        ["api"] => api::check(),
        ["api", "--write"] => api::write(),
        ["api", folder] => api::print(folder),
        ["dist", ref options @ ..] => dist::run(options),
        ["docs"] => docs::check(),
        ["console"] => console::check_built(),
        ["console", "--write"] => console::write(),
        ["modules"] => modules::check(),
        ["words"] => words::check(),
        ["advisories"] => advisories::check(),
        ["fuzz", ref options @ ..] => fuzz::run_with(options),
        ["faults"] => test::faults(),
        ["faults", "load", ref options @ ..] => test::load(options),
        ["chaos", ref options @ ..] => replicas::chaos(options),
        ["demo", "replicas"] => replicas::demo(),
        ["coverage"] => test::coverage(),
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
