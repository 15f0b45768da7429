//! Planted violations are found, ordinary English passes.

use std::path::PathBuf;

use super::*;

fn report(files: &[(&str, &str)]) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = files
        .iter()
        .map(|(name, text)| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        })
        .collect();
    let mut report = Section { name: "planted".into(), files: paths }.check().unwrap();
    let prefix = format!("{}/", folder.path().display());
    for found in [&mut report.words, &mut report.openings, &mut report.duplicates] {
        for place in found {
            *place = place.replace(&prefix, "");
        }
    }
    report
}

#[test]
fn listed_words_are_found_in_comments_and_messages() {
    let text = "\
        // Nobody reads this, and the caller is\n\
        // told nothing.\n\
        fn f(r: char) -> &'static str {\n\
            let _ = ('\"', '\\'', r\"a sound\");\n\
            \"the key is no key\" // Once more.\n\
        }\n";
    let found = report(&[("src/lib.rs", text), ("README.md", "Plain.\nThe latest news.\n")]);
    let expected = [
        "src/lib.rs:1: `Nobody`",
        "src/lib.rs:1: `is told`",
        "src/lib.rs:4: `sound`",
        "src/lib.rs:5: `is no`",
        "src/lib.rs:5: `Once more`",
        "README.md:2: `news`",
    ];
    assert_eq!(found.words, expected);
    assert_eq!(found.comment_lines, 5);
}

#[test]
fn ordinary_english_passes() {
    let text = "\
        // There is no limit at the moment; it is no longer needed. A text file is no larger than that.\n\
        // The `else` branch sends a textual description; newspapers and amendments are words too.\n\
        fn nobody() -> &'static str { \"nobody\" }\n";
    assert_eq!(report(&[("src/lib.rs", text)]).words, Vec::<String>::new());
}

#[test]
fn code_spans_of_markdown_are_not_prose() {
    let text = "| `nobody`, `news` | the caller |\n```sh\nThe latest `news` and a picture.\nA tick ` and news.\n";
    let found = report(&[("README.md", text)]);
    assert_eq!(found.words, ["README.md:3: `picture`", "README.md:4: `news`"]);
}

#[test]
fn messages_of_tests_are_not_checked() {
    let text = "// Nobody.\nfn f() { panic!(\"nobody came\") }\n";
    assert_eq!(report(&[("tests/main.rs", text)]).words, ["tests/main.rs:1: `Nobody`"]);
}

#[test]
fn doc_comments_that_open_with_a_question_are_found() {
    let text = "\
        //! What this module does.\n\
        //! How it does it.\n\n\
        /// The limit.\n\
        /// Whether it is kept is another matter.\n\
        struct A;\n\
        /// Whether it applies.\n\
        struct B;\n\
        /// However large.\n\
        struct C;\n";
    let expected = [
        "src/lib.rs:1: doc comment opens with `What`",
        "src/lib.rs:7: doc comment opens with `Whether`",
    ];
    assert_eq!(report(&[("src/lib.rs", text)]).openings, expected);
}

#[test]
fn a_public_type_is_defined_once_in_a_crate() {
    let found = report(&[
        (
            "src/lib.rs",
            "pub struct Entry;\nstruct Own;\n#[cfg(test)]\nmod tests { pub struct Entry; }\n",
        ),
        ("src/a.rs", "pub(crate) enum Entry {}\nstruct Own;\n"),
        ("src/bin/tool/main.rs", "pub struct Entry;\n"),
    ]);
    assert_eq!(found.duplicates, ["`Entry`: src/lib.rs:1, src/a.rs:1"]);
}

#[test]
fn limits_are_enforced_and_allowances_raise_them() {
    let allowances =
        Allowances::parse("# crate words openings duplicates\nplanted 1 1 0\n").unwrap();
    let report = report(&[("src/lib.rs", "/// What nobody hears.\nstruct A;\n")]);
    let failures = |name| report.failures("planted", &allowances.of(name));
    let words = "planted: 2 listed words, at most 1\n    src/lib.rs:1: `nobody`\n    src/lib.rs:1: `hears`\n";
    assert_eq!(failures("planted"), [words]);
    assert_eq!(failures("unlisted").len(), 2);
}

#[test]
fn two_words_in_a_thousand_lines_are_too_many() {
    let lines = |words: usize| "// Nobody.\n".repeat(words) + &"// Plain.\n".repeat(1000 - words);
    let failures = |words| {
        report(&[("src/lib.rs", &lines(words))]).failures("planted", &Counts::default()).len()
    };
    assert_eq!((failures(1), failures(2)), (0, 1));
}

#[test]
fn allowances_are_three_numbers() {
    Allowances::parse("planted 1 2").unwrap_err();
    Allowances::parse("planted 1 2 many").unwrap_err();
}
