//! `longwire certificate`.

use crate::failure::CommandFailure;
use crate::flag;
use crate::output::talk;
use clap::Args;
use longwire_node::tls::certificate_folder;
use longwire_node::tls::issue::CertificateRequest;
use longwire_node::{Config, unix_now};
use longwire_settings::error::Error;
use std::net::IpAddr;
use std::path::PathBuf;

/// Make a node's certificate for TLS, and an authority of your own that signs it
///
/// The first certificate in a folder makes the folder's authority, too: ca.pem, which every node is to trust, and
/// ca.key, which stays there. Each further node gets its certificate from the same folder. Prints what to write into
/// the node's configuration.
#[derive(Debug, Args)]
pub(crate) struct Certificate {
    /// The node id: dtn://name/ or ipn:N.0
    node: String,
    /// A host name that the certificate proves, too (may be given again)
    #[arg(long, value_name = "HOST")]
    name: Vec<String>,
    /// An address that the certificate proves, too (may be given again)
    #[arg(long, value_name = "IP")]
    address: Vec<IpAddr>,
    /// How long it is valid, in whole days: 30d, 730d
    #[arg(long, value_name = "TIME", default_value = "730d", value_parser = days)]
    lifetime: u32,
    /// The folder for certificates
    #[arg(long, value_name = "DIR", default_value = "tls")]
    into: PathBuf,
    /// Put it in the place of one that is there, with a new key
    #[arg(long)]
    replace: bool,
}

/// A number of whole days, from one to twenty years of them.
fn days(text: &str) -> Result<u32, String> {
    const DAY_S: u64 = 86_400;
    let time = flag::time(text)?;
    let days = time.as_secs() / DAY_S;
    match u32::try_from(days) {
        Ok(count) if (1..=7300).contains(&count) && time == std::time::Duration::from_secs(days * DAY_S) => {
            Ok(count)
        }
        _ => Err("it is valid for 1d to 7300d".to_owned()),
    }
}

impl Certificate {
    pub(crate) fn run(&self) -> Result<(), CommandFailure> {
        let config = Config { node: self.node.clone(), ..Config::default() };
        let node = config.node_id().map_err(CommandFailure::Usage)?.to_string();
        let now = unix_now().ok_or_else(|| {
            Error::new("the system's clock has not been set: the certificate would never be valid")
                .hint("set it with date or timedatectl")
        })?;
        let mut wish = CertificateRequest::for_node(&node, now, self.lifetime);
        wish.names.clone_from(&self.name);
        wish.addresses.clone_from(&self.address);
        let issued = certificate_folder::issue(&self.into, &wish, now, self.replace)?;
        if issued.authority_is_new {
            talk(format_args!(
                "made an authority: {}; its key ca.key beside it signs all others and goes nowhere",
                issued.authority.display()
            ));
        }
        talk(format_args!(
            "made {} for {node}, valid for {} days",
            issued.certificate.display(),
            self.lifetime
        ));
        crate::node_connection::print(&format!(
            "# {node} needs these three files; paths are meant beside its configuration.\n\
             [tcpcl]\n\
             tls = \"require\"\n\
             \n\
             [tls]\n\
             certificate = \"{}\"\n\
             key = \"{}\"\n\
             trust = [\"{}\"]\n",
            issued.certificate.display(),
            issued.key.display(),
            issued.authority.display()
        ))
    }
}
