//! The command `where`: which table, and why. (`where` is a keyword and cannot name a module.)

use std::{io::Write, path::Path};

use serde_json::json;

use crate::{
    error::{Error, Result},
    view::sanitize,
    workspace::Workspace,
};

/// Prints the table's path on a line of its own, so that `$(team-table where | head -1)` is the
/// path, and below it why it is this one. As JSON: the same facts in one object.
///
/// # Errors
/// `out` cannot be written.
pub fn run(workspace: &Workspace, json: bool, out: &mut dyn Write) -> Result<()> {
    let text = if json { as_json(workspace) } else { as_text(workspace) };
    out.write_all(&text)
        .and_then(|()| out.flush())
        .map_err(|err| Error::io("write to", Path::new("stdout"), err))
}

fn as_text(workspace: &Workspace) -> Vec<u8> {
    // The path as it is, also where it is not Unicode.
    let mut text = workspace.table.as_os_str().as_encoded_bytes().to_vec();
    let mut line = |name: &str, value: &str| {
        text.extend_from_slice(format!("\n{name}: {value}").as_bytes());
    };
    line("reason", &workspace.reason.to_string());
    line("exists", if workspace.table.exists() { "yes" } else { "no, the first call makes it" });
    line("checkout", &shown(&workspace.checkout));
    if let Some(branch) = &workspace.branch {
        line("branch", &sanitize::field(branch));
    }
    for warning in &workspace.warnings {
        line("warning", warning);
    }
    text.push(b'\n');
    text
}

fn as_json(workspace: &Workspace) -> Vec<u8> {
    let facts = json!({
        "table": shown(&workspace.table),
        "reason": workspace.reason.to_string(),
        "exists": workspace.table.exists(),
        "checkout": shown(&workspace.checkout),
        "branch": workspace.branch,
        "folder": workspace.folder.as_ref().map(shown),
        "seats": shown(&workspace.seats),
        "warnings": workspace.warnings,
    });
    format!("{facts}\n").into_bytes()
}

fn shown(path: impl AsRef<Path>) -> String {
    path.as_ref().display().to_string()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::run;
    use crate::workspace::{Reason, Workspace};

    fn workspace() -> Workspace {
        Workspace {
            table: PathBuf::from("/p/.agent-comms/comms.db"),
            seats: PathBuf::from("/p/.agent-comms/seats"),
            folder: Some(PathBuf::from("/p/.agent-comms")),
            reason: Reason::CheckoutTop { top: PathBuf::from("/p") },
            warnings: vec!["`/q` was passed over".to_owned()],
            checkout: PathBuf::from("/p"),
            branch: Some("main".to_owned()),
            top: PathBuf::from("/p"),
            cwd: PathBuf::from("/p"),
        }
    }

    fn printed(json: bool) -> String {
        let mut out = Vec::new();
        run(&workspace(), json, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_first_line_is_the_path() {
        assert_eq!(
            printed(false),
            "/p/.agent-comms/comms.db\n\
             reason: `/p` is the top of the git checkout\n\
             exists: no, the first call makes it\n\
             checkout: /p\n\
             branch: `main`\n\
             warning: `/q` was passed over\n"
        );
    }

    #[test]
    fn json_is_one_object_with_the_same_facts() {
        let facts: serde_json::Value = serde_json::from_str(&printed(true)).unwrap();
        assert_eq!(facts["table"], "/p/.agent-comms/comms.db");
        assert_eq!(facts["exists"], false);
        assert_eq!(facts["reason"], "`/p` is the top of the git checkout");
        assert_eq!(facts["branch"], "main");
        assert_eq!(facts["warnings"][0], "`/q` was passed over");
    }
}
