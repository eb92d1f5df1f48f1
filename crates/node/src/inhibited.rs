//! TNCs whose transmissions an operator has inhibited: a file with the name of one in each line, beside the store. It outlasts a
//! restart, after which a transmitter must not key up although its operator has forbidden it.

use crate::private_files;
use longwire_settings::error::Error;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// Maximum length of the file, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads the file; empty if there is none.
///
/// # Errors
/// Fails if the file cannot be read: nobody knows then what is inhibited.
pub(crate) fn read(path: &Path) -> Result<BTreeSet<String>, Error> {
    let failed = |what: String| {
        Error::new(format!("the list of inhibited TNCs {}: {what}", path.display())).hint(
            "each line is the name of a TNC that must not transmit; repair the file, or remove it to permit all of them",
        )
    };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Ok(about) if about.len() > FILE_BYTES_MAX => return Err(failed("the file is too long".into())),
        _ => {}
    }
    let text = longwire_settings::file::read_regular_text(path).map_err(|error| failed(error.to_string()))?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Replaces the file.
///
/// # Errors
/// Fails if it cannot be written; then the old one is unchanged.
pub(crate) fn write(path: &Path, names: &BTreeSet<String>) -> io::Result<()> {
    let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
    private_files::replace(path, lines.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;

    #[test]
    fn names_that_are_written_are_read() {
        let folder = TestFolder::new("inhibited");
        let path = folder.0.join("store.inhibited");
        assert!(read(&path).expect("no file").is_empty());
        let names = BTreeSet::from(["vhf".to_owned(), "hf 20 m".to_owned()]);
        write(&path, &names).expect("it is written");
        assert_eq!(read(&path).expect("it is read"), names);
        std::fs::remove_file(&path).expect("it is there");
        std::fs::create_dir(&path).expect("it is made");
        assert!(read(&path).expect_err("a folder is no file").hint.is_some());
    }
}
