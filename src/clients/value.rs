//! A client's file as plain values, for who only wants to know what it says.

use jsonc_parser::ast;
use serde_json::Value;
use toml_edit::{Item, TableLike};

use super::{Format, json::Doc, span, span::Fault, toml};

/// What a text says. Comments and trailing commas in JSON are read over.
///
/// # Errors
/// Where and why it cannot be understood.
pub fn parse(text: &str, format: Format) -> Result<Value, Fault> {
    let body = span::split_bom(text).1;
    match format {
        Format::Json { .. } => {
            let doc = Doc::parse(body)?;
            Ok(doc.root.as_ref().map_or(Value::Null, from_json))
        }
        Format::Toml => Ok(from_table(toml::parse(body)?.as_table())),
    }
}

pub(super) fn from_json(value: &ast::Value<'_>) -> Value {
    match value {
        ast::Value::StringLit(lit) => Value::String(lit.value.to_string()),
        ast::Value::NumberLit(lit) => serde_json::from_str(lit.value).unwrap_or(Value::Null),
        ast::Value::BooleanLit(lit) => Value::Bool(lit.value),
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::Array(array) => array.elements.iter().map(from_json).collect(),
        ast::Value::Object(object) => object
            .properties
            .iter()
            .map(|prop| (prop.name.as_str().to_owned(), from_json(&prop.value)))
            .collect(),
    }
}

pub(super) fn from_table(table: &dyn TableLike) -> Value {
    table.iter().map(|(key, item)| (key.to_owned(), from_item(item))).collect()
}

pub(super) fn from_item(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => from_toml(value),
        Item::Table(table) => from_table(table),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| from_table(table)).collect(),
    }
}

fn from_toml(value: &toml_edit::Value) -> Value {
    use toml_edit::Value as Toml;
    match value {
        Toml::String(text) => Value::String(text.value().clone()),
        Toml::Integer(number) => (*number.value()).into(),
        Toml::Float(number) => (*number.value()).into(),
        Toml::Boolean(truth) => Value::Bool(*truth.value()),
        Toml::Datetime(time) => Value::String(time.value().to_string()),
        Toml::Array(array) => array.iter().map(from_toml).collect(),
        Toml::InlineTable(table) => from_table(table),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Format, parse};

    #[test]
    fn both_notations_say_the_same() {
        let text = "\u{feff}// c\n{\"a\": {\"b\": [1, true, \"x\", null,],},}";
        let found = parse(text, Format::ANY_JSON).unwrap();
        assert_eq!(found, json!({"a": {"b": [1, true, "x", null]}}));
        let text = "[a]\nb = [1, true, \"x\"]\nc = {d = 1}\n[[e]]\nf = 1\n";
        let expected = json!({"a": {"b": [1, true, "x"], "c": {"d": 1}}, "e": [{"f": 1}]});
        assert_eq!(parse(text, Format::Toml).unwrap(), expected);
        assert_eq!(parse("", Format::Toml).unwrap(), json!({}));
        assert_eq!(parse("", Format::ANY_JSON).unwrap(), json!(null));
        let fault = parse("{\n \"a\": }", Format::ANY_JSON).unwrap_err();
        assert_eq!(fault.line, 2);
    }
}
