//! What goes into each client's files, and what comes out of them.

use std::path::{Path, PathBuf};

use super::{Change, Plan, Untaken, missing_folders, read};
use crate::{
    clients::{Allowed, Client, Extras, Fault, File, Format, KEY, Link, Network, Server, State},
    commands::receipt::{Drawer, Made, Receipt},
    error::{Error, Result},
};

/// A file of a client, and where it is.
struct Spot {
    file: &'static File,
    name: &'static str,
    path: PathBuf,
}

impl Plan {
    /// Our parts go into a client's files, or are brought up to date there. `program` is what its
    /// hooks start.
    pub(in crate::commands) fn put_in(
        &mut self,
        client: &'static Client,
        top: &Path,
        server: &Server,
        program: &str,
        extras: Extras,
    ) -> Result<()> {
        let (mut server, mut extras) = (server.clone(), extras);
        for file in client.files {
            if file.server.is_none() && !file.has(extras) {
                continue;
            }
            let Some(name) = self.spot(file, top)? else { continue };
            let path = top.join(name);
            let folders = missing_folders(&path)?;
            let before = read(&path)?;
            let text = before.as_deref().unwrap_or_default();
            let refused = |fault: Fault| refusal(&path, &fault);
            let state = file.look(text).map_err(refused)?;
            self.remark_on(name, &state);
            if let (State::Ours(there), Link::Program(_)) = (&state, &server.link)
                && let Link::Network(network) = &there.link
            {
                self.remarks.push(format!(
                    "`{name}` leads to the server at `{}`: left as it is; to have {client} start \
                     one instead, run `team-table init --remove --client {}`, then `team-table init \
                     --client {}`",
                    network.url, client.name, client.name
                ));
                if extras.wake && client.can_be_woken() {
                    self.remarks.push(format!(
                        "{client} is not woken: a server on the network cannot do that"
                    ));
                }
                extras.wake = false;
                server.link = there.link.clone();
            }
            if let (Link::Network(network), State::Absent | State::Ours(_)) = (&server.link, &state)
                && file.server.is_some()
            {
                self.call(client, name, network);
            }
            if state == State::Foreign && extras != Extras::default() {
                // They would call that server, or tell of a table that it does not sit at.
                self.remarks.push(format!("so {client} gets nothing else here"));
                extras = Extras::default();
            }
            if matches!(server.link, Link::Network(_)) && file.has_commands(extras) {
                self.remarks.push(format!(
                    "{client} gets no hooks: they would look for mail at the table here, not at \
                     the server's"
                ));
                extras.hooks = false;
            }
            let was_allowed = file.allows(text).map_err(refused)?;
            let after = file.add(text, &server).map_err(refused)?;
            let after = file.add_hooks(&after, program, extras).map_err(refused)?;
            let after = file.add_allow(&after, extras).map_err(refused)?;
            self.remark_on_extras(file, name, &state, extras);
            if extras.allow && was_allowed == Allowed::Otherwise {
                self.remarks.push(format!(
                    "`{name}` has a rule of its own for the tools of {KEY}: left as it is"
                ));
            }
            if file.has_hooks(extras) {
                self.remark_on_hooks(file, name, &after).map_err(refused)?;
            }
            if self.remark_on_notation(client, file, name, &after) {
                self.untaken.push(Untaken { client, name, has_server: file.server.is_some() });
            }
            let is_run = matches!(server.link, Link::Program(_))
                && file.server.is_some()
                && matches!(state, State::Absent | State::Ours(_));
            if program != KEY && (is_run || file.has_commands(extras)) {
                self.local = Some(program.to_owned());
            }
            let allow = extras.allow && was_allowed == Allowed::No && file.allow.is_some();
            self.change(Change { name, path, before, after: Some(after), folders, allow })?;
        }
        Ok(())
    }

    /// A client is led to a server on the network.
    fn call(&mut self, client: &'static Client, name: &str, network: &Network) {
        if client.comes_as_nobody(network) {
            self.remarks.push(format!(
                "{client} comes without a session, and `{name}` does not say as whom, so the server \
                 refuses it: run `team-table init --client {} --url` with `?name=NAME` behind the \
                 address, or with --token-env",
                client.name
            ));
        }
        self.called.push((client, network.clone()));
    }

    /// The path at which a file is to be: where our entry is, else where the file is. None where
    /// that was seen to already, since another client reads the same.
    fn spot(&mut self, file: &'static File, top: &Path) -> Result<Option<&'static str>> {
        let is_shared = |name| file.server.is_some() && self.servers.contains(&name);
        if file.paths().any(is_shared) {
            return Ok(None);
        }
        let mut there = Vec::new();
        // Where there is nothing to choose from, nothing is read for that.
        for name in file.paths().filter(|_| !file.or.is_empty()) {
            there.extend(read(&top.join(name))?.map(|text| (name, text)));
        }
        let has_ours = |(_, text): &&(_, String)| !matches!(file.look(text), Ok(State::Absent));
        let spot = there.iter().find(has_ours).or(there.first());
        let spot = spot.map_or(file.path, |(name, _)| *name);
        if file.server.is_some() {
            self.servers.push(spot);
        }
        self.names.push(spot);
        Ok(Some(spot))
    }

    /// Our parts come out of a client's files, wherever it looks for them.
    pub(in crate::commands) fn take_out(
        &mut self,
        client: &'static Client,
        top: &Path,
        drawer: Option<&Drawer>,
        receipt: &Receipt,
    ) -> Result<()> {
        let mut is_set_up = false;
        for file in client.files {
            for name in file.paths() {
                if file.server.is_some() && self.servers.contains(&name) {
                    continue;
                }
                if file.server.is_some() {
                    self.servers.push(name);
                }
                let path = top.join(name);
                let Some(text) = read(&path)? else {
                    self.free.push(path);
                    continue;
                };
                let made = drawer.and_then(|drawer| drawer.made(receipt, &path));
                let is_asked = file.server.is_some() && client.is_usual();
                if !is_asked && made.is_none() && !text.contains(KEY) {
                    // It is nobody's business whether we could read it.
                    continue;
                }
                let state = file.look(&text).map_err(|fault| refusal(&path, &fault))?;
                is_set_up |= matches!(state, State::Ours(_));
                // A person may have allowed the tools too: without a receipt it goes with the server.
                let allow = if receipt.is_found {
                    made.as_ref().is_some_and(|it| it.allow)
                } else {
                    is_set_up
                };
                let spot = Spot { file, name, path };
                self.take_out_of(spot, text, &state, made, allow)?;
            }
        }
        Ok(())
    }

    /// The file goes too where init made it (so says the receipt, or without one: nothing else was
    /// in it) and nobody else uses it.
    fn take_out_of(
        &mut self,
        spot: Spot,
        text: String,
        state: &State,
        made: Option<Made>,
        allow: bool,
    ) -> Result<()> {
        let Spot { file, name, path } = spot;
        let refused = |fault: Fault| refusal(&path, &fault);
        let is_ours = match state {
            State::Absent | State::Ours(_) => true,
            // What is left of an entry without our part of it would break the client.
            State::Extended(_) => made.is_some(),
            State::Foreign => false,
        };
        let mut after = text.clone();
        if allow {
            after = file.remove_allow(&after).map_err(refused)?;
        } else if file.allows(&text).map_err(refused)? == Allowed::Yes {
            self.remarks.push(format!(
                "`{name}` lets the tools of {KEY} run unasked, and init did not put that there: \
                 left as it is"
            ));
        }
        after = file.remove_hooks(&after).map_err(refused)?;
        if is_ours {
            after = file.remove(&after).map_err(refused)?;
        } else {
            self.remark_on(name, state);
        }
        let is_free = self.remark_on_hooks(file, name, &after).map_err(refused)? && is_ours;
        let (goes, folders) = if let Some(made) = made {
            (made.file && file.is_bare(&after), made.folders)
        } else {
            let is_nested = Path::new(name).components().count() > 1;
            let folder = path.parent().filter(|_| is_nested).map(Path::to_owned);
            (after.is_empty() && after != text, folder.into_iter().collect())
        };
        if is_free {
            self.free.push(path.clone());
        }
        let after = Some(after).filter(|_| !goes);
        self.change(Change { name, path, before: Some(text), after, folders, allow: false })
    }

    fn remark_on(&mut self, path: &str, state: &State) {
        match state {
            State::Absent | State::Ours(_) => {}
            State::Extended(others) => {
                let others: Vec<String> = others.iter().map(|name| format!("`{name}`")).collect();
                self.remarks.push(format!(
                    "`{path}` has team-table with settings that init did not write ({}): left as \
                     it is",
                    others.join(", ")
                ));
            }
            State::Foreign => self.remarks.push(format!(
                "`{path}` has a server `{KEY}` that is something else: left as it is"
            )),
        }
    }

    /// What an entry with settings of somebody does not get.
    fn remark_on_extras(&mut self, file: &File, name: &str, state: &State, extras: Extras) {
        let (Some(place), State::Extended(_)) = (file.server, state) else { return };
        if extras.wake && place.wakes {
            self.remarks.push(format!(
                "to have sessions woken, add `--wake` to its `args` in `{name}` yourself"
            ));
        }
        if extras.allow && place.trusts {
            self.remarks.push(format!(
                "to have the tools run unasked, add `\"trust\": true` to it in `{name}` yourself"
            ));
        }
    }

    /// Says whether there was nothing to say.
    fn remark_on_hooks(&mut self, file: &File, name: &str, text: &str) -> Result<bool, Fault> {
        let events = file.changed_hooks(text)?;
        self.remarks.extend(events.iter().map(|event| {
            format!(
                "`{name}` has a hook of team-table at `{event}` that was changed, or has another \
                 one beside it: left as it is"
            )
        }));
        Ok(events.is_empty())
    }

    /// Says whether there was something to say.
    fn remark_on_notation(&mut self, client: &Client, file: &File, name: &str, text: &str) -> bool {
        let Some(fault) = file.complaint(text) else { return false };
        let notation = match file.format {
            Format::Json { comments: true, .. } => "JSON with comments, but no trailing commas,",
            Format::Json { comments: false, .. } | Format::Toml => "strict JSON",
        };
        self.remarks.push(format!(
            "{client} reads {notation} and will not take `{name}` as it is: line {}, column {}: {}",
            fault.line, fault.column, fault.text
        ));
        true
    }
}

pub(super) fn refusal(path: &Path, fault: &Fault) -> Error {
    let Fault { line, column, text } = fault;
    Error::refused(format!("`{}` line {line}, column {column}: {text}", path.display()))
        .hint("no file was changed; mend that place, then run `team-table init` again")
}
