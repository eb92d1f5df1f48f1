//! The documents of the repository: every page is in the index, and every link leads somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Paths of all pages, relative to the root.
fn pages() -> Vec<PathBuf> {
    let root = root();
    let pages_in = |folder: &str| {
        let entries = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let pages = entries.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
        pages.map(|path| path.strip_prefix(&root).unwrap().to_path_buf()).collect::<Vec<_>>()
    };
    ["", "docs", "interop"].iter().flat_map(|folder| pages_in(folder)).collect()
}

/// Targets of the links of a page, without those in code blocks.
fn links(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose
        .flat_map(|prose| prose.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')'))
        .map(|(to, _)| to)
        .collect()
}

/// Anchors that the headings of a page have on the web.
fn anchors(text: &str) -> BTreeSet<String> {
    let prose = text.split("```").step_by(2);
    let headings = prose.flat_map(str::lines).filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
            kept.collect::<String>().replace(' ', "-")
        })
        .collect()
}

/// Links of `page` that lead nowhere.
fn broken(root: &Path, page: &Path, texts: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let folder = page.parent().unwrap();
    let leads_nowhere = |to: &&str| {
        let (file, anchor) = to.split_once('#').map_or((*to, None), |(file, anchor)| (file, Some(anchor)));
        let target = if file.is_empty() { page.to_path_buf() } else { folder.join(file) };
        let Ok(target) = root.join(target).canonicalize() else { return true };
        let target = target.strip_prefix(root).unwrap_or(&target);
        anchor.is_some_and(|anchor| !texts.get(target).is_some_and(|text| anchors(text).contains(anchor)))
    };
    let inside =
        links(&texts[page]).into_iter().filter(|to| !to.contains("://") && !to.starts_with("mailto:"));
    inside.filter(leads_nowhere).map(|to| format!("{}: {to}", page.display())).collect()
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let root = root();
    let texts: BTreeMap<_, _> = pages()
        .into_iter()
        .map(|page| (page.clone(), fs::read_to_string(root.join(page)).unwrap()))
        .collect();
    let broken: Vec<String> = texts.keys().flat_map(|page| broken(&root, page, &texts)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_page_is_in_the_index() {
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    let named: BTreeSet<&str> = links(&index).into_iter().collect();
    let all = pages().into_iter().filter_map(|page| Some(page.strip_prefix("docs").ok()?.to_path_buf()));
    for page in all.filter(|page| page != Path::new("README.md")) {
        assert!(named.contains(page.to_str().unwrap()), "docs/README.md does not name {}", page.display());
    }
}

#[test]
fn a_link_that_leads_nowhere_is_noticed() {
    let page = PathBuf::from("README.md");
    let text = "# A b, c\n[1](#a-b-c) [2](#d) [3](docs/README.md) [4](docs/none.md)\n```\n[5](none)\n```\n[6](https://none)";
    let texts = BTreeMap::from([(page.clone(), text.to_owned())]);
    assert_eq!(broken(&root(), &page, &texts), ["README.md: #d", "README.md: docs/none.md"]);
}
