//! `haft login` and `haft logout`: OAuth for remote servers.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use haft::Config;
use haft::config::model::{Endpoint, RemoteEndpoint};
use haft::config::oauth::OauthGrant;
use haft::oauth::{
    AuthError, ClientIdentity, Interactive, Login, Loopback, Opening, RegisteredClient, Secret,
    StoredTokens, TokenStore,
};
use haft_text::printable;
use tokio_util::task::TaskTracker;

use super::{
    EXIT_CONFIG, EXIT_INTERRUPTED, EXIT_RUNTIME, Failure, Global, block_on, configuration_of_file,
    print_json,
};
use crate::stderr::say;
use crate::terminal;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  haft login github
  haft login github --no-browser --scope repo --scope read:org
  APP_SECRET=... haft login crm --client-id my-app --client-secret-env APP_SECRET

`oauth` of the server in the configuration sets the same: `client_id`, `client_secret_env`, `scopes` and
`client_metadata_url`. The command line wins. A server with `grant: client_credentials` needs
no login.

The tokens are stored in the folder `tokens` of the state folder (`haft config show` prints its path),
readable only by you, and are refreshed by themselves. `haft logout SERVER` removes them.")]
pub(super) struct LoginArgs {
    /// The server, as the configuration names it
    server: String,
    /// Only print the address to open, and start no browser
    #[arg(long)]
    no_browser: bool,
    /// Ask for this scope instead of what the server suggests; repeat for several
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// The id of a client that is registered with the authorization server already
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The environment variable that holds the client's secret
    #[arg(long, value_name = "VARIABLE", requires = "client_id")]
    client_secret_env: Option<String>,
    /// Time limit for the sign-in in the browser, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
}

#[derive(Debug, Args)]
pub(super) struct LogoutArgs {
    /// The server, as the configuration names it
    server: String,
}

pub(super) fn run(global: &Global, args: &LoginArgs) -> anyhow::Result<ExitCode> {
    let config = configuration_of_file(global)?;
    let remote = remote(&config, &args.server)?;
    if remote.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
        tracing::warn!(
            "server `{}` has an `Authorization` header in the configuration, which is used instead \
             of the login",
            args.server
        );
    }
    let login = login(args, remote)?;
    let folder = config.tokens_dir();
    block_on(async {
        let tasks = TaskTracker::new();
        let opening = if args.no_browser { Opening::Nothing } else { Opening::Browser };
        let limit = Duration::from_secs(args.timeout);
        let browser = Loopback::bind(limit, opening, |url| {
            say!("Open this address to sign in:\n\n  {}\n", printable(url.as_str()));
        });
        let signing_in = async {
            let tokens = StoredTokens::new(login, TokenStore::new(&folder), tasks)?;
            Interactive::new(tokens, browser.await?).sign_in().await
        };
        tokio::select! {
            signed_in = signing_in => signed_in.map_err(|error| failed(&args.server, &error))?,
            _ = tokio::signal::ctrl_c() => return Ok(ExitCode::from(EXIT_INTERRUPTED)),
        }
        ignore_in_git(&config);
        report(global, &args.server, "logged in")
    })
}

pub(super) fn logout(global: &Global, args: &LogoutArgs) -> anyhow::Result<ExitCode> {
    let config = configuration_of_file(global)?;
    let remote = remote(&config, &args.server)?;
    let was_there = TokenStore::new(config.tokens_dir())
        .logout(remote.url.expose())
        .map_err(|error| failed(&args.server, &error))?;
    report(global, &args.server, if was_there { "logged out" } else { "was not logged in" })
}

fn report(global: &Global, server: &str, outcome: &str) -> anyhow::Result<ExitCode> {
    if global.json {
        print_json(&serde_json::json!({"server": server, "outcome": outcome}))?;
    } else {
        terminal::line(&format!("{server}: {outcome}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The sign-in settings of the configuration, overridden by the command line.
fn login(args: &LoginArgs, remote: &RemoteEndpoint) -> anyhow::Result<Login> {
    let grant = remote.oauth.as_ref().map(|oauth| oauth.grant);
    if grant == Some(OauthGrant::ClientCredentials) {
        return Err(Failure::new(
            EXIT_CONFIG,
            format!(
                "server `{}` has `grant: client_credentials`, so no person signs in there",
                args.server
            ),
            format!("`haft servers show {}` shows whether it can be reached", args.server),
        )
        .into());
    }
    let mut login = haft::oauth_login(remote);
    if args.client_id.is_some() {
        login = login.with_identity(identity(args)?);
    }
    if !args.scopes.is_empty() {
        login = login.with_scopes(args.scopes.clone());
    }
    Ok(login)
}

fn identity(args: &LoginArgs) -> anyhow::Result<ClientIdentity> {
    let secret = match &args.client_secret_env {
        Some(variable) => Some(Secret::new(std::env::var(variable).map_err(|_| {
            Failure::new(
                EXIT_CONFIG,
                format!("the variable `{variable}` with the client's secret is not set"),
                format!("set it: `{variable}=... haft login {}`", args.server),
            )
        })?)),
        None => None,
    };
    let registered = args.client_id.clone();
    let registered = registered.map(|id| RegisteredClient { id, secret, issuer: None });
    Ok(ClientIdentity { name: haft::CLIENT_NAME.to_owned(), registered, metadata_url: None })
}

/// The address of a server that is elsewhere.
fn remote<'a>(config: &'a Config, name: &str) -> anyhow::Result<&'a RemoteEndpoint> {
    let names = || config.servers.iter().map(|server| server.name.as_str());
    let Some(server) = config.servers.iter().find(|server| server.name == name) else {
        let remedy = match haft_text::nearest(name, names()) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => "`haft servers list` shows every server".to_owned(),
        };
        return Err(
            Failure::new(EXIT_CONFIG, format!("no server is named `{name}`"), remedy).into()
        );
    };
    match &server.endpoint {
        Endpoint::Http(remote) | Endpoint::Sse(remote) | Endpoint::Websocket(remote) => Ok(remote),
        Endpoint::Stdio(_) => Err(Failure::new(
            EXIT_CONFIG,
            format!("server `{name}` is a program on this machine, which needs no login"),
            "give it credentials by `env` in the configuration",
        )
        .into()),
    }
}

fn failed(server: &str, error: &AuthError) -> Failure {
    Failure {
        message: format!("server `{server}`: {error}"),
        remedy: error.remedy(),
        code: EXIT_RUNTIME,
    }
}

/// Tokens lie beside the configuration, and that is often a repository.
fn ignore_in_git(config: &Config) {
    let path = config.state_dir.value.join(".gitignore");
    if !path.exists()
        && let Err(error) = std::fs::write(&path, "*\n")
    {
        tracing::warn!("`{}` cannot be written: {error}", path.display());
    }
}
