//! The smallest client, two agents at one table: `cargo build && cargo run --example two_agents`.
//!
//! Each agent's client starts a `team-table serve` and speaks MCP with it: JSON-RPC 2.0, one message
//! per line, over stdin and stdout. `initialize`, once, and `tools/call` are all that it has to send.
#![expect(clippy::print_stdout, reason = "this program is here to print")]
#![expect(clippy::indexing_slicing, reason = "what a `Value` has not is `null`")]
#![expect(clippy::needless_pass_by_value, reason = "`json!` reads better without a `&`")]

use std::{
    env,
    error::Error,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

fn main() -> Result<()> {
    let project = env::temp_dir().join(format!("team-table-example-{}", std::process::id()));
    // A folder with an `.agent-comms` is a workspace, whatever other workspace it may lie in.
    fs::create_dir_all(project.join(".agent-comms"))?;
    let outcome = converse(&program()?, &project);
    fs::remove_dir_all(&project)?;
    outcome
}

fn converse(program: &Path, project: &Path) -> Result<()> {
    // Ada asks, Bob reads and answers, Ada waits for the answer.
    let mut ada = Agent::start("ada", program, project)?;
    let mut bob = Agent::start("bob", program, project)?;
    let answer = ada.call("register", json!({"name": "ada", "note": "writes the parser"}))?;
    check("Ada has a seat", &answer, "ada")?;
    let answer = bob.call("register", json!({"name": "bob", "note": "reviews"}))?;
    check("Bob has a seat", &answer, "bob")?;

    // Nobody says who they are when they send: the server knows whose process it is.
    let question = "May the parser read an empty file?\nToday it fails.";
    let answer = ada.call("send_message", json!({"recipient": "bob", "content": question}))?;
    check("the message went out", &answer, "to bob")?;
    let id = message_id(&answer)?;

    // What others wrote stands behind `| `, so that it cannot be taken for the server's words.
    let answer = bob.call("get_messages", json!({}))?;
    check("Bob sees who wrote", &answer, &format!("#{id} ada to you"))?;
    check("Bob sees the question", &answer, "| May the parser read an empty file?\n| Today")?;

    let reply = json!({"reply_to": id, "content": "Yes, as an empty list."});
    let answer = bob.call("send_message", reply)?;
    check("the reply goes to Ada by itself", &answer, "to ada")?;

    // Returns as soon as something is there, else when the time is up.
    let answer = ada.call("wait_for_messages", json!({"timeout_seconds": 10}))?;
    check("Ada sees what it answers", &answer, &format!("reply to #{id}"))?;
    check("Ada sees the answer", &answer, "| Yes, as an empty list.")?;

    ada.leave().and(bob.leave())?;
    println!("Each step gave what it should.");
    Ok(())
}

/// An agent: its server's process, and the two pipes to it.
struct Agent {
    name: &'static str,
    server: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    last_id: u64,
}

impl Agent {
    /// Starts a server in the project's folder and shakes hands with it.
    fn start(name: &'static str, program: &Path, project: &Path) -> Result<Agent> {
        let mut server = Command::new(program)
            .arg("serve")
            .current_dir(project)
            .env_remove("TEAM_TABLE_DB") // this shell may be set up for another table
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|err| format!("cannot start `{}`: {err}", program.display()))?;
        let requests = server.stdin.take().ok_or("the server has no stdin")?;
        let answers = BufReader::new(server.stdout.take().ok_or("the server has no stdout")?);
        let mut agent = Agent { name, server, requests, answers, last_id: 0 };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
                           "clientInfo": {"name": format!("example-{name}"), "version": "1"}});
        agent.request("initialize", hello)?;
        agent.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(agent)
    }

    /// Calls a tool and prints what the agent said and saw. A tool that fails says why in its text.
    fn call(&mut self, tool: &str, arguments: Value) -> Result<String> {
        println!("{}> {tool} {arguments}", self.name);
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments}))?;
        let text = result["content"][0]["text"].as_str().ok_or("an answer without text")?;
        println!("     {}\n", text.replace('\n', "\n     "));
        if result["isError"] == true { Err(text.into()) } else { Ok(text.to_owned()) }
    }

    fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        let mut line = String::new();
        while self.answers.read_line(&mut line)? > 0 {
            let mut answer: Value = serde_json::from_str(&line)?;
            if answer["id"] == id {
                let failed = answer.get("error").map(ToString::to_string);
                return failed.map_or_else(|| Ok(answer["result"].take()), |why| Err(why.into()));
            }
            line.clear(); // a notification, of no use here
        }
        Err("the server has ended".into())
    }

    fn write(&mut self, message: &Value) -> Result<()> {
        Ok(self.requests.write_all(format!("{message}\n").as_bytes())?)
    }

    /// The end of its input is how a server learns that its agent has gone.
    fn leave(mut self) -> Result<()> {
        drop(self.requests);
        let status = self.server.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the server ended: {status}").into()) }
    }
}

/// The first argument, else the program built beside this one (`target/*/examples/..`), else PATH's.
fn program() -> Result<PathBuf> {
    if let Some(argument) = env::args_os().nth(1) {
        return Ok(std::path::absolute(argument)?);
    }
    let name = format!("team-table{}", env::consts::EXE_SUFFIX);
    let built = env::current_exe()?.parent().map(|examples| examples.with_file_name(&name));
    Ok(built.filter(|path| path.exists()).unwrap_or_else(|| name.into()))
}

fn message_id(answer: &str) -> Result<u64> {
    let digits = answer.split('#').nth(1).ok_or("no message id in the answer")?;
    Ok(digits.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default().parse()?)
}

fn check(what: &str, answer: &str, part: &str) -> Result<()> {
    if answer.contains(part) { Ok(()) } else { Err(format!("not so: {what} (`{part}`)").into()) }
}
