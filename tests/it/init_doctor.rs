//! What `doctor` says of the files that `init` writes.

use std::fs;

use crate::support::faults::{Place, write};

fn doctor(place: &Place) -> String {
    place.run(&["doctor"]).stdout
}

fn clients(place: &Place) -> Vec<String> {
    let lines = doctor(place);
    let ours = lines.lines().skip_while(|line| !line.starts_with("clients:")).skip(1);
    let ours = ours.take_while(|line| line.starts_with([' ', '!', '-']));
    ours.filter_map(|line| line.strip_prefix("  ")).map(str::to_owned).collect()
}

#[test]
fn only_clients_with_something_here_are_listed() {
    let place = Place::new();
    place.ok(&["init", "--yes"]);
    let listed = clients(&place);
    assert!(listed.iter().any(|line| line.starts_with("Claude Code: `.mcp.json` starts")));
    assert!(listed.iter().any(|line| line.starts_with("Codex: ")), "{listed:?}");
    for name in ["Gemini CLI", "opencode", "Copilot CLI", "Cursor", "VS Code", "Zed"] {
        assert!(!listed.iter().any(|line| line.starts_with(name)), "{listed:?}");
    }
}

#[test]
fn the_files_of_every_client_are_understood() {
    let place = Place::new();
    let all = "claude,codex,gemini,opencode,cursor,vscode,zed";
    place.ok(&["init", "--yes", "--client", all]);
    let listed = clients(&place);
    for part in [
        "opencode: `opencode.json` starts `",
        "; it asks for no trust",
        "Cursor: `.cursor/mcp.json` starts `",
        "VS Code: `.vscode/mcp.json` starts `",
        "Zed: `.zed/settings.json` starts `",
        "cannot tell whether it starts the server: it keeps that to itself",
    ] {
        assert!(listed.iter().any(|line| line.contains(part)), "{part}: {listed:?}");
    }
    let url = "http://127.0.0.1:8741/mcp";
    place.ok(&["init", "--yes", "--client", all, "--url", url]);
    let said = doctor(&place);
    assert_eq!(said.matches(&format!("calls `{url}`; ")).count(), 7, "{said}");
    assert_eq!(said.matches("which may be another one").count(), 7, "{said}");
    assert!(!said.contains("has a server `team-table` that"), "{said}");
}

#[test]
fn the_file_that_has_the_entry_is_looked_at() {
    let place = Place::new();
    let at = |name: &str| place.path().join(name);
    write(&at("opencode.jsonc"), b"{\n  // mine\n}\n");
    fs::create_dir(at(".github")).unwrap();
    write(&at(".github/mcp.json"), b"{}\n");
    place.ok(&["init", "--yes", "--client", "opencode,copilot"]);
    let listed = clients(&place);
    for part in ["opencode: `opencode.jsonc` starts", "Copilot CLI: `.github/mcp.json` starts"] {
        assert!(listed.iter().any(|line| line.starts_with(part)), "{part}: {listed:?}");
    }
    let text = fs::read_to_string(at("opencode.jsonc")).unwrap().replace("\"serve\"", "\"poll\"");
    write(&at("opencode.jsonc"), text.as_bytes());
    let said = doctor(&place);
    assert!(said.contains("`opencode.jsonc` has a server `team-table` that starts"), "{said}");
}
