//! The shape of a tool's parameters: as models are shown it, and as their arguments are checked.
//!
//! The schema is lean: clients stumble over `$ref`, `$schema`, `format`, nullable unions and
//! defaults of null, and every character is paid for in each session.

use std::sync::LazyLock;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

use super::{Entry, TABLE};
use crate::{
    domain::id::TaskId,
    error::{Error, Result},
    view::sanitize,
};

/// What a client is told of a tool.
pub struct Shape {
    pub description: String,
    /// `{"type":"object","properties":{..},"required":[..]}`.
    pub input: Map<String, Value>,
    /// The parameters that take tasks: `T7` is one for them.
    tasks: Vec<String>,
}

/// Built once: generating a schema costs as much as a call.
static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| TABLE.iter().map(build).collect());

pub(super) fn shape(entry: &'static Entry) -> &'static Shape {
    #[expect(clippy::expect_used, reason = "SHAPES has a row for each row of TABLE")]
    TABLE
        .iter()
        .zip(SHAPES.iter())
        .find_map(|(row, shape)| (row.name == entry.name).then_some(shape))
        .expect("every entry is a row of TABLE")
}

pub(super) fn of<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    match settings.into_generator().into_root_schema_for::<T>().to_value() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn build(entry: &Entry) -> Shape {
    let mut raw = (entry.raw_schema)();
    let description = unwrapped(raw.get("description").and_then(Value::as_str).unwrap_or_default());
    let mut input = Map::new();
    input.insert("type".to_owned(), "object".into());
    let mut properties = raw.remove("properties").unwrap_or_else(|| Value::Object(Map::new()));
    let mut tasks = Vec::new();
    if let Value::Object(properties) = &mut properties {
        let takes_task = |property: &Value| {
            let format = property.get("items").unwrap_or(property).get("format");
            format.and_then(Value::as_str) == Some(TaskId::FORMAT)
        };
        let names = properties.iter().filter(|(_, property)| takes_task(property));
        tasks.extend(names.map(|(name, _)| name.clone()));
        properties.values_mut().for_each(lean);
    }
    input.insert("properties".to_owned(), properties);
    if let Some(required) = raw.remove("required") {
        input.insert("required".to_owned(), required);
    }
    Shape { description, input, tasks }
}

/// A doc comment without the line ends that only keep the source narrow.
fn unwrapped(comment: &str) -> String {
    let paragraphs: Vec<String> =
        comment.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
    paragraphs.join("\n\n")
}

/// Takes out of a property's schema what is no use to a model.
fn lean(value: &mut Value) {
    let Value::Object(schema) = value else { return };
    for key in ["format", "title", "minimum"] {
        schema.remove(key);
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [one] = types.as_mut_slice() {
            let one = one.take();
            schema.insert("type".to_owned(), one);
        }
    }
    if let Some(items) = schema.get_mut("items") {
        lean(items);
    }
}

/// Checks arguments against the shape, and makes of what models write for a number, a list or a
/// truth value what is meant: `"41"`, `"#41"` and 41.0 are 41, for a task `"T7"` is 7; a list may be
/// a string of JSON; null is nothing.
///
/// # Errors
/// Unknown, missing and wrong parameters, naming the right ones.
pub(super) fn check(
    entry: &'static Entry,
    arguments: Map<String, Value>,
) -> Result<Map<String, Value>> {
    let shape = entry.shape();
    let properties = properties(entry);
    let mut checked = Map::new();
    for (name, value) in arguments {
        if value.is_null() {
            continue;
        }
        let Some(property) = properties.and_then(|properties| properties.get(&name)) else {
            return Err(unknown(entry, &name));
        };
        let takes_task = shape.tasks.contains(&name);
        let mark = if takes_task { ['T', 't'] } else { ['#'; 2] };
        let Some(value) = fit(property, value.clone(), mark) else {
            return Err(Error::invalid(format!(
                "`{name}` must be {}, got {}",
                wanted(property, takes_task),
                shortened(&value)
            ))
            .hint(takes(entry)));
        };
        checked.insert(name, value);
    }
    let required = shape.input.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !checked.contains_key(name) {
            return Err(Error::invalid(format!("missing parameter `{name}`")).hint(takes(entry)));
        }
    }
    Ok(checked)
}

fn properties(entry: &'static Entry) -> Option<&'static Map<String, Value>> {
    entry.shape().input.get("properties").and_then(Value::as_object)
}

fn unknown(entry: &'static Entry, name: &str) -> Error {
    let err =
        Error::invalid(format!("unknown parameter {}; {}", sanitize::quote(name), takes(entry)));
    let has = |name: &str| properties(entry).is_some_and(|it| it.contains_key(name));
    let is_of_sender = match name {
        "sender" | "agent_name" | "from_agent" | "as" => true,
        "from" => has("content"),
        _ => false,
    };
    match name {
        _ if is_of_sender => err.hint("the sender is always you"),
        "to" if has("recipient") => err.hint("the parameter is called `recipient`"),
        "body" | "text" | "message" if has("content") => {
            err.hint("the parameter is called `content`")
        }
        _ => err,
    }
}

/// `send_message takes recipient, content, reply_to`.
fn takes(entry: &'static Entry) -> String {
    let names: Vec<&str> =
        properties(entry).into_iter().flat_map(Map::keys).map(String::as_str).collect();
    match names.as_slice() {
        [] => format!("{} takes no parameters", entry.name),
        names => format!("{} takes {}", entry.name, names.join(", ")),
    }
}

/// The value as the property wants it, if it can be meant so. `mark` is what may stand before a
/// number.
fn fit(property: &Value, value: Value, mark: [char; 2]) -> Option<Value> {
    match property.get("type").and_then(Value::as_str).unwrap_or_default() {
        "integer" => integer(&value, mark).map(Value::from),
        "boolean" => match &value {
            Value::Bool(_) => Some(value),
            Value::String(text) => text.parse::<bool>().ok().map(Value::from),
            _ => None,
        },
        "array" => {
            let Value::Array(list) = list(value)? else { return None };
            let item = property.get("items").unwrap_or(&Value::Null);
            list.into_iter().map(|value| fit(item, value, mark)).collect::<Option<_>>()
        }
        "string" => match (property.get("enum").and_then(Value::as_array), value) {
            (None, Value::String(text)) => Some(Value::String(text)),
            (Some(words), Value::String(text)) => {
                let meant = text.trim().to_ascii_lowercase().replace([' ', '-'], "_");
                words.iter().find(|word| **word == meant).cloned()
            }
            _ => None,
        },
        _ => Some(value),
    }
}

/// A list, or a string of JSON that is one.
fn list(value: Value) -> Option<Value> {
    match value {
        Value::String(text) => serde_json::from_str(&text).ok(),
        value => Some(value),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "only whole numbers in range get there")]
fn integer(value: &Value, mark: [char; 2]) -> Option<i64> {
    /// Up to here every whole number is a number of its own in floating point.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < EXACT).map(|n| n as i64)
        }),
        Value::String(text) => {
            let text = text.trim();
            text.strip_prefix(mark).unwrap_or(text).parse().ok()
        }
        _ => None,
    }
}

fn wanted(property: &Value, takes_task: bool) -> String {
    let is_a = property.get("type").and_then(Value::as_str).unwrap_or_default();
    if let Some(words) = property.get("enum").and_then(Value::as_array) {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return format!("one of {}", words.join(", "));
    }
    match (is_a, takes_task) {
        ("integer", true) => "a task, such as 7 or T7",
        ("array", true) => "a list of tasks, such as [3, 5]",
        ("integer", false) => "a whole number",
        ("array", false) => "a list of strings",
        ("boolean", _) => "true or false",
        _ => "a string",
    }
    .to_owned()
}

/// A value as an error quotes it: one line of JSON, cut where it gets long.
fn shortened(value: &Value) -> String {
    let text = value.to_string();
    let mut shown: String = text.chars().take(60).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    sanitize::field(&shown)
}
