//! `longwire certificate`.

use crate::failure::Failure;
use crate::output::talk;
use clap::Args;
use longwire_node::tls::mint::Wish;
use longwire_node::tls::office;
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
    /// How many days it is valid
    #[arg(long, value_name = "N", default_value_t = 730, value_parser = clap::value_parser!(u32).range(1..=7300))]
    days: u32,
    /// The folder for certificates
    #[arg(long, value_name = "DIR", default_value = "tls")]
    into: PathBuf,
    /// Put it in the place of one that is there, with a new key
    #[arg(long)]
    replace: bool,
}

impl Certificate {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let config = Config { node: self.node.clone(), ..Config::default() };
        let node = config.node_id().map_err(Failure::Usage)?.to_string();
        let now = unix_now().ok_or_else(|| {
            Error::new("the system's clock has not been set: the certificate would never be valid")
                .hint("set it with date or timedatectl")
        })?;
        let mut wish = Wish::for_node(&node, now, self.days);
        wish.names.clone_from(&self.name);
        wish.addresses.clone_from(&self.address);
        let issued = office::issue(&self.into, &wish, now, self.replace)?;
        if issued.founded {
            talk(format_args!(
                "made an authority: {}; its key ca.key beside it signs all others and goes nowhere",
                issued.authority.display()
            ));
        }
        talk(format_args!("made {} for {node}, valid for {} days", issued.certificate.display(), self.days));
        crate::reach::print(&format!(
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
