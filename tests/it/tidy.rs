//! Rules about the sources themselves: who may import whom, and what may stand nowhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// What every module may use, as the code map says.
const FREE: &[&str] = &["error", "config", "platform", "workspace", "fault"];

/// Crates that only one part of the program may know.
const HIDDEN: &[(&str, &str)] = &[
    ("rmcp", "src/transport/"),
    ("axum", "src/transport/"),
    ("hyper", "src/transport/"),
    ("rusqlite", "src/store/"),
    ("fs2", "src/seat.rs"),
];

/// Files that may be longer than 500 lines without their tests, and why.
const LONG: &[(&str, &str)] = &[];

/// All sources, by their paths from the top of the checkout.
pub(crate) fn sources() -> Vec<(String, String)> {
    let mut sources = Vec::new();
    collect(Path::new(env!("CARGO_MANIFEST_DIR")), "src", &mut sources);
    sources
}

fn collect(root: &Path, folder: &str, into: &mut Vec<(String, String)>) {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = format!("{folder}/{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            collect(root, &name, into);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The part of a file that is not its tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text)
}

/// `src/store/mod.rs` and `src/store/members.rs` are parts of the module `store`.
fn module(path: &str) -> &str {
    let path = path.strip_prefix("src/").unwrap();
    path.split(['/', '.']).next().unwrap()
}

/// What a file uses of the crate: the first words behind each `crate::`, also within braces.
fn used(text: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        let mut depth = 0;
        let mut word = String::new();
        let mut takes_word = true;
        for c in rest.chars() {
            match c {
                c if takes_word && (c.is_alphanumeric() || c == '_') => word.push(c),
                '{' => depth += 1,
                _ => {
                    if takes_word && !word.is_empty() {
                        used.insert(std::mem::take(&mut word));
                        takes_word = false;
                    }
                    match c {
                        '}' => depth -= 1,
                        ',' if depth == 1 => takes_word = true,
                        _ => {}
                    }
                }
            }
            if depth == 0 && (c == '}' || !takes_word) {
                break;
            }
        }
    }
    used
}

#[test]
fn imports_are_read_right() {
    let words = |text: &str| used(text).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(words("use crate::error::{Error, Result};"), "error");
    assert_eq!(words("use crate::{\n    a::{B, c::D},\n    e,\n    f::G,\n};"), "a e f");
    assert_eq!(words("let x = crate::view::text::count(n);"), "view");
}

/// The arrows that the code map in `lib.rs` draws: `cli -> commands, tools`.
fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    let map = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let map = map.replace("\n//! ", " ");
    let text = map.split("The arrows: ").nth(1).unwrap().split('.').next().unwrap();
    let arrows: BTreeMap<String, BTreeSet<String>> = text
        .split("; ")
        .map(|arrow| {
            let (from, to) = arrow.trim_matches('`').split_once(" -> ").expect("`from -> to, to`");
            (from.to_owned(), to.split(", ").map(str::to_owned).collect())
        })
        .collect();
    assert!(arrows.len() >= 6, "{arrows:?}");
    arrows
}

/// What lies below a module: where its arrows lead, and theirs.
fn below(arrows: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&String> = arrows.get(from).into_iter().flatten().collect();
    while let Some(module) = next.pop() {
        if found.insert(module.clone()) {
            next.extend(arrows.get(module).into_iter().flatten());
        }
    }
    assert!(!found.contains(from), "the arrows lead from {from} to itself");
    found
}

#[test]
fn arrows_point_down_only() {
    /// What the free ones may use of each other.
    const OF_EACH_OTHER: &[&str] = &["error", "config", "platform"];
    let arrows = arrows();
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let from = module(&path);
        if ["lib", "main"].contains(&from) || path.ends_with("/tests.rs") {
            continue;
        }
        let mut allowed = below(&arrows, from);
        let free = if FREE.contains(&from) { OF_EACH_OTHER } else { FREE };
        allowed.extend(free.iter().map(ToString::to_string));
        let used = used(without_tests(&text));
        let too_far = used.iter().filter(|to| *to != from && !allowed.contains(*to));
        wrong.extend(too_far.map(|to| format!("{path}: {from} -> {to}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn crates_stay_where_they_belong() {
    for (path, text) in sources() {
        for (name, place) in HIDDEN {
            let imports = text.contains(&format!("{name}::"));
            assert!(
                !imports || path.starts_with(place),
                "{path} uses {name}, which is for {place}"
            );
        }
    }
}

#[test]
fn files_have_one_subject() {
    let mut listed: BTreeSet<&str> = LONG.iter().map(|(path, _)| *path).collect();
    for (path, text) in sources() {
        if path.ends_with("/tests.rs") {
            continue;
        }
        let n_lines = without_tests(&text).lines().count();
        let is_listed = listed.remove(path.as_str());
        assert!(n_lines <= 500 || is_listed, "{path} has {n_lines} lines");
        assert!(n_lines > 500 || !is_listed, "{path} is not long any more: take it out of LONG");
    }
    assert!(listed.is_empty(), "LONG lists what is not there: {listed:?}");
}

/// A file that no `mod` names is not compiled, and nobody would notice.
#[test]
fn every_file_is_compiled() {
    for (path, text) in all_rust_files() {
        let Some((folder, name)) = path.rsplit_once('/') else { continue };
        if ["lib.rs", "main.rs"].contains(&name) || folder.starts_with("examples") {
            continue;
        }
        let (parents, module): (Vec<String>, &str) = if name == "mod.rs" {
            let (parent, module) = folder.rsplit_once('/').unwrap();
            (roots(parent), module)
        } else {
            (roots(folder), name.strip_suffix(".rs").unwrap())
        };
        let named = parents.iter().any(|parent| {
            let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(parent));
            text.is_ok_and(|text| {
                text.lines().any(|line| {
                    line.trim().trim_start_matches("pub ").trim_start_matches("pub(crate) ")
                        == format!("mod {module};")
                })
            })
        });
        assert!(named, "{path} is in no `mod` of {parents:?}");
        if name != "tests.rs" {
            assert!(text.starts_with("//!"), "{path} does not begin with what it is");
        }
    }
}

/// Where a module of this folder may be named.
fn roots(folder: &str) -> Vec<String> {
    ["mod.rs", "lib.rs", "main.rs"].iter().map(|name| format!("{folder}/{name}")).collect()
}

fn all_rust_files() -> Vec<(String, String)> {
    let mut files = sources();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["tests/it", "examples"] {
        collect(root, folder, &mut files);
    }
    files
}

#[test]
fn no_leftovers() {
    // Put together, so that this file has none of them.
    let banned = [
        ["/ho", "me/"].concat(),
        ["/wo", "rk/"].concat(),
        ["/ro", "ot/"].concat(),
        ["to", "do!"].concat(),
        ["FIX", "ME"].concat(),
        ["TO", "DO"].concat(),
        ["XX", "X:"].concat(),
    ];
    for (path, text) in all_rust_files() {
        for word in &banned {
            let found = text.lines().position(|line| line.contains(word));
            assert!(found.is_none(), "{path}:{} has {word}", found.unwrap_or_default() + 1);
        }
    }
}
