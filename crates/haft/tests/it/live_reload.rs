//! Following files that are changed by hand.

use std::fs;
use std::path::Path;

use haft::Status;
use haft::live::{Live, RegistryEditError, ReloadError};
use serde_json::json;
use tokio::task::JoinSet;

use super::live_support::{Place, add, call, echo, end, made, names, refused};

/// Waits until following has come to what `is_so` wants.
fn until(live: &Live, is_so: impl Fn(&Live) -> bool) {
    tokio::task::block_in_place(|| {
        testkit::eventually("the change is taken over", || is_so(live).then_some(()));
    });
}

fn has_problem(live: &Live) -> bool {
    live.status().problem.is_some()
}

/// Writes as editors do: a new file takes the old one's name.
fn save(path: &Path, text: &str) {
    let draft = path.with_extension("draft");
    fs::write(&draft, text).unwrap();
    fs::rename(draft, path).unwrap();
}

fn tools(names: &[&str]) -> String {
    json!({"tools": names.iter().map(|name| echo(name)).collect::<Vec<_>>()}).to_string()
}

/// Proves S0-83: tools that are written into the registry or the configuration by hand are there
/// without a restart.
#[tokio::test(flavor = "multi_thread")]
async fn files_changed_by_hand_are_taken_over() {
    let place = Place::new("");
    let live = place.start().await;
    save(&place.tools_file(), &tools(&["one"]));
    until(&live, |live| names(live) == ["one"]);
    fs::write(place.tools_file(), tools(&["one", "two"])).unwrap();
    until(&live, |live| names(live).len() == 2);
    assert_eq!(call(&live, "two").await.status, Status::Success);
    let yaml = "registry: {dir: tools}\ndefaults: {max_concurrent: 3}\n";
    save(&place.path("haft.yaml"), yaml);
    until(&live, |live| live.runtime().config().defaults.max_concurrent.value == 3);
    end(live).await;
}

/// The configuration may lie in the registry's own folder, and is followed there too.
#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_beside_its_registry_is_followed() {
    let place = Place::new("");
    for file in ["tools.json", "mcp.json"] {
        fs::copy(place.path("tools").join(file), place.path(file)).unwrap();
    }
    fs::write(place.path("haft.yaml"), "registry: {dir: .}\n").unwrap();
    let live = place.start().await;
    save(&place.path("haft.yaml"), "registry: {dir: .}\ndefaults: {max_concurrent: 3}\n");
    until(&live, |live| live.runtime().config().defaults.max_concurrent.value == 3);
    save(&place.path("tools.json"), &tools(&["one"]));
    until(&live, |live| names(live) == ["one"]);
    end(live).await;
}

/// A kind of damage to a file.
type Damage = (&'static str, fn(&Path));

/// Proves S2-Q-04: a registry that is deleted, truncated or malformed while Haft runs leaves the
/// last good state in use, with the reason, and is never overwritten.
#[tokio::test(flavor = "multi_thread")]
async fn broken_files_leave_the_last_good_state_in_use() {
    let place = Place::new("");
    let live = place.start().await;
    made(&live, add("echo")).await;
    let good = fs::read_to_string(place.tools_file()).unwrap();
    let damages: [Damage; 6] = [
        ("deleted", |file| fs::remove_file(file).unwrap()),
        ("truncated", |file| fs::write(file, "").unwrap()),
        ("half", |file| fs::write(file, "{\"tools\": [{\"name\": \"ec").unwrap()),
        ("pipe", |file| {
            fs::remove_file(file).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(file).status().unwrap().success());
        }),
        ("device", |file| {
            fs::remove_file(file).unwrap();
            std::os::unix::fs::symlink("/dev/zero", file).unwrap();
        }),
        ("invalid", |file| fs::write(file, "{\"tools\": [{\"name\": 7}]}").unwrap()),
    ];
    for (what, damage) in damages {
        damage(&place.tools_file());
        until(&live, has_problem);
        assert_eq!(names(&live), ["echo"], "{what}");
        assert_eq!(call(&live, "echo").await.status, Status::Success, "{what}");
        let problem = live.status().problem.unwrap();
        assert!(problem.text.contains("tools.json"), "{what}: {}", problem.text);
        let bytes = || {
            fs::metadata(place.tools_file()).ok()?.is_file().then(|| fs::read(place.tools_file()))
        };
        let now = bytes().map(Result::unwrap);
        let error = refused(&live, add("other")).await;
        let is_explained = matches!(
            error,
            RegistryEditError::Broken { .. }
                | RegistryEditError::Store(_)
                | RegistryEditError::Invalid(_)
        );
        assert!(is_explained, "{what}: {error:?}");
        assert_eq!(bytes().map(Result::unwrap), now, "{what}");
        let error = live.reload().await.unwrap_err();
        assert!(matches!(error, ReloadError::Invalid(_) | ReloadError::Store(_)), "{error:?}");
        // A link or a pipe is replaced, and not written to.
        save(&place.tools_file(), &good);
        until(&live, |live| !has_problem(live));
    }
    end(live).await;
}

/// A broken configuration is not an edit's fault, and no edit is made on top of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_configuration_is_named_when_an_edit_is_refused() {
    let place = Place::new("");
    let live = place.start().await;
    save(&place.path("haft.yaml"), "registry: {dir: tools}\nnonsense: 1\n");
    until(&live, has_problem);
    let error = refused(&live, add("echo")).await;
    assert!(
        matches!(&error, RegistryEditError::Broken { file, .. } if file == "haft.yaml"),
        "{error:?}"
    );
    end(live).await;
}

/// A write of another process between reading and writing is not lost.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_may_share_a_registry() {
    let place = Place::new("");
    let (one, other) = (place.start().await, place.start().await);
    let mut writing = JoinSet::new();
    for at in 0..20 {
        let live = if at % 2 == 0 { one.clone() } else { other.clone() };
        writing.spawn(async move { made(&live, add(&format!("tool_{at}"))).await });
    }
    writing.join_all().await;
    until(&one, |live| names(live).len() == 20);
    until(&other, |live| names(live).len() == 20);
    end(one).await;
    end(other).await;
}

/// Changed settings that need a restart are reported.
#[tokio::test(flavor = "multi_thread")]
async fn settings_that_need_a_restart_are_named() {
    let place = Place::new("");
    let live = place.start().await;
    let yaml =
        "registry: {dir: tools}\napi: {listen: '127.0.0.1:1'}\ntelemetry: {service_name: x}\n";
    save(&place.path("haft.yaml"), yaml);
    live.reload().await.unwrap();
    assert_eq!(live.status().waiting_for_restart, ["api.listen", "telemetry.service_name"]);
    save(&place.path("haft.yaml"), "registry: {dir: tools}\n");
    live.reload().await.unwrap();
    assert_eq!(live.status().waiting_for_restart, [""; 0]);
    end(live).await;
}

/// A registry that is moved while Haft runs would be read in one place and written in another.
#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_moves_is_refused() {
    let place = Place::new("");
    let live = place.start().await;
    made(&live, add("echo")).await;
    fs::create_dir(place.path("other")).unwrap();
    fs::write(place.path("other/tools.json"), tools(&["elsewhere"])).unwrap();
    fs::write(place.path("other/mcp.json"), "{\"mcp_servers\": {}}").unwrap();
    for yaml in ["registry: {dir: other}\n", "defaults: {}\n"] {
        save(&place.path("haft.yaml"), yaml);
        let error = live.reload().await.unwrap_err();
        assert!(error.to_string().contains("the registry is another"), "{error}");
        let error = refused(&live, add("more")).await;
        assert!(
            matches!(&error, RegistryEditError::Broken { file, .. } if file == "haft.yaml"),
            "{error:?}"
        );
        assert_eq!(names(&live), ["echo"]);
    }
    end(live).await;
}

/// A file that is changed and changed back between two looks is followed: what counts is what is in use.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_taken_back_at_once_is_followed() {
    let place = Place::new("");
    let live = place.start().await;
    // Repeated, because it depends on timing.
    for _ in 0..3 {
        save(&place.tools_file(), &tools(&["a"]));
        until(&live, |live| live.runtime().tool("a").is_some());
        save(&place.tools_file(), "{\"tools\": []}");
        until(&live, |live| live.runtime().tool("a").is_none());
    }
    end(live).await;
}
