//! Comparison of a new configuration with the one in force.

use super::Config;
use longwire_settings::toml_text;

/// Settings that a running node applies on reload, beside those of the convergence layers.
const TAKEN_OVER: [&str; 8] =
    ["amateur-networks", "link", "route", "contact", "peer", "peers", "security", "tls"];

impl Config {
    /// Returns the configuration keys whose values in `new` differ and apply only after a restart.
    pub(crate) fn needs_restart(&self, new: &Config) -> Vec<String> {
        let (old, new) = (toml_text::to_table(self), toml_text::to_table(new));
        let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let waits = |key: &&String| !TAKEN_OVER.contains(&key.as_str()) && old.get(*key) != new.get(*key);
        keys.into_iter().filter(waits).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn what_holds_from_the_next_start_on_is_named() {
        let config = |text: &str| Config::parse(text, "test", Path::new("/")).expect("it makes sense");
        let old = config("node = 'dtn://a/'");
        assert!(old.needs_restart(&old).is_empty());
        let new = config(
            "node = 'dtn://b/'\nlisten = ['127.0.0.1:1']\nstorage.path = 'elsewhere'\npeers = 'any'\n\
             [[link]]\nname = 'b'\naddress = 'b:1'\n[tcpcl]\nkeepalive = '5 s'",
        );
        assert_eq!(old.needs_restart(&new), ["listen", "node", "storage"]);
    }
}
