//! `haft serve`: the toolbox as a service.

mod first_start;
mod greeting;
mod notify;
mod sampling;
pub(super) mod shared;
mod signals;

use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use haft::config::LoadOptions;
use haft::record::LogHealth;
use haft::{Config, HumanInbox, ReplicaNumber, Runtime};
use haft_postgres::Database;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::load::Served;
use super::service::{RunningService, ServiceContext, ServiceSocket, running, socket_name};
use super::trust;
use super::{
    EXIT_CONFIG, EXIT_INTERRUPTED, EXIT_RUNTIME, Failure, Global, block_on, count, load, log_times,
};
use crate::api::{self, Service};
use crate::gateway::Hub;
use crate::keys::Keyring;
use crate::progress::Progress;
use crate::serve::{GuardSettings, ListenError, Listener, ListenerSettings, TlsFiles};
use crate::telemetry::Telemetry;
use first_start::First;
pub(super) use greeting::reachable;
pub(super) use sampling::sampler;
use shared::{SharedStart, Shipping};
use signals::{Signals, Wish};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft serve                                 this folder's haft.yaml; without one, a first example
  haft serve -c tools/ --listen [::1]:8080
  curl localhost:7300/api/v1/tools           which tools are there?

Without a key it listens on this machine only and refuses changes:
  haft keys create --scope admin --name me

SIGHUP loads the files again (they are watched anyway). SIGTERM and Ctrl-C let calls in flight finish.")]
pub(super) struct ServeArgs {
    /// Address to listen on, overriding `api.listen`; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_listen)]
    listen: Option<SocketAddr>,
}

fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    haft::config::service::parse_listen(text).ok_or_else(|| {
        "write an address and a port, such as 127.0.0.1:7300 or [::1]:7300".to_owned()
    })
}

pub(super) fn run(global: &Global, args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let is_named = load::is_named(global);
    let First { files, is_own } = if is_named {
        First { files: load::files(global)?, is_own: false }
    } else {
        first_start::prepare()?
    };
    let socket = socket_name(global, &files);
    let Served { config, options, new_registry } = load::load_served(global, files)?;
    if is_own {
        trust::trust_own(global, &config);
    }
    log_times(global, &config);
    if !is_named {
        first_start::report();
    }
    if let Some(dir) = new_registry {
        tracing::info!("created the registry's folder `{}`", dir.display());
    }
    for warning in &config.warnings {
        tracing::warn!("{warning}; {}", warning.remedy);
    }
    let socket = config.state_dir.value.join(socket);
    block_on(serve(global, args, config, options, &socket))
}

async fn serve(
    global: &Global,
    args: &ServeArgs,
    config: Config,
    options: LoadOptions<'static>,
    socket: &Path,
) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::new()?;
    refuse_second(global, socket).await?;
    // The database first: it may take a while, and nothing listens until the keys are known.
    let database = shared::open(&config, &mut signals).await?;
    let keys = Arc::new(shared::keyring(&config, database.as_ref()).await?);
    // The address next: without it no server needs to start.
    let listener = listen(args, &config, &keys).await?;
    let address = listener.local_addr();
    let joining = Box::pin(shared::join(database.as_ref(), config, options, address));
    let SharedStart { config, options, store } = joining.await?;
    let (drain_delay, grace) = (config.api.drain_delay.value, config.api.shutdown_grace.value);
    let guard = guard(&config);
    let telemetry = Telemetry::start(&config.telemetry)
        .map_err(|error| Failure::new(EXIT_CONFIG, error.to_string(), error.remedy()))?;
    let replica = database.as_ref().and_then(Database::replica_number).unwrap_or_default();
    let replica = ReplicaNumber::new(replica);
    let inbox = HumanInbox::of_replica(replica);
    let approvals = shared::approvals(database.as_ref(), &inbox).await?;
    // From the start on: a server may ask while it is being connected.
    let _attending = inbox.attend();
    let hub = Hub::with_inbox(inbox.clone());
    hub.set_sampler(sampler(&config.agent));
    let asked = (hub.clone(), inbox);
    let callers = Arc::clone(&keys);
    let runtime =
        start(config, &mut signals, Arc::clone(&telemetry), callers, asked, replica).await?;
    let (gateway, peers) = shared::gateway(database.as_ref(), &runtime, &hub).await?;
    let live = shared::follow(runtime, options, store);
    let service = Service::of_replica(
        live.clone(),
        Arc::clone(&keys),
        Arc::clone(&telemetry),
        database.clone(),
        peers,
    );
    let stop = CancellationToken::new();
    let background = TaskTracker::new();
    background.spawn(shared::report(database.clone(), live.clone(), stop.clone()));
    background.spawn(shared::follow_approvals(approvals, stop.clone()));
    let shipping = Shipping::start(&service);
    // Commands wait for their calls, which may take as long as the whole end.
    let commands = TaskTracker::new();
    let context = ServiceContext {
        live: live.clone(),
        telemetry: Arc::clone(&telemetry),
        started: service.started,
        url: greeting::url(&service, listener.local_addr()),
    };
    if let Some(socket) = open_socket(socket).await {
        commands.spawn(socket.serve(Arc::new(context), stop.clone()));
    }
    greeting::print(global, &service, listener.local_addr())?;
    background.spawn(Arc::clone(&keys).follow(stop.clone()));
    background.spawn(keys.note_use(stop.clone()));
    background.spawn(expire_conversations(Arc::clone(&service), stop.clone()));
    background.spawn(Arc::clone(&telemetry).record_series(live.runtime().clone(), stop.clone()));
    background.spawn(sampling::follow(live.runtime().clone(), hub, stop.clone()));
    let serving =
        listener.serve(api::http_service(&service, &guard, Some(gateway.clone())), stop.clone());
    let mut serving = std::pin::pin!(serving);
    // The socket listens since the start, so clients can connect from here on.
    notify::ready();
    until_end(serving.as_mut(), &mut signals, &service, &background, drain_delay).await;
    notify::stopping();
    let in_flight = live.runtime().running().len();
    if in_flight > 0 {
        let calls = count(in_flight, "call");
        tracing::info!("ending: {calls} in flight may take {}s", grace.as_secs());
    }
    stop.cancel();
    background.close();
    commands.close();
    // Together: a call that is cut off still gets an answer that reports it.
    let ending = async {
        // A change that hangs on a disk must not hold up the end.
        let following = timeout(grace, async { tokio::join!(live.stop(), background.wait()) });
        // A cancelled run emits its end before its calls are cut off.
        let runs = service.runs.end(grace / 2);
        let shutdown = live.runtime().shutdown(grace);
        let answered = timeout(grace + LAST_WORDS, commands.wait());
        let (_, _, followed, answered, ()) =
            tokio::join!(serving, shutdown, following, answered, runs);
        if followed.is_err() {
            tracing::warn!("a change of the registry hangs and is left behind");
        }
        if answered.is_err() {
            tracing::warn!("a command does not take its answer and is left behind");
        }
        gateway.stop().await;
        shipping.end().await;
        shared::leave(database.as_ref()).await;
        telemetry.end().await;
    };
    tokio::select! {
        () = ending => {
            if let Some(LogHealth::Failing { entries_kept: 1.., problem, .. }) = live.runtime().log_health() {
                tracing::error!("entries of the execution log are lost: {}", problem.problem());
            }
            tracing::info!("ended");
            Ok(ExitCode::SUCCESS)
        }
        () = signals.end() => {
            tracing::warn!("ending at once");
            Ok(ExitCode::from(EXIT_INTERRUPTED))
        }
    }
}

/// Deletes expired conversations until `stop`.
async fn expire_conversations(service: Arc<Service>, stop: CancellationToken) {
    service.runs.expire_conversations(service.live.runtime().clone(), stop).await;
}

/// Serves until a signal ends it. A draining service still accepts requests for a while.
async fn until_end(
    mut serving: Pin<&mut impl Future>,
    signals: &mut Signals,
    service: &Arc<Service>,
    background: &TaskTracker,
    drain_delay: Duration,
) {
    loop {
        tokio::select! {
            _ = &mut serving => return,
            wish = signals.next() => match wish {
                Wish::Reload => {
                    let service = Arc::clone(service);
                    // What is wrong with the files is logged where it is found.
                    background.spawn(async move { service.reload_on_signal().await });
                }
                Wish::End => return,
                Wish::Drain => {
                    service.is_draining.store(true, Ordering::Relaxed);
                    tokio::select! {
                        _ = &mut serving => {}
                        () = sleep(drain_delay) => {}
                        () = signals.end() => {}
                    }
                    return;
                }
            },
        }
    }
}

/// Two services would write the same state and start every server twice.
async fn refuse_second(global: &Global, socket: &Path) -> Result<(), Failure> {
    let service = if global.standalone { None } else { running(socket).await };
    service.map_or(Ok(()), |service| Err(already_running(&service)))
}

fn already_running(service: &RunningService) -> Failure {
    let process = service.pid.map(|pid| format!(" as process {pid}")).unwrap_or_default();
    let address = service.url.as_ref().map(|url| format!(" at {url}")).unwrap_or_default();
    let message = format!("a service of this configuration runs already{process}{address}");
    let stop = service.pid.map(|pid| format!(", stop it with `kill {pid}`")).unwrap_or_default();
    let remedy = format!("use that one{stop}, or add `--standalone` to start another beside it");
    Failure::new(EXIT_RUNTIME, message, remedy)
}

/// Opens the socket for commands of the same user. Without it they start the servers themselves.
async fn open_socket(path: &Path) -> Option<ServiceSocket> {
    match ServiceSocket::bind(path).await {
        Ok(Some(socket)) => Some(socket),
        Ok(None) => {
            tracing::warn!(
                "another service of this configuration is running; commands such as `haft call` use that one"
            );
            None
        }
        Err(error) => {
            let path = path.display();
            tracing::warn!(
                "commands such as `haft call` cannot use this service: `{path}`: {error}"
            );
            None
        }
    }
}

/// Time to send answers to calls that were cut off.
const LAST_WORDS: Duration = Duration::from_secs(3);

fn guard(config: &Config) -> GuardSettings {
    GuardSettings {
        allowed_hosts: config.api.allowed_hosts.value.clone(),
        allowed_origins: config.api.allowed_origins.value.clone(),
    }
}

async fn listen(args: &ServeArgs, config: &Config, keys: &Keyring) -> anyhow::Result<Listener> {
    let api = &config.api;
    let address = args.listen.unwrap_or(api.listen.value);
    let tls = api.tls.as_ref().map(|files| TlsFiles {
        certificate: files.value.cert.clone(),
        key: files.value.key.clone(),
    });
    let settings = ListenerSettings {
        tls,
        grace: api.shutdown_grace.value + LAST_WORDS,
        ..ListenerSettings::new(address)
    };
    Listener::bind(settings, keys).await.map_err(|error| {
        let code = match error {
            ListenError::NoKey { .. } | ListenError::Tls(_) => EXIT_CONFIG,
            ListenError::Bind { .. } => EXIT_RUNTIME,
        };
        Failure::new(code, error.to_string(), error.remedy()).into()
    })
}

async fn start(
    config: Config,
    signals: &mut Signals,
    telemetry: Arc<Telemetry>,
    keys: Arc<Keyring>,
    (hub, inbox): (Hub, HumanInbox),
    replica: ReplicaNumber,
) -> anyhow::Result<Runtime> {
    let (progress, cancel) = (Progress::on_stderr(), CancellationToken::new());
    let (watch, clients) = (progress.clone(), hub.clone());
    let builder = Runtime::builder(config)
        .cancelled_by(cancel.clone())
        .sandbox_launcher(std::env::current_exe()?)
        .without_waiting()
        .served()
        .server_handler(hub)
        .inbox(inbox)
        .replica(replica)
        .callers(keys)
        .observe(move |call| telemetry.observe(call))
        .watch_servers(move |server, health| {
            watch.note(server, health.state);
            clients.note_health(server, health);
        });
    let mut starting = Box::pin(builder.start());
    let started = tokio::select! {
        started = &mut starting => started,
        () = signals.end() => {
            cancel.cancel();
            starting.await
        }
    };
    progress.end();
    Ok(started?)
}
