//! `shared` and `registry`, and what cannot hold together with them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::service::http_address;
use super::{explicit, pick, span};
use crate::config::choices::{AllowedScripts, Migrate, StoreKind};
use crate::config::model::{Config, Endpoint, Origin, Setting};
use crate::config::oauth::OauthGrant;
use crate::config::place::{At, Place, Problems};
use crate::config::raw::RawRegistry;
use crate::config::raw_shared::RawShared;
use crate::config::secret::{Masked, without_secrets};
use crate::config::shared::SharedConfig;

/// Default of `shared.stale_max`.
const STALE_MAX_DEFAULT: Duration = Duration::from_mins(15);

/// The folder of the registry and the place of its documents.
pub(super) struct Registry {
    pub(super) dir: Option<Setting<PathBuf>>,
    pub(super) store: Setting<StoreKind>,
}

pub(super) fn registry(
    raw: Option<At<RawRegistry>>,
    base: &Path,
    has_shared: bool,
    problems: &mut Problems,
) -> Registry {
    let Some(At { value: RawRegistry { dir, store, broken, .. }, place }) = raw else {
        return Registry { dir: None, store: Setting::default(StoreKind::Files) };
    };
    let place = store.as_ref().map_or(place, |at| at.place.clone());
    let store = pick(store, StoreKind::Files);
    match (store.value, has_shared) {
        (StoreKind::Shared, false) => problems.error(
            &place,
            "`store: shared` needs a database, and there is no `shared`",
            "add `shared: {url: \"${DATABASE_URL}\"}`, or leave out `store`",
        ),
        (StoreKind::Files, true) => problems.error(
            &place,
            "a registry in files is not shared: with `shared` each replica would have its own",
            "write `registry: {store: shared, dir: ./tools}`; `haft shared import` copies the files into the database",
        ),
        (StoreKind::Files, false) | (StoreKind::Shared, true) => {}
    }
    if store.value == StoreKind::Shared && dir.is_none() && broken.is_empty() {
        let problem = "`store: shared` needs `dir`, the folder of the scripts of local tools";
        problems.error(&place, problem, "write `registry: {store: shared, dir: ./tools}`");
    }
    Registry { dir: dir.map(|dir| explicit(dir, |dir| base.join(dir.text))), store }
}

pub(super) fn shared(
    raw: Option<At<RawShared>>,
    base: &Path,
    problems: &mut Problems,
) -> Option<Box<SharedConfig>> {
    let At { value: RawShared { url, ca, advertise, migrate, stale_max, broken, .. }, place } =
        raw?;
    let Some(url) = url else {
        if broken.is_empty() {
            let remedy = "write `shared: {url: \"${DATABASE_URL}\"}`";
            problems.error(&place, "`shared` needs the `url` of a database", remedy);
        }
        return None;
    };
    if !["postgres://", "postgresql://"].iter().any(|scheme| url.value.text.starts_with(scheme)) {
        let shown = without_secrets(url.value.shown());
        let problem = format!("`{shown}` is not the address of a PostgreSQL database");
        problems.error(&url.place, problem, "write such as postgres://haft@db.example.com/haft");
    }
    Some(Box::new(SharedConfig {
        url: explicit(url, Masked::address),
        ca: ca.map(|at| explicit(at, |file| base.join(file.text))),
        advertise: advertise.and_then(|at| http_address(at, REPLICA, problems)),
        migrate: pick(migrate, Migrate::Auto),
        stale_max: pick(stale_max.map(span), STALE_MAX_DEFAULT),
    }))
}

const REPLICA: (&str, &str) = ("a replica", "write such as http://10.0.0.7:7300");

/// Refuses settings that cannot hold for several replicas, and warns about those that hold for each alone.
pub(super) fn check(config: &Config, problems: &mut Problems) {
    if config.shared.is_none() {
        return;
    }
    let scripts = &config.policy.allowed_scripts;
    if scripts.value == AllowedScripts::Upload {
        problems.error(
            &place_of(&scripts.origin),
            "uploaded scripts would reach one replica only",
            "put the scripts into the folder `registry.dir` of every replica, and leave out `allowed_scripts`",
        );
    }
    for server in &config.servers {
        let remote = match &server.endpoint {
            Endpoint::Stdio(_) => continue,
            Endpoint::Http(remote) | Endpoint::Sse(remote) | Endpoint::Websocket(remote) => remote,
        };
        let grant = remote.oauth.as_ref().map(|oauth| oauth.grant);
        if grant == Some(OauthGrant::AuthorizationCode) {
            problems.error(
                &server.place,
                format!("the OAuth sign-in at `{}` would hold for one replica only", server.name),
                "use `grant: client_credentials`, or a token in `headers`",
            );
        }
    }
    warn_about_single_calls(config, problems);
}

fn warn_about_single_calls(config: &Config, problems: &mut Problems) {
    let defaults = config
        .servers
        .iter()
        .map(|it| (it.name.as_str(), &it.default_tool_config.parallel_capable));
    let tools = config.tools.iter().map(|it| (it.name.as_str(), &it.settings.parallel_capable));
    let local =
        config.local.iter().map(|it| (it.definition.name.as_str(), &it.settings.parallel_capable));
    for (name, parallel) in defaults.chain(tools).chain(local) {
        let Some(Setting { value: false, origin }) = parallel else { continue };
        problems.warn(
            &place_of(origin),
            format!("`parallel_capable: false` of `{name}` holds for each replica alone"),
            "run what must exist once behind a single Haft, and register that Haft by its address",
        );
    }
}

fn place_of(origin: &Origin) -> Place {
    match origin {
        Origin::Explicit(place) | Origin::ServerDefault(_, place) => place.clone(),
        Origin::Implied(_) | Origin::Format(_) | Origin::Default => Place::whole("shared"),
    }
}
