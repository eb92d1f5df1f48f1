//! `longwire certificate`.

use crate::failure::{CommandFailure, CommandResult};
use crate::flag;
use crate::output::talk;
use clap::Args;
use longwire_node::tls::certificate_folder;
use longwire_node::tls::issue::CertificateRequest;
use longwire_node::{Config, unix_now};
use longwire_settings::error::Error;
use std::net::IpAddr;
use std::path::PathBuf;

/// Create a TLS certificate for a node, and a private authority that signs it
///
/// The first certificate in a folder also creates its certificate authority: ca.pem, which every node must trust, and
/// ca.key, which must stay in the folder. Further nodes get their certificates from the same folder. Prints the lines to
/// add to the configuration of the node.
#[derive(Debug, Args)]
pub(crate) struct Certificate {
    /// Node ID: dtn://name/ or ipn:N.0
    node: String,
    /// Host name to include in the certificate; repeatable
    #[arg(long, value_name = "HOST")]
    name: Vec<String>,
    /// IP address to include in the certificate; repeatable
    #[arg(long, value_name = "IP")]
    address: Vec<IpAddr>,
    /// Validity in whole days: 30d, 730d
    #[arg(long, value_name = "TIME", default_value = "730d", value_parser = days)]
    lifetime: u32,
    /// Folder for certificates
    #[arg(long, value_name = "DIR", default_value = "tls")]
    into: PathBuf,
    /// Replace an existing certificate and its key
    #[arg(long)]
    replace: bool,
}

/// Parses a number of whole days, from one day to twenty years.
fn days(text: &str) -> Result<u32, String> {
    const DAY_S: u64 = 86_400;
    let time = flag::time(text)?;
    let days = time.as_secs() / DAY_S;
    match u32::try_from(days) {
        Ok(count) if (1..=7300).contains(&count) && time == std::time::Duration::from_secs(days * DAY_S) => {
            Ok(count)
        }
        _ => Err("must be whole days, from 1d to 7300d".to_owned()),
    }
}

impl Certificate {
    pub(crate) fn run(&self) -> CommandResult {
        let config = Config { node: self.node.clone(), ..Config::default() };
        let node = config.node_id().map_err(CommandFailure::Usage)?.to_string();
        let now = unix_now().ok_or_else(|| {
            Error::new("the system clock is not set, so the certificate would never be valid")
                .hint("set the clock with date or timedatectl")
        })?;
        let mut wish = CertificateRequest::for_node(&node, now, self.lifetime);
        wish.names.clone_from(&self.name);
        wish.addresses.clone_from(&self.address);
        let issued = certificate_folder::issue(&self.into, &wish, now, self.replace)?;
        if issued.authority_is_new {
            talk(format_args!(
                "created the certificate authority {}; its key ca.key signs all certificates and must stay in the same folder",
                issued.authority.display()
            ));
        }
        let certificate = issued.certificate.display();
        talk(format_args!("created {certificate} for {node}, valid for {} days", self.lifetime));
        crate::node_connection::print(&format!(
            "# {node} needs these three files; paths are relative to its configuration file.\n\
             [tcpcl]\n\
             tls = \"require\"\n\
             \n\
             [tls]\n\
             certificate = \"{certificate}\"\n\
             key = \"{}\"\n\
             trust = [\"{}\"]\n",
            issued.key.display(),
            issued.authority.display()
        ))
    }
}
