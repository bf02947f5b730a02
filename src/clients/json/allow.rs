//! The permission to run our tools unasked, as one item of a JSON text; [`nest`] says how it is laid
//! out.
//!
//! A template says where it stands: keys that lead into each other, and behind the last one a list
//! with one text, or an object with one rule.

use std::ops::Range;

use jsonc_parser::{
    ast::{Object, Value},
    common::Ranged as _,
};

use super::{
    doc::{Doc, Row, range},
    nest::{self, Holder},
    snippet::Snippet,
};
use crate::clients::{
    Allowed,
    span::{self, Fault},
    value,
};

/// What a template holds.
struct Permission<'a> {
    keys: Vec<&'a str>,
    holder: Holder,
    /// The text in the list, or the name of the rule.
    name: &'a str,
    /// What the rule says.
    rule: Option<&'a Value<'a>>,
    snippet: Snippet,
}

/// Where something of our name is.
struct Found {
    /// The rows from the root on, each with what leads on in it.
    way: Vec<(Row, Range<usize>)>,
    says: serde_json::Value,
}

impl<'a> Permission<'a> {
    fn of(template: &'a Doc<'a>) -> Result<Permission<'a>, Fault> {
        let empty = || Fault::at(template.text, 0, "the template holds no permission");
        let mut object = template.root()?.ok_or_else(empty)?;
        let mut keys = Vec::new();
        loop {
            let prop = object.properties.first().ok_or_else(empty)?;
            let (name, rule, item) = match &prop.value {
                Value::Object(inner) => {
                    keys.push(prop.name.as_str());
                    object = inner;
                    continue;
                }
                Value::Array(list) => {
                    keys.push(prop.name.as_str());
                    let text = list.elements.first().and_then(Value::as_string_lit);
                    let text = text.ok_or_else(empty)?;
                    (&*text.value, None, text.start()..text.end())
                }
                rule => (prop.name.as_str(), Some(rule), range(prop)),
            };
            let holder = if rule.is_some() { Holder::Object } else { Holder::List };
            return Ok(Permission {
                keys,
                holder,
                name,
                rule,
                snippet: Snippet::of(template, item),
            });
        }
    }

    /// The last item of ours.
    fn find(&self, doc: &Doc<'_>) -> Result<Option<Found>, Fault> {
        let Some(root) = doc.root()? else { return Ok(None) };
        let mut way = Vec::new();
        let mut object: &Object<'_> = root;
        for (number, key) in self.keys.iter().enumerate() {
            doc.no_twins(object)?;
            // What no client could understand holds nothing of ours: see `put_in`.
            let Some(prop) = object.get(key) else { return Ok(None) };
            way.push((doc.members(object), range(prop)));
            if number + 1 == self.keys.len() && self.holder == Holder::List {
                let Some(list) = doc.list_in(object, key).ok().flatten() else { return Ok(None) };
                let is_ours = |value: &&Value<'_>| {
                    value.as_string_lit().is_some_and(|text| text.value == self.name)
                };
                let Some(item) = list.value.elements.iter().rev().find(is_ours) else {
                    return Ok(None);
                };
                way.push((doc.elements(&list), item.start()..item.end()));
                return Ok(Some(Found { way, says: value::from_json(item) }));
            }
            let Some(inner) = prop.value.as_object() else { return Ok(None) };
            object = inner;
        }
        doc.no_twins(object)?;
        let Some(prop) = object.get(self.name) else { return Ok(None) };
        way.push((doc.members(object), range(prop)));
        Ok(Some(Found { way, says: value::from_json(&prop.value) }))
    }
}

/// The key of the root under which a template has it.
pub(in crate::clients) fn section(template: &str) -> Option<String> {
    let doc = Doc::parse(template).ok()?;
    Some(doc.root().ok()??.properties.first()?.name.as_str().to_owned())
}

/// Whether it is there.
pub(in crate::clients) fn look(text: &str, template: &str) -> Result<Allowed, Fault> {
    let template = Doc::parse(template)?;
    let doc = Doc::parse(span::split_bom(text).1)?;
    let ours = Permission::of(&template)?;
    let found = match (ours.find(&doc)?, &ours.rule) {
        (None, _) => Allowed::No,
        (Some(found), Some(rule)) if value::from_json(rule) != found.says => Allowed::Otherwise,
        (Some(_), _) => Allowed::Yes,
    };
    Ok(found)
}

/// Puts it in, behind all others.
pub(in crate::clients) fn add(text: &str, template: &str) -> Result<String, Fault> {
    let template = Doc::parse(template)?;
    let ours = Permission::of(&template)?;
    let (mark, body) = span::split_bom(text);
    let edits = nest::put_in(&Doc::parse(body)?, &ours.keys, ours.holder, &ours.snippet)?;
    Ok(format!("{mark}{}", span::apply(body, edits)))
}

/// Takes the last one out, and what [`add`] put around it.
pub(in crate::clients) fn remove(text: &str, template: &str) -> Result<String, Fault> {
    let file = template;
    let template = Doc::parse(template)?;
    let (mark, body) = span::split_bom(text);
    let doc = Doc::parse(body)?;
    let Some(found) = Permission::of(&template)?.find(&doc)? else { return Ok(text.to_owned()) };
    let whole = doc.root()?.and_then(|root| doc.before_whole(root, file));
    let edited = match whole {
        Some(before) => before.to_owned(),
        None => span::apply(body, nest::take_out(&doc, &found.way)),
    };
    Ok(format!("{mark}{edited}"))
}

#[cfg(test)]
mod tests {
    use crate::clients::{Allowed, Client, Extras, File};

    const ALLOW: Extras = Extras { hooks: false, wake: false, allow: true };

    fn file(client: &str) -> &'static File {
        let mut files = Client::named(client).unwrap().files.iter();
        files.find(|file| file.allow.is_some()).unwrap()
    }

    #[track_caller]
    fn check(client: &str, before: &str, after: &str) {
        let file = file(client);
        assert_eq!(file.add_allow(before, ALLOW).unwrap(), after, "add to {before:?}");
        assert_eq!(file.add_allow(after, ALLOW).unwrap(), after, "add again to {before:?}");
        assert_eq!(file.allows(after), Ok(Allowed::Yes));
        assert_eq!(file.remove_allow(after).unwrap(), before, "remove from {after:?}");
    }

    #[test]
    fn in_and_out_again() {
        check(
            "claude",
            "{\"permissions\":{\"allow\":[\"Read\"]}}",
            "{\"permissions\":{\"allow\":[\"Read\",\"mcp__team-table\"]}}",
        );
        check(
            "claude",
            "{\"permissions\": {\"deny\": [\"x\"]}}",
            "{\"permissions\": {\"deny\": [\"x\"], \"allow\": [ \"mcp__team-table\" ]}}",
        );
        check(
            "claude",
            "{\r\n\t\"permissions\": {\r\n\t\t\"allow\": [\r\n\t\t\t\"a\"\r\n\t\t]\r\n\t}\r\n}",
            "{\r\n\t\"permissions\": {\r\n\t\t\"allow\": [\r\n\t\t\t\"a\",\r\n\t\t\t\
             \"mcp__team-table\"\r\n\t\t]\r\n\t}\r\n}",
        );
        check(
            "claude",
            "{\"permissions\": {\"allow\": []}}",
            "{\"permissions\": {\"allow\": [\"mcp__team-table\"]}}",
        );
        check(
            "opencode",
            "{\n  // c\n  \"permission\": {\n    \"*\": \"ask\", // d\n  },\n}\n",
            "{\n  // c\n  \"permission\": {\n    \"*\": \"ask\", // d\n    \"team-table_*\": \"allow\",\n  \
             },\n}\n",
        );
        check("opencode", "{\"a\":1}", "{\"a\":1,\"permission\":{ \"team-table_*\":\"allow\" }}");
    }

    #[test]
    fn what_others_say_stays() {
        let text = "{\"permission\": {\"team-table_*\": \"ask\"}}";
        let opencode = file("opencode");
        assert_eq!(opencode.allows(text), Ok(Allowed::Otherwise));
        assert_eq!(opencode.add_allow(text, ALLOW).unwrap(), text);
        assert_eq!(opencode.remove_allow(text).unwrap(), text);
        let twice = "{\"permissions\": {\"allow\": [\"mcp__team-table\", \"mcp__team-table\"]}}";
        let once = "{\"permissions\": {\"allow\": [\"mcp__team-table\"]}}";
        assert_eq!(file("claude").add_allow(twice, ALLOW).unwrap(), twice);
        assert_eq!(file("claude").remove_allow(twice).unwrap(), once);
    }

    #[test]
    fn what_cannot_be_edited_is_refused_with_its_place() {
        let check = |client, text: &str, column, part: &str| {
            let fault = file(client).add_allow(text, ALLOW).unwrap_err();
            assert_eq!((fault.line, fault.column), (1, column), "{text:?}: {fault:?}");
            assert!(fault.text.contains(part), "{text:?}: {fault:?}");
            assert_eq!(file(client).remove_allow(text).ok(), Some(text.to_owned()));
        };
        check("claude", "{\"permissions\": 1}", 17, "expected an object as `permissions`");
        check("claude", "{\"permissions\": {\"allow\": {}}}", 27, "expected a list as `allow`");
        check("opencode", "{\"permission\": \"ask\"}", 16, "found a string");
    }
}
