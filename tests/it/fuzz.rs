//! Arbitrary arguments into every tool: never a panic, always a result or an error of the caller.

use std::cell::RefCell;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use team_table::{
    error::Kind,
    tools::{Entry, TABLE},
};

use crate::support::{Table, desk::InProcess};

/// Any JSON, mostly of the kinds that parameters have.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-3_i64..120).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any_string().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((any_string(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_string() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop_oneof![
            Just("ada"), Just("bob"), Just("human"), Just("@r"), Just("@"), Just("all"), Just(""),
            Just("true"), Just("#1"), Just("1"), Just("[]"), Just("[\"a\"]"), Just("\0"), Just("-1")
        ].prop_map(str::to_owned),
        2 => ".{0,40}",
        1 => proptest::collection::vec(any::<char>(), 0..300).prop_map(String::from_iter),
        1 => (0_usize..30_000).prop_map(|n| "x".repeat(n)),
    ]
}

/// Arguments for this row: mostly its own parameters, in any number.
fn any_arguments(entry: &'static Entry) -> impl Strategy<Value = Map<String, Value>> {
    let names: Vec<String> =
        entry.shape().input["properties"].as_object().unwrap().keys().cloned().collect();
    let known = (0..names.len().max(1))
        .prop_map(move |at| names.get(at).cloned().unwrap_or_else(|| "none".to_owned()));
    let name = prop_oneof![12 => known, 1 => any_string()];
    proptest::collection::vec((name, any_json()), 0..5)
        .prop_map(|fields| fields.into_iter().collect())
}

/// Runs a call as the transport does.
fn call(
    desk: &mut InProcess,
    entry: &'static Entry,
    mut arguments: Map<String, Value>,
) -> Result<(), String> {
    // To wait is right for most numbers, and takes too long here.
    if entry.job(arguments.clone()).is_ok_and(|job| job.waits.is_some()) {
        arguments.insert("timeout_seconds".to_owned(), 0.into());
    }
    match desk.run(entry, arguments) {
        Ok(answer) => answer.error.as_ref().map_or(Ok(()), mendable),
        Err(err) => Err(format!("{:?}: {}", err.kind(), err.explain())),
    }
}

fn mendable(err: &team_table::error::Error) -> Result<(), String> {
    match err.kind() {
        Kind::Invalid | Kind::NotFound | Kind::Refused => Ok(()),
        other => Err(format!("{other:?}: {}", err.explain())),
    }
}

#[test]
fn arbitrary_arguments_never_break_a_tool() {
    let table = Table::new();
    table.ok(&["register", "--as", "bob", "--role", "r"]);
    let desk = RefCell::new(InProcess::session(&table, "ada"));
    for entry in TABLE {
        let config =
            ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() };
        let mut runner = proptest::test_runner::TestRunner::new(config);
        runner
            .run(&any_arguments(entry), |arguments| {
                let shown = format!("{} {}", entry.name, Value::Object(arguments.clone()));
                let called = call(&mut desk.borrow_mut(), entry, arguments);
                prop_assert!(called.is_ok(), "{shown}: {called:?}");
                // For the next one: who left comes back, and keeps its name.
                let register = Entry::named("register").unwrap();
                let back = json!({"name": "ada"}).as_object().unwrap().clone();
                prop_assert_eq!(call(&mut desk.borrow_mut(), register, back), Ok(()));
                Ok(())
            })
            .unwrap();
    }
}
