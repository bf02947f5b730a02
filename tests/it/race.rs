//! Many processes at one instant: the first open, sends to each other, claims of one name and of one
//! task.

use std::{
    collections::BTreeSet,
    io::Write as _,
    process::Stdio,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::json;

use crate::support::faults::{Place, Seen, id_in, messages_in, name_in, ok, rounds};

/// Half of them are servers, half are commands; all wait for one line each, which they get at once.
#[test]
fn sixty_processes_open_a_fresh_table_at_once() {
    let place = Place::new();
    let mut agents: Vec<_> = (0..30).map(|_| place.started(&[], &[])).collect();
    let mut commands: Vec<_> = (0..30)
        .map(|number| {
            let wait = "read -r _; exec \"$0\" send --as \"$1\" human hello";
            let name = format!("n{number}");
            let mut shell = place.command_of("sh", &["-c", wait, super::PROGRAM, &name]);
            shell.stdin(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    assert!(!place.comms().exists(), "nothing is made before the first call");
    let calls: Vec<u64> =
        agents.iter_mut().map(|agent| agent.post_call("register", json!({}))).collect();
    for command in &mut commands {
        command.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    let mut names = BTreeSet::new();
    for (agent, id) in agents.iter_mut().zip(calls) {
        names.insert(name_in(&ok(agent.wait(id, super::PATIENCE))));
    }
    assert_eq!(names.len(), 30, "{names:?}");
    let mut ids = BTreeSet::new();
    for command in commands {
        let output = command.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
        ids.insert(id_in(&String::from_utf8(output.stdout).unwrap()));
    }
    assert_eq!(ids, (1..=30).collect());
    assert_eq!(place.number("SELECT count(*) FROM about"), 1);
    assert_eq!(place.number("SELECT count(*) FROM member"), 62);
    assert_eq!(place.number("SELECT count(*) FROM delivery"), 30);
    place.assert_sound();
}

#[test]
fn eight_processes_that_write_to_each_other_lose_nothing() {
    const EACH: usize = 30;
    let place = Arc::new(Place::new());
    let names: Vec<String> = (0..8).map(|number| format!("n{number}")).collect();
    let agents: Vec<_> = names.iter().map(|name| place.seated(name)).collect();
    let start = Arc::new(Barrier::new(agents.len()));
    let writers: Vec<_> = agents
        .into_iter()
        .enumerate()
        .map(|(me, mut agent)| {
            let (start, names) = (Arc::clone(&start), names.clone());
            thread::spawn(move || {
                let (mut sent, mut seen) = (Vec::new(), Seen::default());
                start.wait();
                for round in 1..=EACH {
                    let to = names.iter().cycle().nth(me + 1 + round % 7).unwrap();
                    let arguments = json!({"recipient": to, "content": format!("{me} {round}")});
                    sent.push(id_in(&ok(agent.call("send_message", arguments))));
                    if round % 4 == 0 {
                        seen.add(&ok(agent.call("get_messages", json!({}))));
                    }
                }
                // Until all are done writing, there may be more to come.
                start.wait();
                loop {
                    let text = ok(agent.call("get_messages", json!({})));
                    if messages_in(&text).is_empty() {
                        return (sent, seen);
                    }
                    seen.add(&text);
                }
            })
        })
        .collect();
    let done: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
    let sent: BTreeSet<u64> = done.iter().flat_map(|(sent, _)| sent.iter().copied()).collect();
    assert_eq!(sent.len(), 8 * EACH, "an id was given twice");
    let mut n_seen = 0;
    for (_, seen) in &done {
        seen.assert_complete([]);
        n_seen += sent.iter().filter(|id| seen.has(**id)).count();
    }
    assert_eq!(n_seen, 8 * EACH, "each message reaches one inbox, once");
    place.assert_sound();
}

#[test]
fn twenty_servers_that_want_one_name_get_twenty() {
    let place = Place::new();
    // The table is there, and the name was somebody's before.
    place.send("ada", "human", "hello");
    let mut agents: Vec<_> =
        (0..20).map(|_| place.started(&[], &[("TEAM_TABLE_NAME", "ada")])).collect();
    let calls: Vec<u64> =
        agents.iter_mut().map(|agent| agent.post_call("register", json!({}))).collect();
    let names: BTreeSet<String> = agents
        .iter_mut()
        .zip(calls)
        .map(|(agent, id)| name_in(&ok(agent.wait(id, super::PATIENCE))))
        .collect();
    let expected: BTreeSet<String> = std::iter::once("ada".to_owned())
        .chain((2..=20).map(|number| format!("ada-{number}")))
        .collect();
    assert_eq!(names, expected);
    place.assert_sound();
}

/// Whoever looks at a seat holds it for some microseconds; that must not make a claim fail. This
/// looker is at it half of the time.
#[test]
fn looks_at_a_seat_never_cost_anybody_the_name() {
    let place = Place::new();
    place.send("ada", "human", "hello");
    let lock = std::fs::File::open(place.comms().join("seats/seat-ada.lock")).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if fs2::FileExt::try_lock_shared(&lock).is_ok() {
                    thread::sleep(Duration::from_micros(300));
                    fs2::FileExt::unlock(&lock).unwrap();
                }
                thread::sleep(Duration::from_micros(300));
            }
        });
        let refused: Vec<_> = (0..20)
            .map(|_| place.run(&["send", "--as", "ada", "human", "again"]))
            .filter(|done| done.code != Some(0))
            .collect();
        done.store(true, Ordering::Relaxed);
        assert!(refused.is_empty(), "{refused:?}");
    });
}

/// Sixteen processes, one task: one has it, and all others are told who.
#[test]
fn one_task_is_claimed_by_one() {
    let place = Place::new();
    let names: Vec<String> = (0..16).map(|number| format!("n{number}")).collect();
    let mut agents: Vec<_> = names.iter().map(|name| place.seated(name)).collect();
    for round in 1..=rounds(50) {
        let made = ok(agents[0].call("create_task", json!({"title": "one"})));
        assert!(made.contains(&format!("created T{round} ")), "{made}");
        let calls: Vec<u64> = agents
            .iter_mut()
            .enumerate()
            .map(|(n, agent)| match (n + round as usize) % 4 {
                0 => {
                    let step = json!({"task_id": round, "status": "in_progress"});
                    agent.post_call("update_task", step)
                }
                // For the next ready one there is only this.
                1 => agent.post_call("claim_task", json!({})),
                _ => agent.post_call("claim_task", json!({"task_id": round})),
            })
            .collect();
        let mut winners = Vec::new();
        let mut losers = Vec::new();
        for ((agent, name), id) in agents.iter_mut().zip(&names).zip(calls) {
            let reply = agent.wait(id, super::PATIENCE);
            if reply.is_error { losers.push(reply.text) } else { winners.push(name.clone()) }
        }
        let [winner] = winners.as_slice() else { panic!("round {round}: {winners:?}") };
        for text in losers {
            let told = text.contains(&format!("T{round} is taken: {winner} has it, in_progress"));
            assert!(told || text.contains("no task is ready for you"), "round {round}: {text}");
        }
        let sql = "SELECT count(*) FROM event WHERE kind = 'task.claimed'";
        assert_eq!(place.number(sql), i64::from(round));
    }
    place.assert_sound();
}

/// Whoever asks for the next one gets one that nobody else has.
#[test]
fn the_next_task_is_another_for_each() {
    const TASKS: i64 = 64;
    let place = Place::new();
    let mut agents: Vec<_> = (0..8).map(|number| place.seated(&format!("n{number}"))).collect();
    for number in 0..TASKS {
        let priority = ["low", "medium", "high"][usize::try_from(number % 3).unwrap()];
        ok(agents[0].call("create_task", json!({"title": "one", "priority": priority})));
    }
    let start = Arc::new(Barrier::new(agents.len()));
    let claimers: Vec<_> = agents
        .into_iter()
        .map(|mut agent| {
            let start = Arc::clone(&start);
            thread::spawn(move || {
                let mut had = Vec::new();
                start.wait();
                loop {
                    let reply = agent.call("claim_task", json!({}));
                    if reply.is_error {
                        assert!(reply.text.contains("none is pending"), "{}", reply.text);
                        return had;
                    }
                    had.push(reply.text.split(' ').next().unwrap().to_owned());
                }
            })
        })
        .collect();
    let had: Vec<String> =
        claimers.into_iter().flat_map(|claimer| claimer.join().unwrap()).collect();
    let different: BTreeSet<&String> = had.iter().collect();
    assert_eq!((had.len(), different.len()), (64, 64), "{had:?}");
    assert_eq!(place.number("SELECT count(*) FROM task WHERE status = 'in_progress'"), TASKS);
    place.assert_sound();
}
