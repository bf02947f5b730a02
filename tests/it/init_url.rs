//! `init --url`: clients are led to a server on the network; the layouts are in the golden folders.

use team_table::{commands::init::Args, error::Kind};

use crate::{
    init::{Desk, Tree, assert_same, parsed},
    support::Table,
};

const URL: &str = "http://127.0.0.1:8741/mcp";

fn led(line: &str) -> Args {
    parsed(&format!("--url {line}"))
}

#[test]
fn what_no_client_could_use_is_refused_before_anything_is_written() {
    let table = Table::new();
    let of_token = "put the token into a variable";
    for (args, code, part) in [
        (&["--url", "127.0.0.1:8741/mcp"][..], 2, "has no `http://` or `https://`"),
        (&["--url", "ftp://h/mcp", "--token-env", "A"], 2, "such as http://127.0.0.1:8741/mcp"),
        (&["--url", "http://ada:x@127.0.0.1/mcp"], 2, "a user or a password"),
        (&["--url", "http://127.0.0.1/mcp#x"], 2, "behind `#`"),
        (&["--url", "http://127.0.0.1/m cp"], 2, "a space"),
        (&["--url", "http://127.0.0.1:8741"], 2, "perhaps http://127.0.0.1:8741/mcp"),
        (&["--url", "http://table.example/mcp"], 2, "asks for a token"),
        (&["--url", URL, "--token-env", "tt_0123456789"], 2, of_token),
        (&["--url", URL, "--token-env", "Bearer tt_0123456789"], 2, of_token),
        (&["--url", URL, "--token-env", "$ADA"], 2, "the name alone: ADA"),
        (&["--url", URL, "--token-env", "A-B"], 2, "such as ADA_TOKEN"),
        (&["--url", URL, "--name", "ada"], 2, "on the network a token says who comes"),
        (&["--url", URL, "--with", "wake"], 2, "cannot wake a session"),
        (&["--token-env", "A"], 2, "--url"),
        (&["--url", URL, "--remove"], 2, "cannot be used with"),
        (&["--url", "http://127.0.0.1:8741/sse"], 1, "Codex knows streamable HTTP alone"),
        (&["--url", URL, "--token-env", "A", "--client", "zed"], 1, "takes no variable"),
    ] {
        let output = table.run(&[&["init", "--yes"], args].concat());
        assert_eq!(output.code, code, "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains(part), "{args:?}: {}", output.stderr);
        assert!(!output.stderr.contains("0123456789"), "{}", output.stderr);
        assert!(!table.path().join(".mcp.json").exists() && output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn there_and_back_in_place_and_out_of_either() {
    let desk = Desk::with(".mcp.json", "{\"mcpServers\": {\"a\": {}}}\n");
    let before = desk.tree();
    desk.init();
    let started = desk.tree();
    let forms = [
        format!("{URL} --token-env ADA_TOKEN"),
        format!("{URL}?name=ada"),
        "https://table.example/x/mcp --token-env B".to_owned(),
    ];
    let mut called = Vec::new();
    for form in &forms {
        desk.run(&led(form)).unwrap();
        called.push(desk.tree());
        assert_eq!(desk.run(&led(form)).unwrap().out, "", "{form}");
        desk.remove();
        assert_same(&desk.tree(), &before, form);
        desk.run(&led(form)).unwrap();
        assert_same(&desk.tree(), called.last().unwrap(), form);
    }
    desk.remove();
    desk.init();
    assert_same(&desk.tree(), &started, "back");
    for (form, called) in forms.iter().zip(&called) {
        desk.run(&led(form)).unwrap();
        assert_same(&desk.tree(), called, form);
    }
    // What others put behind ours meanwhile stays behind it.
    desk.remove();
    desk.init();
    let text = desk.text(".mcp.json").replace("}}}\n", "}, \"z\": {}}}\n");
    crate::init::write(&desk.at(".mcp.json"), &text);
    desk.run(&led(&format!("{URL}?name=ada --client claude"))).unwrap();
    assert_eq!(
        desk.text(".mcp.json"),
        "{\"mcpServers\": {\"a\": {}, \"team-table\": {\"type\": \"http\", \"url\": \
         \"http://127.0.0.1:8741/mcp?name=ada\"}, \"z\": {}}}\n"
    );
}

/// Only a removal leads back: who asks for hooks did not ask for another server.
#[test]
fn without_an_address_what_leads_to_the_network_stays() {
    let url = "https://table.example/x/mcp";
    for line in ["", "--with hooks", "--with wake", "--with allow", "--name ada"] {
        let desk = Desk::new();
        desk.run(&led(&format!("{url} --token-env A --client claude"))).unwrap();
        desk.run(&led(&format!("{url} --token-env B --client codex"))).unwrap();
        let before = desk.tree();
        let printed = desk.run(&parsed(line)).unwrap();
        let part = format!(
            "`.mcp.json` leads to the server at `{url}`: left as it is; to have Claude Code start \
             one instead, run `team-table init --remove --client claude`, then `team-table init \
             --client claude`\n"
        );
        assert!(printed.talk.contains(&part), "{line}: {}", printed.talk);
        for file in [".mcp.json", ".codex/config.toml"] {
            assert_eq!(desk.tree()[file], before[file], "{line}");
        }
        let is_woken = !printed.talk.contains("Claude Code is not woken: a server on the network");
        assert_eq!(is_woken, line != "--with wake", "{}", printed.talk);
        let settings = desk.tree().remove(".claude/settings.json");
        assert_eq!(settings.is_some(), ["--with hooks", "--with allow"].contains(&line), "{line}");
    }
    let desk = Desk::new();
    desk.run(&led(&format!("{URL}?name=g --client gemini"))).unwrap();
    let printed = desk.run(&parsed("--with hooks,allow --client gemini")).unwrap();
    let text = desk.text(".gemini/settings.json");
    assert!(text.contains("\"trust\": true") && text.contains("?name=g"), "{text}");
    assert!(!text.contains("hooks") && printed.talk.contains("Gemini CLI gets no hooks"), "{text}");
}

#[test]
fn one_token_for_several_clients_is_told_of() {
    for (form, part) in [
        (
            format!("{URL} --token-env ADA_TOKEN"),
            "Claude Code and Codex come as one member, by the token in `ADA_TOKEN`, with one inbox: \
             to have them talk to each other, run init once per client, with --client and its own \
             --token-env\n",
        ),
        (
            format!("{URL}?name=ada"),
            "Claude Code and Codex come as one member, by the name `ada`, with one inbox: to have \
             them talk to each other, run init once per client, with --client and its own \
             `?name=`\n",
        ),
    ] {
        let desk = Desk::new();
        let printed = desk.run(&led(&form)).unwrap();
        assert!(printed.talk.contains(part), "{}", printed.talk);
        let printed = desk.run(&led(&format!("{form} --client claude"))).unwrap();
        assert!(!printed.talk.contains("one member"), "{}", printed.talk);
    }
}

#[test]
fn who_would_come_as_nobody_is_told_of() {
    let desk = Desk::new();
    let printed = desk.run(&led(URL)).unwrap();
    let part = "Claude Code comes without a session, and `.mcp.json` does not say as whom, so the \
                server refuses it: run `team-table init --client claude --url` with `?name=NAME` \
                behind the address, or with --token-env\n";
    assert!(printed.talk.contains(part), "{}", printed.talk);
    assert_eq!(printed.talk.matches("comes without a session").count(), 1);
    for form in [&format!("{URL}?name=a"), &format!("{URL} --token-env A"), "http://[::1]:1/sse"] {
        let printed = desk.run(&led(&format!("{form} --client claude"))).unwrap();
        assert!(!printed.talk.contains("comes without a session"), "{}", printed.talk);
    }
}

#[test]
fn who_has_no_such_form_is_left_out_and_said() {
    let desk = Desk::new();
    std::fs::create_dir(desk.at(".zed")).unwrap();
    let printed = desk.run(&led(&format!("{URL} --token-env A"))).unwrap();
    let part = "Zed takes no variable for a token, and a token in its file could be read by \
                everybody: left out\n";
    assert!(printed.talk.contains(part), "{}", printed.talk);
    assert!(!desk.at(".zed/settings.json").exists());
    desk.run(&led(URL)).unwrap();
    assert!(desk.text(".zed/settings.json").contains(URL));

    let desk = Desk::new();
    let sse = "http://127.0.0.1:8741/sse --client claude,zed,gemini";
    let printed = desk.run(&led(sse)).unwrap();
    assert!(printed.talk.contains("Zed knows streamable HTTP alone"), "{}", printed.talk);
    let files: Vec<String> = desk.tree().into_keys().collect();
    assert_eq!(files, [".gemini/settings.json", ".mcp.json"]);
    assert!(desk.text(".mcp.json").contains("\"type\": \"sse\""));
    let err = desk.run(&led("http://127.0.0.1:8741/sse --client codex")).err().unwrap();
    assert_eq!(err.kind(), Kind::Refused);
    assert!(err.hint_text().unwrap().contains("ends in /mcp"), "{err}");
}

#[test]
fn what_has_to_be_there_is_said() {
    let desk = Desk::new();
    crate::init::write(&desk.at(".git/HEAD"), "");
    let args = led(&format!("{URL} --token-env ADA_TOKEN --with hooks,allow"));
    let printed = desk.run(&args).unwrap().unwrapped();
    for part in [
        "has to run: `team-table serve --transport streamable-http`",
        "`ADA_TOKEN` has to hold a token where you start each client: `team-table token add NAME`",
        "or run `team-table init --with hooks,allow --url http://127.0.0.1:8741/mcp --token-env \
         ADA_TOKEN` in each worktree",
    ] {
        assert!(printed.contains(part), "{part} is not in {printed}");
    }
    let printed = desk.run(&led("http://[::1]:1/sse --client claude")).unwrap().unwrapped();
    assert!(printed.contains("--transport sse --port 1`"), "{printed}");
}

/// They would tell of the table here, at which nobody of theirs sits.
#[test]
fn hooks_that_start_the_program_do_not_go_with_it() {
    let desk = Desk::new();
    let args = led(&format!("{URL} --with hooks --client claude,codex,gemini"));
    let printed = desk.run(&args).unwrap();
    let part = "Gemini CLI gets no hooks: they would look for mail at the table here";
    assert!(printed.talk.contains(part), "{}", printed.talk);
    assert!(!desk.text(".gemini/settings.json").contains("hook"));
    assert!(desk.text(".claude/settings.json").contains("announce"));
    desk.remove();
    assert_same(&desk.tree(), &Tree::new(), "removed");
}

#[test]
fn an_address_needs_no_program_of_a_name() {
    let mut desk = Desk::new();
    desk.exe = "other".to_owned();
    desk.is_on_path = false;
    let printed = desk.run(&led(URL)).unwrap();
    assert!(!printed.talk.contains("the command is"), "{}", printed.talk);
    assert!(desk.text(".codex/config.toml").contains("url = "));
}
