//! Servers on the network that clients call: whether anybody answers, and as whom they come.

use std::path::Path;

use super::{Report, clients::AREA, files::text_of};
use crate::{
    clients::{Client, Link, Network, Server, State},
    commands::address,
    config, platform,
    view::sanitize,
};

/// Whether somebody is there to be called. `file` is that which has the address.
pub(super) fn judge_answer(url: &str, file: &str, report: &mut Report) {
    if address::is_answered(url) {
        return;
    }
    let todo = if address::is_local(url) {
        format!("run `{}` where that table is", address::serve_command(url))
    } else {
        format!("start the server on that machine, or mend the address in {file}")
    };
    // Two clients may call it as two members.
    let url = url.split('?').next().unwrap_or(url);
    report.wrong(AREA, format!("nobody answers at {}", sanitize::quote(url)), todo);
}

/// As whom a client calls the server.
pub(super) fn judge_caller(client: &Client, file: &str, network: &Network, report: &mut Report) {
    if client.comes_as_nobody(network) {
        report.wrong(
            AREA,
            format!(
                "{client} comes without a session, and {file} does not say as whom, so the server \
                 refuses it"
            ),
            format!(
                "run `team-table init --client {} --url` with `?name=NAME` behind the address, or \
                 with --token-env",
                client.name
            ),
        );
    }
    if let Some(name) = network.token_env.as_deref().filter(|name| !config::is_set(name)) {
        report.note(
            AREA,
            format!(
                "`{name}`, in which {client} looks for its token, is not set in this shell: it has \
                 to be where you start {client}"
            ),
        );
    }
}

/// The command that makes an entry such as a file of the main checkout has.
pub(super) fn init_as_in(client: &Client, file: &Path) -> String {
    let state = text_of(file).and_then(|text| client.server_file().look(&text).ok());
    let Some(State::Ours(Server { link: Link::Network(network), .. })) = state else {
        return "`team-table init`".to_owned();
    };
    let url = platform::shell_word(&network.url);
    let token = network.token_env.map(|name| format!(" --token-env {name}"));
    let command = format!("team-table init --client {} --url {url}", client.name);
    sanitize::quote(&(command + &token.unwrap_or_default()))
}
