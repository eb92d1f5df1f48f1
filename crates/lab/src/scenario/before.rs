//! Scenario files of earlier versions: `stack` for the protocol, and a shape of its own for each kind of channel.

use toml::{Table, Value};

/// Keys of channels in these files.
const CHANNELS: [&str; 4] = ["meeting", "radio", "link", "outage"];

/// Converts the table of such a file; any other stays as it is.
///
/// # Errors
/// Fails if the file has keys of both versions for the same thing, or hops that its nodes do not make.
pub(super) fn converted(mut table: Table) -> Result<Table, String> {
    if let Some(protocol) = table.remove("stack")
        && table.insert("protocol".into(), protocol).is_some()
    {
        return Err("`stack` and `protocol` are not for the same file".into());
    }
    let Some(old) = CHANNELS.into_iter().find(|key| table.contains_key(*key)) else { return Ok(table) };
    if table.contains_key("channel") {
        return Err(format!("`{old}` and `channel` are not for the same file"));
    }
    let channels = match old {
        "meeting" => with_contacts(&mut table)?,
        "radio" => vec![shared(&mut table)?],
        _ => hops(&mut table)?,
    };
    let channels = channels.into_iter().map(Value::Table).collect();
    table.insert("channel".into(), Value::Array(channels));
    Ok(table)
}

/// Contacts of pairs of nodes, each with a channel of its own.
fn with_contacts(table: &mut Table) -> Result<Vec<Table>, String> {
    table.entry("messages").or_insert_with(|| Value::Table(Table::new()));
    table.entry("runs").or_insert(Value::Integer(8));
    let channel = |mut contact: Table| {
        let between = contact.remove("between").unwrap_or_else(|| Value::Array(Vec::new()));
        let contact = Value::Array(vec![Value::Table(contact)]);
        Table::from_iter([("between".to_owned(), between), ("contact".to_owned(), contact)])
    };
    Ok(tables(table, "meeting")?.into_iter().map(channel).collect())
}

/// Radio channel of all nodes.
fn shared(table: &mut Table) -> Result<Table, String> {
    table.entry("frames").or_insert_with(|| Value::Table(Table::new()));
    let Some(Value::Table(mut channel)) = table.remove("radio") else {
        return Err("`radio` is not a table".into());
    };
    channel.insert("between".into(), table.get("nodes").cloned().unwrap_or_else(|| Value::Array(Vec::new())));
    Ok(channel)
}

/// Links of the hops of a chain, one for each or one for all, with outages that name their hop.
fn hops(table: &mut Table) -> Result<Vec<Table>, String> {
    let nodes = match table.get("nodes") {
        Some(nodes) => nodes.as_array().cloned().unwrap_or_default(),
        None => super::default_nodes().into_iter().map(Value::String).collect(),
    };
    let hops = nodes.len().saturating_sub(1);
    let (links, outages) = (tables(table, "link")?, tables(table, "outage")?);
    if links.len() > 1 && links.len() != hops {
        return Err(format!("{} nodes make {hops} hops, but there are {} links", hops + 1, links.len()));
    }
    let channel = |(hop, between): (usize, &[Value])| {
        let mut channel = links.get(hop).or(links.first()).cloned().unwrap_or_default();
        channel.insert("between".into(), Value::Array(between.to_vec()));
        channel
    };
    let mut channels: Vec<Table> = nodes.windows(2).enumerate().map(channel).collect();
    for mut outage in outages {
        let hop = outage.remove("hop").map_or(Some(1), |hop| hop.as_integer()).unwrap_or(0);
        let at = usize::try_from(hop).ok().and_then(|hop| hop.checked_sub(1));
        let channel = at
            .and_then(|at| channels.get_mut(at))
            .ok_or_else(|| format!("no such hop: {hop}; hops are numbered from 1 to {hops}"))?;
        if let Value::Array(all) = channel.entry("outage").or_insert_with(|| Value::Array(Vec::new())) {
            all.push(Value::Table(outage));
        }
    }
    Ok(channels)
}

/// Takes a list of tables.
fn tables(table: &mut Table, key: &str) -> Result<Vec<Table>, String> {
    let list = table.remove(key).unwrap_or_else(|| Value::Array(Vec::new()));
    list.try_into().map_err(|_| format!("`{key}` is not a list of tables: write `[[{key}]]`"))
}
