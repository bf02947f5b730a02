use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{Reason, Workspace};
use crate::{
    config::Config,
    error::{Error, Kind},
};

/// A folder `work` to play in, and beside it a `home`.
struct Place {
    _temp: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    fn new() -> Place {
        let temp = tempfile::tempdir().unwrap();
        let root = dunce::canonicalize(temp.path()).unwrap();
        fs::create_dir_all(root.join("home")).unwrap();
        Place { _temp: temp, root }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn dir(&self, path: &str) -> PathBuf {
        fs::create_dir_all(self.at(path)).unwrap();
        self.at(path)
    }

    #[expect(clippy::disallowed_methods, reason = "a fixture needs no atomic write")]
    fn file(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    /// A repository at `git_dir`, as git makes it.
    fn repository(&self, git_dir: &str, config: &str) {
        self.file(&format!("{git_dir}/HEAD"), "ref: refs/heads/main\n");
        self.file(&format!("{git_dir}/config"), config);
        self.dir(&format!("{git_dir}/objects"));
        self.dir(&format!("{git_dir}/refs"));
    }

    fn checkout(&self, path: &str) {
        self.repository(&format!("{path}/.git"), "[core]\n\tbare = false\n");
    }

    /// A linked worktree of the repository at `git_dir`, on the branch `topic`.
    fn worktree(&self, path: &str, git_dir: &str) {
        let own = format!("{git_dir}/worktrees/topic");
        self.file(&format!("{path}/.git"), &format!("gitdir: {}\n", self.at(&own).display()));
        self.file(&format!("{own}/HEAD"), "ref: refs/heads/topic\n");
        self.file(&format!("{own}/commondir"), "../..\n");
    }

    fn submodule(&self, path: &str, git_dir: &str) {
        let worktree = self.at(path).display().to_string().replace('\\', "/");
        self.repository(git_dir, &format!("[core]\nworktree = {worktree}\n"));
        self.file(&format!("{path}/.git"), &format!("gitdir: {}\n", self.at(git_dir).display()));
    }

    fn config(&self, cwd: &str) -> Config {
        Config { cwd: self.dir(cwd), home: Some(self.at("home")), ..Config::default() }
    }

    fn find(&self, cwd: &str) -> Workspace {
        Workspace::find(&self.config(cwd), None).unwrap()
    }

    fn refusal(&self, cwd: &str) -> Error {
        Workspace::find(&self.config(cwd), None).unwrap_err()
    }

    /// Asserts where an agent in `cwd` sits.
    #[track_caller]
    fn check(&self, cwd: &str, workspace: &str) -> Workspace {
        let found = self.find(cwd);
        let folder = self.at(workspace).join(".agent-comms");
        assert_eq!(found.folder.as_ref(), Some(&folder), "{}", found.reason);
        assert_eq!(found.table, folder.join("comms.db"));
        assert_eq!(found.seats, folder.join("seats"));
        found
    }
}

#[track_caller]
fn check_refused(err: &Error, kind: Kind, words: &str) {
    assert_eq!(err.kind(), kind, "{}", err.explain());
    assert!(err.explain().contains(words), "{}", err.explain());
}

#[cfg(unix)]
fn link(target: impl AsRef<Path>, at: impl AsRef<Path>) {
    std::os::unix::fs::symlink(target, at).unwrap();
}

#[test]
fn a_given_path_comes_first_and_is_absolute() {
    let place = Place::new();
    place.checkout("proj");
    place.dir("proj/.agent-comms");
    let mut config = place.config("proj/src");
    config.db = Some("../env.db".into());

    let found = Workspace::find(&config, None).unwrap();
    assert_eq!(found.table, place.at("proj/env.db"));
    assert_eq!(found.seats, place.at("proj/env.db.seats"));
    assert_eq!(found.reason.to_string(), "`TEAM_TABLE_DB` names it");
    assert_eq!((found.folder, found.checkout), (None, place.at("proj")));

    let found = Workspace::find(&config, Some(Path::new("x/../flag.db"))).unwrap_err();
    check_refused(&found, Kind::Usage, "whose folder is not there");
    let found = Workspace::find(&config, Some(Path::new("./flag.db"))).unwrap();
    assert_eq!(found.table, place.at("proj/src/flag.db"));
    assert_eq!(found.reason, Reason::Option);
}

#[test]
fn a_given_path_that_cannot_be_a_table_is_refused() {
    let place = Place::new();
    let config = place.config("work");
    for (path, words) in [
        ("", "which is a folder"),
        (".", "comms.db"),
        ("no/x.db", "make the folder first"),
        ("~/x.db", "`~` is not expanded"),
    ] {
        let err = Workspace::find(&config, Some(Path::new(path))).unwrap_err();
        check_refused(&err, Kind::Usage, words);
        assert!(err.to_string().starts_with("--db-path must name a file, got `"), "{err}");
    }
    let config = Config { db: Some("no/x.db".into()), ..config };
    let err = Workspace::find(&config, None).unwrap_err();
    assert!(err.to_string().starts_with("TEAM_TABLE_DB must name a file"), "{err}");
}

#[test]
fn a_given_path_makes_its_seats_only() {
    let place = Place::new();
    let found = Workspace::find(&place.config("work"), Some(Path::new("x.db"))).unwrap();
    found.make().unwrap();
    found.make().unwrap();
    let names: Vec<_> =
        fs::read_dir(place.at("work")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["x.db.seats"]);
}

#[test]
fn a_checkout_has_one_table_from_everywhere_in_it() {
    let place = Place::new();
    place.checkout("proj");
    for cwd in ["proj", "proj/src/deep", "proj/.git", "proj/.git/hooks"] {
        place.check(cwd, "proj");
    }
    for cwd in ["proj/src", "proj/.git/hooks"] {
        assert_eq!(place.find(cwd).reason, Reason::CheckoutTop { top: place.at("proj") });
    }
    let found = place.find("proj/src");
    assert_eq!((found.checkout, found.branch.as_deref()), (place.at("proj"), Some("main")));
    assert_eq!(found.warnings, [""; 0]);
}

#[test]
fn the_nearest_folder_wins_up_to_the_top() {
    let place = Place::new();
    place.dir(".agent-comms");
    place.checkout("proj");
    place.check("proj/a/b", "proj");
    place.dir("proj/.agent-comms");
    place.dir("proj/a/.agent-comms");
    let found = place.check("proj/a/b", "proj/a");
    assert!(found.reason.to_string().contains("is the nearest `.agent-comms`"), "{}", found.reason);
    place.check("proj/c", "proj");
    place.checkout("proj/a/vendored");
    place.check("proj/a/vendored/x", "proj/a/vendored");
}

#[test]
fn outside_git_the_search_ends_below_home() {
    let place = Place::new();
    place.dir(".agent-comms");
    place.dir("home/.agent-comms");
    place.dir("home/proj/.agent-comms");
    place.check("home/proj/src", "home/proj");
    place.check("home/other/src", "home/other/src");
    place.check("home", "home");
    let found = place.check("elsewhere/src", "elsewhere/src");
    assert!(found.reason.to_string().ends_with("no git checkout holds it"), "{}", found.reason);

    place.dir("elsewhere/.agent-comms");
    place.check("elsewhere/src", "elsewhere/src");
    for home in [None, Some("/".into()), Some("home".into()), Some(place.at("missing"))] {
        let config = Config { home, ..place.config("elsewhere/src") };
        let found = Workspace::find(&config, None).unwrap();
        assert_eq!(found.folder, Some(place.at("elsewhere/src/.agent-comms")));
    }
}

#[test]
fn an_empty_git_folder_is_no_checkout() {
    let place = Place::new();
    place.checkout("proj");
    place.dir("proj/sub/.git");
    let found = place.check("proj/sub/src", "proj");
    assert_eq!(found.checkout, place.at("proj"));
    place.dir("loose/.git");
    place.check("loose/src", "loose/src");
    place.file("garbage/.git", "nothing of git's\n");
    place.check("garbage/src", "garbage/src");
}

#[test]
fn a_linked_worktree_sits_at_the_main_checkouts_table() {
    let place = Place::new();
    place.checkout("proj");
    place.worktree("wt", "proj/.git");
    let found = place.check("wt/src", "proj");
    assert_eq!(
        found.reason,
        Reason::MainCheckout { checkout: place.at("wt"), main: place.at("proj") }
    );
    assert_eq!(found.checkout, place.at("wt"));
    assert_eq!(found.branch.as_deref(), Some("topic"));
    assert!(!place.at("proj/.agent-comms").exists());

    found.make().unwrap();
    let main = place.check("proj/src", "proj");
    assert_eq!(place.check("wt", "proj").table, main.table);
}

#[test]
fn a_worktrees_own_folder_is_named_and_not_used() {
    let place = Place::new();
    place.checkout("proj");
    place.worktree("proj/.claude/worktrees/x", "proj/.git");
    place.dir("proj/.claude/worktrees/x/.agent-comms");
    let found = place.check("proj/.claude/worktrees/x/src", "proj");
    assert_eq!(found.checkout, place.at("proj/.claude/worktrees/x"));
    let warning = found.warnings.first().unwrap();
    for folder in ["proj/.claude/worktrees/x/.agent-comms", "proj/.agent-comms"] {
        assert!(warning.contains(&place.at(folder).display().to_string()), "{warning}");
    }
}

#[test]
fn a_worktree_with_relative_paths_is_followed() {
    let place = Place::new();
    place.checkout("proj");
    place.worktree("wt", "proj/.git");
    place.file("wt/.git", "gitdir: ../proj/.git/worktrees/topic\r\n");
    place.check("wt", "proj");
}

#[test]
fn a_worktree_without_its_repository_stands_alone() {
    let place = Place::new();
    place.file("wt/.git", "gitdir: /nowhere/proj/.git/worktrees/topic\n");
    let found = place.check("wt/src", "wt");
    assert_eq!((found.checkout, found.branch), (place.at("wt"), None));
    assert!(found.warnings.first().unwrap().contains("/nowhere/proj"), "{:?}", found.warnings);
}

#[test]
fn worktrees_of_a_bare_repository_meet_beside_it() {
    let place = Place::new();
    for (project, git_dir) in [("a", "a/proj.git"), ("b", "b/.bare"), ("c", "c/.git")] {
        place.repository(git_dir, "[core]\n\tbare = true\n");
        place.worktree(&format!("{project}/wt"), git_dir);
        let found = place.check(&format!("{project}/wt/src"), project);
        assert_eq!(found.checkout, place.at(project).join("wt"));
        assert_eq!(found.reason, Reason::BesideRepository { repository: place.at(git_dir) });
        assert_eq!(found.warnings, [""; 0]);
        place.check(git_dir, project);
    }
    place.file("b/.git", "gitdir: ./.bare\n");
    place.check("b", "b");
    place.check("c", "c");
    // The setting moves when worktrees get settings of their own.
    place.file("a/proj.git/config", "[extensions]\nworktreeConfig = true\n");
    place.file("a/proj.git/config.worktree", "[core]\nbare = true\n");
    place.check("a/wt", "a");
    place.repository("a/other.git", "[core]\n\tbare = true\n");
    let warnings = place.check("a/wt", "a").warnings;
    assert!(warnings.first().unwrap().contains("a/other.git"), "{warnings:?}");
}

#[test]
fn a_main_checkout_elsewhere_is_found_where_git_notes_it() {
    let place = Place::new();
    place.repository("store/proj", "[core]\n\tbare = false\n\tworktree = ../../proj\n");
    place.file("proj/.git", &format!("gitdir: {}\n", place.at("store/proj").display()));
    place.worktree("wt", "store/proj");
    place.check("wt", "proj");
    place.check("proj/src", "proj");
    place.file("store/proj/config", "[core]\n\tbare = false\n");
    let found = place.check("wt", "store");
    assert!(found.warnings.first().unwrap().contains("TEAM_TABLE_DB"), "{:?}", found.warnings);
}

#[test]
fn a_submodule_belongs_to_the_project_around_it() {
    let place = Place::new();
    place.checkout("proj");
    place.submodule("proj/libs/sub", "proj/.git/modules/libs/sub");
    place.submodule("proj/libs/sub/inner", "proj/.git/modules/libs/sub/modules/inner");
    for cwd in ["proj/libs/sub/src", "proj/libs/sub/inner", "proj/.git/modules/libs/sub"] {
        place.check(cwd, "proj");
    }
    assert_eq!(place.find("proj/libs/sub").checkout, place.at("proj"));

    // Its worktree goes where it goes itself.
    place.worktree("subwt", "proj/.git/modules/libs/sub");
    let found = place.check("subwt", "proj");
    assert_eq!(found.checkout, place.at("subwt"));

    // In a worktree of the project, it is part of that worktree.
    place.worktree("wt", "proj/.git");
    place.submodule("wt/libs/sub", "proj/.git/worktrees/topic/modules/libs/sub");
    let found = place.check("wt/libs/sub", "proj");
    assert_eq!(found.checkout, place.at("wt"));

    place.dir("proj/libs/sub/.agent-comms");
    place.check("proj/libs/sub/src", "proj/libs/sub");
}

#[test]
fn worktrees_in_a_circle_come_to_an_end() {
    let place = Place::new();
    place.repository("proj/.git", "[core]\nworktree = ../../wt\n");
    place.worktree("wt", "proj/.git");
    place.find("wt/src");
    place.file("loop/.git", &format!("gitdir: {}\n", place.at("loop").display()));
    place.find("loop");
}

#[test]
fn the_head_names_the_branch() {
    let place = Place::new();
    place.checkout("proj");
    for (head, branch) in [
        ("ref: refs/heads/feature/x\n", Some("feature/x")),
        ("ref: refs/remotes/origin/x\n", Some("refs/remotes/origin/x")),
        ("ref: refs/heads/.invalid\n", None),
        ("ref: refs/heads/a\x1b[2J\n", None),
        ("0123456789abcdef0123456789abcdef01234567\n", Some("0123456")),
        ("", None),
    ] {
        place.file("proj/.git/HEAD", head);
        assert_eq!(place.find("proj").branch.as_deref(), branch, "{head}");
    }
}

#[test]
fn the_folder_is_made_private_and_ignored() {
    let place = Place::new();
    let found = place.find("work");
    found.make().unwrap();
    let folder = place.at("work/.agent-comms");
    assert_eq!(fs::read_to_string(folder.join(".gitignore")).unwrap(), "*\n");
    assert!(folder.join("seats").is_dir());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        for dir in [&folder, &folder.join("seats")] {
            assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        }
    }
    // A process died half-way; then a person wants the table in git after all.
    place.file("work/.agent-comms/.gitignore", "");
    found.make().unwrap();
    assert_eq!(fs::read_to_string(folder.join(".gitignore")).unwrap(), "*\n");
    place.file("work/.agent-comms/.gitignore", "seats\n");
    found.make().unwrap();
    assert_eq!(fs::read_to_string(folder.join(".gitignore")).unwrap(), "seats\n");
    fs::remove_file(folder.join(".gitignore")).unwrap();
    place.file("work/.agent-comms/comms.db", "");
    found.make().unwrap();
    assert!(!folder.join(".gitignore").exists());
}

#[cfg(unix)]
#[test]
fn many_make_the_folder_at_once_while_one_deletes_it() {
    let place = Place::new();
    let found = place.find("work");
    std::thread::scope(|scope| {
        let makers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..25 {
                        if let Err(err) = found.make() {
                            check_refused(&err, Kind::Busy, "deleted as fast as it is made");
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            for _ in 0..50 {
                fs::remove_dir_all(place.at("work/.agent-comms")).unwrap_or_default();
            }
        });
        for maker in makers {
            maker.join().unwrap();
        }
    });
    found.make().unwrap();
    fs::remove_dir_all(place.at("work")).unwrap();
    check_refused(&found.make().unwrap_err(), Kind::Storage, "cannot make the folder");
}

#[test]
fn what_is_no_folder_is_refused() {
    let place = Place::new();
    place.file("work/.agent-comms", "");
    check_refused(&place.refusal("work"), Kind::Refused, "it has to be a folder");
}

#[cfg(unix)]
#[test]
fn two_spellings_are_one_table() {
    let place = Place::new();
    place.checkout("proj");
    place.dir("proj/src");
    link(place.at("proj/src"), place.at("short"));
    let found = place.check("short", "proj");
    assert_eq!(found.checkout, place.at("proj"));
    place.file("work/real.db", "");
    link("real.db", place.at("work/alias.db"));
    let config = place.config("work");
    let found = Workspace::find(&config, Some(Path::new("alias.db"))).unwrap();
    assert_eq!(found.table, place.at("work/real.db"));
    link("missing.db", place.at("work/broken.db"));
    let err = Workspace::find(&config, Some(Path::new("broken.db"))).unwrap_err();
    check_refused(&err, Kind::Usage, "a symbolic link to nothing");
}

#[cfg(unix)]
#[test]
fn links_may_not_lead_out() {
    let place = Place::new();
    place.dir("outside/seats");
    place.file("outside/comms.db", "");
    place.checkout("proj");
    place.dir("proj/.state");
    link(".state", place.at("proj/.agent-comms"));
    assert_eq!(place.find("proj/src").table, place.at("proj/.state/comms.db"));

    link(place.at("outside"), place.dir("proj/out").join(".agent-comms"));
    check_refused(&place.refusal("proj/out"), Kind::Refused, "it must not lead out of");
    link("nothing", place.dir("proj/broken").join(".agent-comms"));
    check_refused(&place.refusal("proj/broken"), Kind::Refused, "what is not there");
    for name in ["comms.db", "seats"] {
        let folder = place.dir(&format!("proj/{name}/.agent-comms"));
        link(place.at("outside").join(name), folder.join(name));
        check_refused(&place.refusal(&format!("proj/{name}")), Kind::Refused, "lead out of");
    }
    place.file("proj/own/.agent-comms/real.db", "");
    link("real.db", place.at("proj/own/.agent-comms/comms.db"));
    assert_eq!(place.find("proj/own").table, place.at("proj/own/.agent-comms/real.db"));
    // A worktree's link to the folder that is used anyway needs no warning.
    place.worktree("wt", "proj/.git");
    link(place.at("proj/.state"), place.at("wt/.agent-comms"));
    assert_eq!(place.find("wt").warnings, [""; 0]);
}

#[cfg(unix)]
#[test]
fn what_belongs_to_others_is_passed_over() {
    let place = Place::new();
    let theirs = place.dir("home/proj/.agent-comms");
    if std::os::unix::fs::chown(&theirs, Some(12345), None).is_err() {
        println!("skipped: only root can give a folder away");
        return;
    }
    let found = place.check("home/proj/src", "home/proj/src");
    assert!(found.warnings.first().unwrap().contains("another user"), "{:?}", found.warnings);
    check_refused(&place.refusal("home/proj"), Kind::Refused, "belongs to another user");
    place.checkout("home/proj");
    check_refused(&place.refusal("home/proj/src"), Kind::Refused, "--db-path");
    place.dir("home/proj/src/.agent-comms");
    place.check("home/proj/src", "home/proj/src");

    let found = place.find("work");
    let folder = place.dir("work/.agent-comms");
    std::os::unix::fs::chown(&folder, Some(12345), None).unwrap();
    check_refused(&found.make().unwrap_err(), Kind::Refused, "belongs to another user");
}

/// The fixtures above are made by hand; this one is git's own.
#[test]
fn real_git_is_understood() {
    let place = Place::new();
    let git = |cwd: &str, line: &str| {
        Command::new("git")
            .args(["-c", "user.name=x", "-c", "user.email=x@x", "-c", "protocol.file.allow=always"])
            .args(line.split(' '))
            .current_dir(place.dir(cwd))
            .output()
            .is_ok_and(|output| output.status.success())
    };
    if !git("proj", "init -q -b main") {
        println!("skipped: git is not installed");
        return;
    }
    for (cwd, line) in [
        ("proj", "commit -q --allow-empty -m x"),
        ("proj", "worktree add -q ../wt -b topic"),
        ("proj", "worktree add -q --detach .claude/worktrees/x"),
        (".", "clone -q --bare proj bare/proj.git"),
        ("bare/proj.git", "worktree add -q ../wt"),
        ("wt", "submodule add -q ../proj sub"),
        ("proj", "submodule add -q ../proj sub"),
    ] {
        assert!(git(cwd, line), "git {line}");
    }
    for (cwd, workspace, checkout) in [
        ("proj/src", "proj", "proj"),
        ("wt/src", "proj", "wt"),
        ("proj/.claude/worktrees/x", "proj", "proj/.claude/worktrees/x"),
        ("bare/wt", "bare", "bare/wt"),
        ("wt/sub", "proj", "wt"),
        ("proj/sub/src", "proj", "proj"),
    ] {
        assert_eq!(place.check(cwd, workspace).checkout, place.at(checkout), "{cwd}");
    }
    assert_eq!(place.find("wt").branch.as_deref(), Some("topic"));
    assert_eq!(place.find("proj/.claude/worktrees/x").branch.unwrap().len(), 7);
}

#[test]
fn other_tables_around_here_are_found() {
    use super::Whereabouts::{self, Above, Below, Checkout, Usual, Variable};

    let place = Place::new();
    place.checkout("up/proj");
    place.worktree("wt", "up/proj/.git");
    place.file(
        "up/proj/.git/worktrees/topic/gitdir",
        &format!("{}\n", place.at("wt/.git").display()),
    );
    for dir in ["up", "up/proj", "wt", "up/proj/a/b", "up/proj/node_modules"] {
        place.file(&format!("{dir}/.agent-comms/comms.db"), "");
    }
    place.file("named.db", "");
    let check = |config: &Config, db_path: Option<&str>, expected: &[(Whereabouts, &str)]| {
        let found = Workspace::find(config, db_path.map(Path::new)).unwrap().nearby(config);
        let found: Vec<_> = found.into_iter().map(|it| (it.place, it.table)).collect();
        let expected: Vec<_> = expected.iter().map(|(it, path)| (*it, place.at(path))).collect();
        assert_eq!(found, expected);
    };
    let (up, own) = ("up/.agent-comms/comms.db", "up/proj/.agent-comms/comms.db");
    let (wt, below) = ("wt/.agent-comms/comms.db", "up/proj/a/b/.agent-comms/comms.db");
    check(&place.config("up/proj"), None, &[(Checkout, wt), (Above, up), (Below, below)]);
    check(&place.config("wt"), None, &[(Checkout, wt)]);
    check(&place.config("up/proj/a/b"), None, &[(Checkout, own), (Checkout, wt), (Above, up)]);
    let named = Config { db: Some(place.at("named.db")), ..place.config("up/proj") };
    let others = [(Usual, own), (Checkout, wt), (Above, up), (Below, below)];
    check(&named, None, &others);
    let other = place.at(wt).display().to_string();
    check(
        &named,
        Some(&other),
        &[(Variable, "named.db"), (Usual, own), (Above, up), (Below, below)],
    );
}
