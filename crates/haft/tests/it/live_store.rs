//! A registry in a folder: a change of both files is applied or not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use haft::config::{Config, LoadOptions};
use haft::live::{Documents, FolderStore, RegistryStore, StoreError, Stored};

/// The folder for [`commits_until_it_is_killed`].
const FOLDER: &str = "HAFT_TEST_REGISTRY";

/// Documents for `n`, each in its own form.
fn documents(n: u64) -> Documents {
    Documents {
        tools: format!(r#"{{"tools": [{{"name": "t{n}", "type": "mcp"}}]}}"#),
        servers: format!(
            r#"{{"mcp_servers": {{"s{n}": {{"url": "http://localhost:9/mcp", "start": "lazy"}}}}}}"#
        ),
    }
}

fn registry() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &documents(0));
    folder
}

fn write(dir: &Path, Documents { tools, servers }: &Documents) {
    fs::write(dir.join("tools.json"), tools).unwrap();
    fs::write(dir.join("mcp.json"), servers).unwrap();
}

async fn load(dir: &Path) -> Stored {
    FolderStore::new(dir).load().await.unwrap()
}

/// The names of the tool's entry and the server that a start with this folder finds.
fn loaded(dir: &Path) -> (String, String) {
    let options = LoadOptions {
        files: vec![dir.to_path_buf()],
        cwd: dir.to_path_buf(),
        ..LoadOptions::default()
    };
    let config = Config::load(&options).unwrap_or_else(|error| panic!("{error}"));
    (config.tools[0].name.clone(), config.servers[0].name.clone())
}

/// Files in the folder beside the two and the lock.
fn leftovers(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| !["tools.json", "mcp.json", ".haft.lock"].contains(&name.as_str()))
        .collect()
}

/// The child of the next test. By itself it has nothing to do.
#[tokio::test]
#[ignore = "started by a_change_of_both_files_survives_a_kill"]
async fn commits_until_it_is_killed() {
    let Ok(dir) = std::env::var(FOLDER) else { return };
    let store = FolderStore::new(&dir);
    let mut revision = store.load().await.unwrap().revision;
    for n in 1.. {
        revision = store.commit(&revision, &documents(n)).await.unwrap();
    }
}

/// Whenever the process is killed, both files agree: at a start, in a store, and on disk
/// afterwards.
#[tokio::test]
async fn a_change_of_both_files_survives_a_kill() {
    let folder = registry();
    let dir = folder.path();
    for round in 0..25_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "live_store::commits_until_it_is_killed", "--ignored"])
            .env(FOLDER, dir)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Waits until it is writing: the files change, and then a little longer each time.
        let before = fs::read_to_string(dir.join("mcp.json")).unwrap();
        while fs::read_to_string(dir.join("mcp.json")).unwrap() == before {
            assert!(child.try_wait().unwrap().is_none(), "the writer ended");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_micros(round * 170)).await;
        child.kill().unwrap();
        child.wait().unwrap();

        let (tool, server) = loaded(dir);
        assert_eq!(tool.strip_prefix('t'), server.strip_prefix('s'), "as a start sees it");
        let n: u64 = tool[1..].parse().unwrap();
        assert_eq!(load(dir).await.documents, documents(n), "as a store sees it");
        for (name, text) in [("tools.json", documents(n).tools), ("mcp.json", documents(n).servers)]
        {
            assert_eq!(fs::read_to_string(dir.join(name)).unwrap(), text, "on disk");
        }
    }
}

/// If the second file cannot be written, the first stays as it was.
#[tokio::test]
async fn a_second_file_that_cannot_be_written_leaves_the_first() {
    let folder = registry();
    let dir = folder.path();
    let store = FolderStore::new(dir);
    let revision = store.load().await.unwrap().revision;
    // A folder in the place of the draft cannot be replaced by a file.
    fs::create_dir_all(dir.join(".mcp.json.new/x")).unwrap();
    let refused = store.commit(&revision, &documents(1)).await;
    assert!(matches!(refused, Err(StoreError::Write { .. })), "{refused:?}");
    assert_eq!(load(dir).await.documents, documents(0));
    fs::remove_dir_all(dir.join(".mcp.json.new")).unwrap();
    store.commit(&revision, &documents(1)).await.unwrap();
    assert_eq!(load(dir).await.documents, documents(1));
    assert_eq!(leftovers(dir), [""; 0]);
}

/// A file that was edited by hand after an interrupted change is not written over.
#[tokio::test]
async fn an_edit_by_hand_after_an_interruption_stands() {
    let folder = registry();
    let dir = folder.path();
    let journal = r#"{"version": 1, "tools": {"before": "", "after": "{\"tools\": []}"},
                      "servers": {"before": "", "after": "{\"mcp_servers\": {}}"}}"#;
    fs::write(dir.join(".haft.journal"), journal).unwrap();
    assert_eq!(loaded(dir), ("t0".to_owned(), "s0".to_owned()));
    assert_eq!(load(dir).await.documents, documents(0));
    assert_eq!(leftovers(dir), [""; 0]);
}

/// Files that are links to another folder are replaced there.
#[tokio::test]
async fn links_stay_links() {
    let folder = registry();
    let (dir, outside) = (folder.path(), tempfile::tempdir().unwrap());
    fs::rename(dir.join("mcp.json"), outside.path().join("mcp.json")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("mcp.json"), dir.join("mcp.json")).unwrap();
    let store = FolderStore::new(dir);
    let revision = store.load().await.unwrap().revision;
    store.commit(&revision, &documents(1)).await.unwrap();
    assert!(fs::symlink_metadata(dir.join("mcp.json")).unwrap().is_symlink());
    let text = fs::read_to_string(outside.path().join("mcp.json")).unwrap();
    assert_eq!(text, documents(1).servers);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1, "no drafts");
}

/// A journal that cannot be read is an error with a remedy, for a start and for a store.
#[tokio::test]
async fn a_journal_that_cannot_be_read_is_an_error() {
    let folder = registry();
    let dir = folder.path();
    for text in ["", "{}", r#"{"version": 2}"#] {
        fs::write(dir.join(".haft.journal"), text).unwrap();
        let refused = FolderStore::new(dir).load().await.unwrap_err();
        assert!(refused.to_string().contains(".haft.journal"), "{refused}");
        let options = LoadOptions { files: vec![dir.to_path_buf()], ..LoadOptions::default() };
        let refused = Config::load(&options).unwrap_err();
        assert!(refused.to_string().contains(".haft.journal"), "{refused}");
    }
}

/// Drafts and the journal are their user's own, and a file keeps its permissions.
#[tokio::test]
async fn permissions_stay_and_new_files_are_private() {
    let folder = registry();
    let dir = folder.path();
    let mode = |name: &str| fs::metadata(dir.join(name)).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(dir.join("tools.json"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::set_permissions(dir.join("mcp.json"), fs::Permissions::from_mode(0o600)).unwrap();
    let store = FolderStore::new(dir);
    let revision = store.load().await.unwrap().revision;
    store.commit(&revision, &documents(1)).await.unwrap();
    assert_eq!((mode("tools.json"), mode("mcp.json"), mode(".haft.lock")), (0o640, 0o600, 0o600));
}
