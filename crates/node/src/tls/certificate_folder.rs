//! Folder with a local authority and the certificates that it has signed: sufficient for a few nodes.
//!
//! ```text
//!   ca.pem   the authority: every node trusts it           alice.pem   a node's certificate
//!   ca.key   its key: stays in this folder                 alice.key   its key: goes to that node only
//! ```

use super::issue::{Authority, CertificateRequest, IssuedCertificate};
use longwire_proto::bp::Eid;
use longwire_settings::error::Error;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Paths of the files that were created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedFiles {
    /// Certificate of the node.
    pub certificate: PathBuf,
    /// Private key of the node.
    pub key: PathBuf,
    /// Certificate of the authority.
    pub authority: PathBuf,
    /// True if the authority was created, too.
    pub authority_is_new: bool,
}

/// Signs a certificate and writes it to a folder; creates the authority of the folder if there is none.
///
/// # Errors
/// Fails if files cannot be read or written, or if a certificate for the node exists and `replace` is false.
pub fn issue(
    folder: &Path,
    wish: &CertificateRequest,
    unix_s: i64,
    replace: bool,
) -> Result<IssuedFiles, Error> {
    let name = wish.node_ids.first().map(|id| file_name(id)).unwrap_or_default();
    let at = |end: &str| folder.join(format!("{name}.{end}"));
    let (certificate, key) = (at("pem"), at("key"));
    if !replace && let Some(there) = [&certificate, &key].into_iter().find(|path| path.exists()) {
        return Err(Error::new(format!("{} already exists", there.display()))
            .hint("use --replace to create a new certificate and key"));
    }
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    let (authority, authority_is_new) = authority(folder, unix_s)?;
    let minted = authority.sign(wish).map_err(|error| {
        Error::new(format!("cannot create the certificate: {error}"))
            .hint("use ASCII node IDs and host names, and a shorter lifetime")
    })?;
    write(&certificate, &minted.certificate, 0o644)?;
    write(&key, &minted.key, 0o600)?;
    Ok(IssuedFiles { certificate, key, authority: folder.join("ca.pem"), authority_is_new })
}

/// Returns the authority of the folder, and true if it is new.
fn authority(folder: &Path, unix_s: i64) -> Result<(Authority, bool), Error> {
    let (certificate, key) = (folder.join("ca.pem"), folder.join("ca.key"));
    let failed = |error: rcgen::Error| {
        Error::new(format!(
            "{} and its key are not a valid certificate authority: {error}",
            certificate.display()
        ))
        .hint("move both away to create a new one; then every node needs the new ca.pem")
    };
    match (read(&certificate)?, read(&key)?) {
        (Some(certificate), Some(key)) => {
            Ok((Authority::read(&IssuedCertificate { certificate, key }).map_err(failed)?, false))
        }
        (None, None) => {
            let (authority, files) = Authority::new("Longwire authority", unix_s).map_err(failed)?;
            write(&key, &files.key, 0o600)?;
            write(&certificate, &files.certificate, 0o644)?;
            Ok((authority, true))
        }
        (has_certificate, _) => {
            let (there, missing) =
                if has_certificate.is_some() { (certificate, key) } else { (key, certificate) };
            Err(Error::new(format!("{} exists, but {} does not", there.display(), missing.display()))
                .hint("run this where both files are, or move the file away to create a new authority"))
        }
    }
}

fn read(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::new(format!("cannot read {}: {error}", path.display()))),
    }
}

/// Writes a file atomically, with its final rights from the start.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), Error> {
    let part = path.with_extension("part");
    let written = (|| {
        let _ = fs::remove_file(&part);
        let mut file = OpenOptions::new().create_new(true).write(true).mode(mode).open(&part)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, path)
    })();
    written.map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    Error::new(format!("cannot write {}: {error}", path.display())).hint("choose the folder with --into")
}

/// Returns the base name of a node's files: `alice` for dtn://alice/, `ipn-7` for ipn:7.0.
fn file_name(node_id: &str) -> String {
    let plain = match node_id.parse::<Eid>() {
        Ok(_) if node_id.starts_with("ipn:") => node_id.trim_end_matches(".0").replace([':', '.'], "-"),
        _ => node_id.trim_start_matches("dtn://").trim_end_matches('/').to_owned(),
    };
    let safe =
        |letter: char| if letter.is_ascii_alphanumeric() || "-_".contains(letter) { letter } else { '-' };
    let name: String = plain.chars().map(safe).collect();
    // `ca` is reserved for the authority.
    if name == "ca" || name.is_empty() { format!("node-{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::{Credentials, TlsSettings};
    use std::os::unix::fs::PermissionsExt;

    const NOW: i64 = 1_800_000_000;

    #[test]
    fn an_authority_signs_what_nodes_can_use() {
        let folder = std::env::temp_dir().join(format!("longwire-office-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let wish = |id: &str| CertificateRequest::for_node(id, NOW, 10);
        let first = issue(&folder, &wish("dtn://alice/"), NOW, false).expect("it is made");
        assert!(first.authority_is_new);
        let authority = fs::read(&first.authority).unwrap();
        let second = issue(&folder, &wish("ipn:7.0"), NOW, false).expect("it is made");
        assert!(!second.authority_is_new);
        assert_eq!(
            (&second.key, authority),
            (&folder.join("ipn-7.key"), fs::read(&second.authority).unwrap())
        );
        for key in [&first.key, &second.key, &folder.join("ca.key")] {
            assert_eq!(fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600, "{}", key.display());
        }
        let settings = TlsSettings {
            certificate: Some(second.certificate),
            key: Some(second.key),
            trust: vec![second.authority],
            ..TlsSettings::default()
        };
        assert_eq!(Credentials::load(&settings).expect("they go together").claims().node_ids, ["ipn:7.0"]);

        let again = issue(&folder, &wish("dtn://alice/"), NOW, false).expect_err("it is there");
        assert!(again.to_string().contains("--replace"), "{again}");
        issue(&folder, &wish("dtn://alice/"), NOW, true).expect("it is replaced");
        fs::remove_file(folder.join("ca.key")).unwrap();
        let half = issue(&folder, &wish("dtn://bob/"), NOW, false).expect_err("its key is gone");
        assert!(half.what.contains("ca.key does not"), "{half}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn files_are_called_like_their_node() {
        let names = ["dtn://alice/", "ipn:7.0", "ipn:977000.7.0", "dtn://ca/", "dtn://a.b~c/"];
        assert_eq!(names.map(file_name), ["alice", "ipn-7", "ipn-977000-7", "node-ca", "a-b-c"]);
    }
}
