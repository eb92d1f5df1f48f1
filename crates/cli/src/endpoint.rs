//! Endpoint IDs from the command line. An invalid one is refused with a suggestion.

use crate::failure::{CommandFailure, CommandResult};
use longwire_node::view::Link;
use longwire_proto::bp::Eid;
use longwire_settings::error::nearest;

/// Parses an endpoint ID and refuses the null endpoint.
pub(crate) fn check(text: &str) -> CommandResult<Eid> {
    match text.parse::<Eid>() {
        Ok(eid) if !eid.is_null() => Ok(eid),
        Ok(_) => {
            let what = format!("`{text}` is the null endpoint; bundles sent there are discarded");
            Err(CommandFailure::usage(what, "give an endpoint such as dtn://bob/files or ipn:7.1"))
        }
        Err(_) => {
            let hint = match meant(text) {
                Some(meant) => format!("did you mean {meant}?"),
                None => "an endpoint ID looks like dtn://bob/files or ipn:7.1".to_owned(),
            };
            Err(CommandFailure::usage(format!("`{text}` is not a valid endpoint ID"), hint))
        }
    }
}

/// Returns the endpoint ID that was most likely meant by an invalid one.
fn meant(text: &str) -> Option<String> {
    let text = text.trim();
    if text.trim_matches('/').is_empty() {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let dtn = |rest: &str| format!("dtn://{rest}{}", if rest.contains('/') { "" } else { "/files" });
    let name = match lower.split_once(':') {
        // `dtn:bob`, `dnt://bob/files`, `http://bob`.
        Some((scheme, rest))
            if scheme == "dtn" || !rest.trim_start_matches('/').starts_with(|c: char| c.is_ascii_digit()) =>
        {
            dtn(rest.trim_start_matches('/'))
        }
        // `ipn:7`, `ipm:7.1`.
        Some((_, rest)) => {
            let rest = rest.trim_start_matches('/');
            if rest.contains('.') { format!("ipn:{rest}") } else { format!("ipn:{rest}.1") }
        }
        // `7.1`.
        None if text.starts_with(|c: char| c.is_ascii_digit()) => format!("ipn:{text}"),
        // `bob`, `//bob/files`.
        None => dtn(text.trim_start_matches('/')),
    };
    name.parse::<Eid>().is_ok_and(|eid| !eid.is_null()).then_some(name)
}

/// Returns the ID of a neighbour, or of this node, that closely resembles an unknown destination node.
pub(crate) fn neighbour_meant(to: &Eid, node: &str, links: &[Link]) -> Option<String> {
    let wanted = to.node_id().to_string();
    let known: Vec<&str> = links.iter().filter_map(|link| link.peer.as_deref()).chain([node]).collect();
    if known.contains(&wanted.as_str()) {
        return None;
    }
    // Without the scheme, which would make all IDs similar.
    let name = |id: &str| id.rsplit_once("//").map_or(id, |(_, name)| name).trim_end_matches('/').to_owned();
    let names: Vec<String> = known.iter().map(|id| name(id)).collect();
    let near = nearest(&name(&wanted), names.iter().map(String::as_str))?;
    let at = names.iter().position(|name| name == near)?;
    Some(known[at].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_endpoint_is_answered_with_one() {
        for (text, hint) in [
            ("bob/files", "dtn://bob/files?"),
            ("bob", "dtn://bob/files?"),
            ("dtn:bob/files", "dtn://bob/files?"),
            ("dtn:/bob/files", "dtn://bob/files?"),
            ("dnt://bob/files", "dtn://bob/files?"),
            ("DTN://bob/files", "dtn://bob/files?"),
            ("ipn:7", "ipn:7.1?"),
            ("ipn://7.1", "ipn:7.1?"),
            ("7.1", "ipn:7.1?"),
            ("", "looks like dtn://bob/files"),
            ("dtn:none", "give an endpoint"),
        ] {
            match check(text) {
                Err(CommandFailure::Usage(error)) => {
                    assert!(error.to_string().contains(hint), "{text}: {error}")
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        assert!(check("dtn://bob/files").is_ok() && check("ipn:7.1").is_ok());
    }

    #[test]
    fn a_neighbour_with_nearly_that_name_is_named() {
        let link = |peer: &str| Link { peer: Some(peer.to_owned()), ..Link::default() };
        let links = [link("dtn://bob/"), link("dtn://carol/")];
        let meant = |to: &str| neighbour_meant(&to.parse().expect("an endpoint"), "dtn://alice/", &links);
        assert_eq!(meant("dtn://bbo/files").as_deref(), None, "two of three letters differ");
        assert_eq!(meant("dtn://carl/files").as_deref(), Some("dtn://carol/"));
        assert_eq!(meant("dtn://alcie/files").as_deref(), Some("dtn://alice/"));
        assert_eq!(meant("dtn://bob/files"), None);
        assert_eq!(meant("dtn://mars/files"), None);
    }
}
