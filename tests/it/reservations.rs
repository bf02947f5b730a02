//! Reservations: what a path means, where it may lead, in which checkout; limits; what lapses.

use std::{fs, path::Path};

use serde_json::{Value, json};
use team_table::config::Config;

use crate::support::{NOW, Table, desk::InProcess};

fn call(desk: &mut InProcess, command: &str, arguments: Value) -> String {
    desk.call(command, arguments).unwrap().text()
}

/// A workspace with some files, and a desk in one of its folders.
struct Tree(Table);

impl Tree {
    fn new() -> Tree {
        let table = Table::new();
        for folder in [".git", "src/db", "web/app/[id]", "web/src"] {
            fs::create_dir_all(table.path().join(folder)).unwrap();
        }
        for file in [".git/HEAD", "src/db/pool.rs", "Makefile", "web/app/[id]/page.tsx", "web/x.ts"]
        {
            fs::File::create(table.path().join(file)).unwrap();
        }
        Tree(table)
    }

    /// What a path written in that folder is taken for.
    fn pattern_in(&self, folder: &str, written: &str) -> String {
        let cwd = self.0.path().join(folder);
        let config = Config { cwd, ..Config::default() };
        let workspace = team_table::workspace::Workspace::find(&config, None).unwrap();
        workspace.pattern(written).unwrap_or_else(|err| format!("error: {}", err.explain()))
    }

    #[track_caller]
    fn check(&self, written: &str, expected: &str) {
        assert_eq!(self.pattern_in("", written), expected, "{written}");
    }

    fn top(&self) -> String {
        dunce::canonicalize(self.0.path()).unwrap().display().to_string()
    }
}

#[test]
fn what_a_path_means() {
    let tree = Tree::new();
    tree.check("src/db/pool.rs", "src/db/pool.rs");
    tree.check("./src//db/./pool.rs", "src/db/pool.rs");
    tree.check("src", "src/");
    tree.check("src/db/", "src/db/");
    tree.check("Makefile", "Makefile");
    // Not there yet.
    tree.check("src/new.rs", "src/new.rs");
    tree.check("src/new", "src/new/");
    tree.check("src/.hidden", "src/.hidden/");
    tree.check("v1.2/", "v1.2/");
    // Patterns.
    tree.check("src/db/**", "src/db/**");
    tree.check("src/*", "src/**");
    tree.check("src/*.rs", "src/*.rs");
    tree.check("*.rs", "**/*.rs");
    tree.check("./*.rs", "*.rs");
    tree.check("test_*", "**/test_*/");
    tree.check(".", "**");
    tree.check("**", "**");
    // What is there by that name is meant by it.
    tree.check("web/app/[id]/page.tsx", "web/app/\\[id\\]/page.tsx");
    tree.check("web/app/[id]/new.tsx", "web/app/\\[id\\]/new.tsx");
    tree.check("web/app/\\[id\\]/*.tsx", "web/app/\\[id\\]/*.tsx");
    tree.check("web/app/[ab]/page.tsx", "web/app/[ab]/page.tsx");
    // Absolute paths inside.
    let top = tree.top();
    tree.check(&format!("{top}/src/db/pool.rs"), "src/db/pool.rs");
    tree.check(&format!("{top}/src/*.rs"), "src/*.rs");
    tree.check(&format!("{top}/*.rs"), "*.rs");
    tree.check(&top, "**");
}

#[test]
fn what_leads_out() {
    let tree = Tree::new();
    let top = tree.top();
    let taken = format!(
        "hint: paths are taken from the top of your checkout, `{top}`: such as `src/db/pool.rs` or \
         `src/db/**`"
    );
    tree.check("../x", &format!("error: `../x` has `..` in it\n{taken}"));
    tree.check("src/../../x", &format!("error: `src/../../x` has `..` in it\n{taken}"));
    tree.check("/etc/passwd", &format!("error: `/etc/passwd` is outside your checkout\n{taken}"));
    let beside = format!("{top}x/src");
    tree.check(&beside, &format!("error: `{beside}` is outside your checkout\n{taken}"));
    tree.check("~/x", &format!("error: `~` is not expanded: `~/x`\n{taken}"));
    tree.check(
        "!src",
        "error: `!src` begins with `!`, and nothing can be taken out of a reservation\n\
         hint: name what you need instead; a file of that name is `./!name`",
    );
}

#[test]
fn paths_are_taken_from_the_top() {
    let tree = Tree::new();
    assert_eq!(tree.pattern_in("web", "src/db"), "src/db/");
    assert_eq!(
        tree.pattern_in("web", "x.ts"),
        "error: there is no `x.ts` at the top of your checkout\n\
         hint: paths are taken from there, not from your working directory: write `web/x.ts` (or \
         `./x.ts` for a new one at the top)"
    );
    assert_eq!(tree.pattern_in("web", "./x.ts"), "x.ts");
    assert_eq!(tree.pattern_in("web", "web/x.ts"), "web/x.ts");
    assert_eq!(tree.pattern_in("web", "*.ts"), "**/*.ts");
    // Outside git the folder that has the table is the top.
    let plain = Table::new();
    fs::create_dir(plain.path().join("deep")).unwrap();
    let home = plain.path().parent().unwrap().to_owned();
    let config = Config { cwd: plain.path().join("deep"), home: Some(home), ..Config::default() };
    let workspace = team_table::workspace::Workspace::find(&config, None).unwrap();
    assert_eq!(workspace.top, dunce::canonicalize(plain.path()).unwrap());
}

#[cfg(unix)]
#[test]
fn symbolic_links_are_followed_and_never_out() {
    use std::os::unix::fs::symlink;
    let tree = Tree::new();
    let link = |target: &str, name: &str| symlink(target, tree.0.path().join(name)).unwrap();
    link("src/db", "db");
    link("../src/db/pool.rs", "web/pool.rs");
    link("..", "out");
    link("/etc", "web/etc");
    link("nowhere", "lost");
    tree.check("db/pool.rs", "src/db/pool.rs");
    tree.check("db", "src/db/");
    tree.check("db/*.rs", "src/db/*.rs");
    tree.check("web/pool.rs", "src/db/pool.rs");
    for (written, what) in [
        ("out/x", "outside your checkout"),
        ("web/etc/passwd", "`/etc`, outside your checkout"),
        ("web/etc/*", "`/etc`, outside your checkout"),
        ("lost", "what is not there"),
    ] {
        let answer = tree.pattern_in("", written);
        let begin = format!("error: `{written}` leads by a symbolic link to ");
        assert!(answer.starts_with(&begin) && answer.contains(what), "{answer}");
    }
    // A way to the checkout that goes by a link.
    let elsewhere = tempfile::tempdir().unwrap();
    let way = elsewhere.path().join("way");
    symlink(tree.0.path(), &way).unwrap();
    tree.check(&format!("{}/src/new.rs", way.display()), "src/new.rs");
}

/// A reservation holds in all worktrees of a repository, and a conflict names the other one.
#[test]
fn worktrees() {
    let table = Table::new();
    let write = |path: &str, text: &str| {
        let path = table.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a file of a temporary folder")]
        fs::write(path, text).unwrap();
    };
    let top = dunce::canonicalize(table.path()).unwrap();
    write(".git/HEAD", "ref: refs/heads/main\n");
    write(".git/config", "[core]\n\tbare = false\n");
    write(".git/worktrees/wt/HEAD", "ref: refs/heads/topic\n");
    write(".git/worktrees/wt/commondir", "../..\n");
    write(".git/worktrees/wt/gitdir", &format!("{}/wt/.git\n", top.display()));
    write("wt/.git", &format!("gitdir: {}/.git/worktrees/wt\n", top.display()));
    write("wt/src/a.rs", "");
    let run = |folder: &Path, args: &[&str]| {
        let output = table.command(&[]).current_dir(folder).args(args).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8(text).unwrap().replace(&top.display().to_string(), "TOP")
    };
    let worktree = top.join("wt");
    let path = worktree.join("src/a.rs").display().to_string();
    assert_eq!(
        run(&worktree, &["reserve", &path, "--as", "ada"]),
        "reserved for 60 min: `src/a.rs`\n"
    );
    assert_eq!(
        run(&top, &["reserve", "src/", "--as", "bob"]),
        "error: nothing was reserved\n`src/` is reserved by ada (active) as `src/a.rs` for 60 min \
         more, from `TOP/wt`\nhint: reserve the others alone, or ask ada with `team-table send` to \
         release it\n"
    );
    let outside =
        run(&worktree, &["reserve", &top.join("src/a.rs").display().to_string(), "--as", "bob"]);
    assert!(outside.starts_with("error: `TOP/src/a.rs` is outside your checkout"), "{outside}");
}

#[test]
fn two_hundred_at_most() {
    let table = Table::new();
    let mut ada = InProcess::session(&table, "ada");
    for part in 0..4 {
        let paths: Vec<String> = (0..50).map(|number| format!("f{part}/{number}.rs")).collect();
        let answer = call(&mut ada, "reserve", json!({"paths": paths}));
        assert!(answer.contains("reserved for 60 min"), "{answer}");
    }
    let again: Vec<String> = (0..50).map(|number| format!("f0/{number}.rs")).collect();
    let answer = call(&mut ada, "reserve", json!({"paths": again, "minutes": 90}));
    assert!(answer.starts_with("renewed for 90 min"), "{answer}");
    assert_eq!(
        call(&mut ada, "reserve", json!({"paths": ["one/more.rs"]})),
        "error: you would have 201 reservations; at most 200 are allowed\nhint: call release_files \
         for what you have finished, or reserve a folder"
    );
    // A conflict with all of them is told in a few lines.
    let mut bob = InProcess::session(&table, "bob");
    let answer = call(&mut bob, "reserve", json!({"paths": ["**"]}));
    assert_eq!(answer.lines().count(), 14, "{answer}");
    assert!(answer.contains("\nand 190 more\n"), "{answer}");
    call(&mut ada, "release", json!({}));
    let answer = call(&mut bob, "reserve", json!({"paths": ["**"]}));
    assert_eq!(answer, "reserved for 60 min: `**`");
}

/// Whoever writes next notes what ran out, also where that call itself is refused.
#[test]
fn the_next_write_of_anybody_ends_what_ran_out() {
    let mut table = Table::new();
    let mut ada = InProcess::session(&table, "ada");
    call(&mut ada, "reserve", json!({"paths": ["a.rs"], "minutes": 1}));
    let unread = |table: &Table| -> i64 {
        let sql = "SELECT count(*) FROM delivery";
        table.open().query_row(sql, [], |row| row.get(0)).unwrap()
    };
    table.set("TEAM_TABLE_NOW", &(NOW + 59_999).to_string());
    table.ok(&["register", "--as", "bob"]);
    assert_eq!(unread(&table), 0);
    table.set("TEAM_TABLE_NOW", &(NOW + 60_000).to_string());
    assert_eq!(table.run(&["send", "nobody", "hi", "--as", "bob"]).code, 1);
    assert_eq!(unread(&table), 1);
    table.ok(&["heartbeat", "--as", "bob"]);
    assert_eq!(unread(&table), 1, "once");
    let log = table.ok(&["log"]);
    assert!(log.contains("the time was over for which ada had reserved `a.rs`"), "{log}");
    assert!(call(&mut ada, "inbox", json!({})).contains("since their time is over: `a.rs`"));
}

/// A session that is there keeps what it has for 4 silent hours.
#[test]
fn silent_sessions_are_gone_after_four_hours() {
    let mut table = Table::new();
    let mut ada = InProcess::session(&table, "ada");
    call(&mut ada, "reserve", json!({"paths": ["a.rs"], "minutes": 1440}));
    let hour = 3_600_000;
    table.set("TEAM_TABLE_NOW", &(NOW + 4 * hour - 1).to_string());
    let refused = table.run(&["reserve", "a.rs", "--as", "bob"]).stderr;
    assert!(refused.contains("is reserved by ada (idle 3 h) for 20 h 1 min more"), "{refused}");
    table.set("TEAM_TABLE_NOW", &(NOW + 4 * hour).to_string());
    table.ok(&["reserve", "a.rs", "--as", "bob"]);
    let log = table.ok(&["log"]);
    assert!(log.contains("ada is gone and lost `a.rs`"), "{log}");
    // It was there all the time, and is told at its next call.
    assert!(call(&mut ada, "heartbeat", json!({})).contains("1 unread message (team-table)"));
}

/// The caller's new name has what the old one had.
#[test]
fn reservations_move_with_a_name() {
    let table = Table::new();
    let mut ada = InProcess::session(&table, "ada");
    call(&mut ada, "reserve", json!({"paths": ["a.rs"]}));
    call(&mut ada, "register", json!({"name": "eve"}));
    assert_eq!(call(&mut ada, "release", json!({"paths": ["a.rs"]})), "released `a.rs`");
}
