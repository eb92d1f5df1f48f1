//! Members of a group, by their node IDs.

use longwire_proto::bp::Eid;
use longwire_settings::error::Error;

/// Checks the members that a link names, and returns them in their usual form.
///
/// # Errors
/// Fails, with a hint, on what is no node ID, on this node itself, and on nodes that are listed twice.
pub(super) fn checked(members: &[String], own: &str) -> Result<Vec<Eid>, Error> {
    let mut checked: Vec<Eid> = Vec::new();
    for member in members {
        let eid = match member.parse::<Eid>() {
            Ok(eid) if eid.is_node_id() => eid.detached(),
            _ => {
                return Err(Error::new(format!("`{member}` is not a valid node ID"))
                    .hint("a member is a node ID such as dtn://bob/ or ipn:7.0"));
            }
        };
        if eid.to_string() == own {
            return Err(Error::new("this node cannot be a member").hint("list only the other nodes"));
        }
        if checked.contains(&eid) {
            return Err(Error::new(format!("{eid} is listed twice")).hint("remove the duplicate"));
        }
        checked.push(eid);
    }
    Ok(checked)
}
