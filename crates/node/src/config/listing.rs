//! List of every setting with its value, one per line, generated from the configuration itself so that it is complete.

use super::Config;
use longwire_settings::duration;
use longwire_towers::CARRIERS;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Settings whose value comes from other keys: `node`, `[[link]]`, `[[peer]]`, `[routing]`.
const ELSEWHERE: [&str; 5] = ["agent.links", "agent.node", "agent.peers", "agent.routing", "tcpcl.node-id"];
/// Setting whose value is never printed.
const SECRET: &str = "http.token";

/// Returns all settings by dotted key, as in TOML; `None` for a setting without value and default.
pub(super) fn settings(config: &Config) -> BTreeMap<String, Option<String>> {
    let mut all = BTreeMap::new();
    enter(&mut all, String::new(), &config.document());
    all.retain(|key, _| !is_elsewhere(key));
    if let Some(Some(secret)) = all.get_mut(SECRET) {
        *secret = "\"..\"".into();
    }
    all
}

/// Returns lines for an operator; a value that differs from its default is followed by the default.
pub(super) fn lines(config: &Config) -> Vec<String> {
    let plain = settings(&Config::default());
    let line = |(key, value): (String, Option<String>)| {
        let text = match &value {
            Some(value) => format!("  {key} = {value}"),
            None => format!("  {key}: not set"),
        };
        match plain.get(&key) {
            Some(default) if *default != value => {
                format!("{text}  # default: {}", default.as_deref().unwrap_or("not set"))
            }
            _ => text,
        }
    };
    settings(config).into_iter().map(line).collect()
}

/// Returns true for a setting whose value comes from other keys: one of the list, and of a group what only its link says.
pub(super) fn is_elsewhere(key: &str) -> bool {
    let is_below =
        |other: &str| key.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let mut groups =
        CARRIERS.iter().map(|carrier| carrier.about()).filter(|about| about.is_group || about.multicast);
    ELSEWHERE.into_iter().any(is_below)
        || groups.any(|about| {
            ["members", "node-id"].iter().any(|own| is_below(&format!("{}.{own}", about.section)))
        })
}

fn enter(all: &mut BTreeMap<String, Option<String>>, key: String, value: &Value) {
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    match value {
        Value::Object(fields) => match plain(value) {
            Some(text) => drop(all.insert(key, Some(text))),
            None if fields.is_empty() => drop(all.insert(key, Some("{}".into()))),
            None => fields.iter().for_each(|(name, value)| enter(all, below(name), value)),
        },
        Value::Array(items) if items.iter().any(|item| item.is_object() && plain(item).is_none()) => {
            for (number, item) in items.iter().enumerate() {
                enter(all, below(&number.to_string()), item);
            }
        }
        Value::Null => drop(all.insert(key, None)),
        other => drop(all.insert(key, Some(text(other)))),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        other => plain(other).unwrap_or_else(|| other.to_string()),
    }
}

/// Returns a duration or a date as the single value that TOML uses for it.
fn plain(value: &Value) -> Option<String> {
    let fields = value.as_object()?;
    match (fields.len(), fields.get("secs"), fields.get("nanos"), fields.values().next()) {
        (2, Some(secs), Some(nanos), _) => {
            let nanos = u32::try_from(nanos.as_u64()?).ok()?;
            duration::exact(Duration::new(secs.as_u64()?, nanos)).map(|text| format!("\"{text}\""))
        }
        (1, _, _, Some(only)) if fields.keys().all(|key| key.starts_with("$__toml")) => {
            only.as_str().map(str::to_owned)
        }
        _ => None,
    }
}
