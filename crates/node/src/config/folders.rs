//! `[[drop]]` and `[[receive]]`: folders from which a node sends and removes files, and folders to which it writes them.

use super::{Config, StorageKind, no_endpoint};
use longwire_proto::bp::Eid;
use longwire_settings::error::Error;
use std::path::{Component, Path, PathBuf};

const OWN_FOLDER: &str = "set `folder` to a folder with no other use: the node sends and removes the files in a drop folder, \
                          and others may write to a receive folder";

impl Config {
    /// Makes relative paths relative to this folder. A missing path stays empty: joined, it would be this folder.
    pub(super) fn folders_beside(&mut self, folder: &Path) {
        let drops = self.drop.iter_mut().map(|drop| &mut drop.folder);
        let receives = self.receive.iter_mut().map(|receive| &mut receive.folder);
        for path in drops.chain(receives).filter(|path| !path.as_os_str().is_empty()) {
            *path = folder.join(&*path);
        }
    }

    pub(crate) fn check_folders(&self) -> Result<(), Error> {
        for drop in &self.drop {
            if drop.to.parse::<Eid>().map_or(true, |eid| eid.is_null()) {
                return Err(no_endpoint(&drop.to));
            }
        }
        if let Some(receive) = self.receive.iter().find(|receive| receive.endpoint.is_empty()) {
            let what = format!("[[receive]] {} has no `endpoint`", receive.folder.display());
            return Err(Error::new(what).hint("set it, for example endpoint = \"files\""));
        }
        let mut folders: Vec<&PathBuf> = self.watched().map(|(_, folder)| folder).collect();
        folders.sort();
        if folders.first().is_some_and(|folder| folder.as_os_str().is_empty()) {
            return Err(Error::new("[[drop]] or [[receive]] without `folder`").hint("set `folder`"));
        }
        if let Some(twice) = folders.windows(2).find(|two| two[0] == two[1]) {
            let what = format!("{} is used twice in [[drop]], [[receive]] and [mail]", twice[0].display());
            return Err(
                Error::new(what).hint("each needs its own folder; otherwise received files would be sent")
            );
        }
        let tls = [("tls.certificate", &self.tls.certificate), ("tls.key", &self.tls.key)];
        let secrets = tls.into_iter().chain([("http.token-file", &self.http.token_file)]);
        for (key, file) in secrets.filter_map(|(key, file)| Some((key, file.as_deref()?))) {
            self.check_contained(&format!("the file of `{key}`"), file)?;
        }
        for file in self.security.files() {
            self.check_contained("the file of a key", file)?;
        }
        for file in self.carrier_files() {
            self.check_contained("a file of a convergence layer", &file)?;
        }
        if self.storage.kind == StorageKind::Memory {
            return Ok(());
        }
        let store = resolved(&self.storage.path);
        match self.watched().find(|(_, folder)| resolved(folder).starts_with(&store)) {
            Some((section, folder)) => {
                let what = format!("{section} {} is in the store {}", folder.display(), store.display());
                Err(Error::new(what).hint(OWN_FOLDER))
            }
            None => self.check_contained("the store", &store),
        }
    }

    /// Checks that no folder equals or contains that of the configuration file: its files would be sent and removed, or
    /// others could write beside them.
    pub(super) fn check_folders_are_not(&self, configuration: &Path) -> Result<(), Error> {
        self.check_contained("the folder of the configuration file", configuration)
    }

    fn check_contained(&self, what: &str, path: &Path) -> Result<(), Error> {
        let inner = resolved(path);
        match self.watched().find(|(_, folder)| inner.starts_with(resolved(folder))) {
            None => Ok(()),
            Some((section, folder)) => {
                let said =
                    format!("{section} {} is or contains {what}, {}", folder.display(), inner.display());
                Err(Error::new(said).hint(OWN_FOLDER))
            }
        }
    }

    /// Returns all folders, each with its section.
    fn watched(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let drops = self.drop.iter().map(|drop| ("[[drop]]", &drop.folder));
        let receives = self.receive.iter().map(|receive| ("[[receive]]", &receive.folder));
        drops.chain(receives).chain(self.mail.folder.iter().map(|folder| ("[mail]", folder)))
    }
}

/// Returns the absolute path, without symbolic links as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let here = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let path = std::path::absolute(here).unwrap_or_else(|_| here.to_owned());
    let there = path.ancestors().find_map(|there| Some((there, there.canonicalize().ok()?)));
    let Some((there, mut resolved)) = there else { return path };
    for part in path.strip_prefix(there).into_iter().flat_map(Path::components) {
        match part {
            Component::ParentDir => drop(resolved.pop()),
            part => resolved.push(part),
        }
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;
    use std::fs;

    #[test]
    fn a_folder_is_neither_the_store_nor_the_place_of_the_configuration() {
        let place = TestFolder::new("folders-apart");
        let base = place.0.join("etc/longwire");
        fs::create_dir_all(base.join("store")).unwrap();
        fs::create_dir_all(base.join("keys")).unwrap();
        std::os::unix::fs::symlink("store", base.join("link")).unwrap();
        let parse = |section: &str, folder: &str, more: &str| {
            let ends = if section == "drop" { "to = 'dtn://b/x'" } else { "endpoint = 'x'" };
            let text = format!("node = 'dtn://a/'\n[[{section}]]\nfolder = '{folder}'\n{ends}\n{more}");
            Config::parse(&text, "node.toml", &base).map(drop)
        };
        let own_name = base.display().to_string();
        for section in ["drop", "receive"] {
            for (folder, said) in [
                ("", "without `folder`"),
                ("store", "is in the store"),
                ("store/out", "is in the store"),
                ("missing/../store", "is in the store"),
                ("link", "is in the store"),
                ("link/deep/out", "is in the store"),
                (".", "is or contains the store"),
                ("..", "is or contains the store"),
                ("/", "is or contains the store"),
                (&own_name, "is or contains the store"),
            ] {
                let error = parse(section, folder, "").expect_err(folder).to_string();
                assert!(error.contains(said) && error.contains("hint: "), "{section} {folder}: {error}");
            }
            for folder in ["out", "store-out", "../out", "missing/out", "link-out"] {
                assert_eq!(parse(section, folder, ""), Ok(()), "{section} {folder}");
            }
            let elsewhere = "[storage]\npath = '/var/nowhere/longwire/store'";
            for (folder, more, said) in [
                (".", elsewhere, "is or contains the folder of the configuration file"),
                ("..", "[storage]\nkind = 'memory'", "is or contains the folder of the configuration file"),
                ("keys", "[http]\ntoken-file = 'keys/token'", "is or contains the file of `http.token-file`"),
            ] {
                let error = parse(section, folder, more).expect_err(more).to_string();
                assert!(error.contains(said) && error.contains("hint: "), "{section} {folder}: {error}");
            }
        }
    }
}
