//! The README says of each client what its row in `src/clients/table.rs` says: tables between two
//! marks. `UPDATE=1` writes them.

use std::{fs, path::Path};

use team_table::{clients::CLIENTS, platform::write_atomic};

use crate::init::updates;

fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let rule = format!("|{}\n", "---|".repeat(head.len()));
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("{}{rule}{rows}", line(&head))
}

/// What `init` sets up for each client.
fn set_up() -> String {
    let rows = CLIENTS.iter().map(|client| {
        let (file, readme) = (client.server_file(), &client.readme);
        let parts = [readme.hooks, readme.wake, readme.allow].map(str::to_owned);
        let first =
            [client.title.to_owned(), format!("`{}`", client.name), format!("`{}`", file.path)];
        first.into_iter().chain(parts).collect()
    });
    let head = ["", "`--client`", "Server", "Hooks", "Wake", "Allow"];
    table(&head, &rows.collect::<Vec<_>>()).replacen("|  |", "| |", 1)
}

/// How each client that was tried hears of a message.
fn heard() -> String {
    let rows = CLIENTS.iter().filter_map(|client| {
        let tried = client.tried.as_ref()?;
        let cells = [
            tried.badge,
            tried.wait,
            tried.hook_at_prompt,
            tried.hook_after_tool,
            tried.hook_at_end,
            tried.woken,
        ];
        let name = format!("{} {}", client.title, tried.version);
        Some([name].into_iter().chain(cells.map(str::to_owned)).collect())
    });
    let head = [
        "Client, as tried",
        "Badge",
        "Wait",
        "Hook at the prompt",
        "Hook after a tool",
        "Hook at the end",
        "Woken when idle",
    ];
    table(&head, &rows.collect::<Vec<_>>())
}

#[test]
fn the_readme_says_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let mut readme = fs::read_to_string(&path).unwrap();
    for (what, table) in
        [("what init sets up", set_up()), ("how clients hear of a message", heard())]
    {
        let mark = format!("<!-- {what}, from src/clients/table.rs -->\n");
        let start = readme.find(&mark).expect(&mark) + mark.len();
        let end = start + readme[start..].find("<!-- end -->").unwrap();
        if updates() {
            readme.replace_range(start..end, &table);
            write_atomic(&path, readme.as_bytes()).unwrap();
        } else {
            assert_eq!(&readme[start..end], table, "{what}; UPDATE=1 writes it");
        }
    }
}

#[test]
fn every_row_says_everything() {
    for client in CLIENTS {
        let texts = [
            client.next,
            client.next_hooks,
            client.next_wake,
            client.next_allow,
            client.readme.hooks,
            client.readme.wake,
            client.readme.allow,
        ];
        assert!(texts.iter().all(|text| !text.is_empty() && !text.contains('|')), "{client}");
        assert_eq!(client.hooks_file().is_none(), client.readme.hooks == "none", "{client}");
    }
}
