//! The token folder.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use url::Url;

use crate::oauth::{AuthError, Grant, Secret, TokenStore, grant::GrantClient};

fn grant(token: &str) -> Grant {
    Grant {
        server: "https://mcp.example/mcp".into(),
        issuer: Some("https://auth.example".into()),
        client: GrantClient {
            id: "id".into(),
            secret: None,
            redirect: "http://127.0.0.1:1/".into(),
        },
        access_token: Secret::new(token),
        refresh_token: Some(Secret::new(token)),
        refresh_at: None,
        expires_at: Some(4_000_000_000),
        scopes: vec!["read".into()],
    }
}

fn server() -> Url {
    Url::parse("https://mcp.example/mcp?key=canary").unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn only_the_owner_can_read_the_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("deep/tokens");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let store = TokenStore::new(&folder);
    store.save(&server(), &grant("one")).unwrap();
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    assert_eq!(mode(file), 0o600);
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(!name.contains("canary") && name.len() == 37, "{name}");
}

#[test]
fn what_was_saved_is_loaded_until_signing_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = TokenStore::new(folder.path().join("tokens"));
    assert_eq!(store.load(&server()).unwrap(), None);
    assert!(!store.logout(&server()).unwrap());
    store.save(&server(), &grant("one")).unwrap();
    assert_eq!(store.load(&server()).unwrap(), Some(grant("one")));
    assert_eq!(store.load(&Url::parse("https://other.example/").unwrap()).unwrap(), None);
    assert!(store.logout(&server()).unwrap());
    assert_eq!(store.load(&server()).unwrap(), None);
}

#[test]
fn readers_never_see_half_a_file_and_writers_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let store = TokenStore::new(folder.path());
    let values = ["short".to_owned(), "long".repeat(20_000)];
    store.save(&server(), &grant(&values[0])).unwrap();
    std::thread::scope(|scope| {
        for value in &values {
            scope.spawn(|| {
                for _ in 0..20 {
                    store.save(&server(), &grant(value)).unwrap();
                }
            });
        }
        for _ in 0..200 {
            let loaded = store.load(&server()).unwrap().unwrap();
            assert!(values.iter().any(|value| loaded == grant(value)));
        }
    });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn signing_out_removes_what_a_dead_writer_left() {
    let folder = tempfile::tempdir().unwrap();
    let store = TokenStore::new(folder.path());
    store.save(&server(), &grant("one")).unwrap();
    let file = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    fs::write(file.with_extension("1-2.tmp"), "canary").unwrap();
    fs::write(folder.path().join("other.1-2.tmp"), "another server's").unwrap();
    assert!(store.logout(&server()).unwrap());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_damaged_file_is_named_but_not_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let store = TokenStore::new(folder.path());
    store.save(&server(), &grant("one")).unwrap();
    let file = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    fs::write(&file, "{\"server\": 5, \"canary\"").unwrap();
    let error = store.load(&server()).unwrap_err();
    assert!(matches!(&error, AuthError::Unreadable { path } if path == &file), "{error}");
    assert!(!format!("{error:?}").contains("canary"));
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = TokenStore::new(&file).save(&server(), &grant("one")).unwrap_err();
    let expected = format!("could not make a private folder of `{}`", file.display());
    assert_eq!(error.to_string(), expected);
}
