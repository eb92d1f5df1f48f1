//! The table of interoperability, as a page.

use crate::peer::Caller;

/// Payload lengths, with their names.
pub const SIZES: [(&str, usize); 5] =
    [("0 B", 0), ("1 B", 1), ("1 KiB", 1024), ("1 MB", 1_000_000), ("50 MB", 50_000_000)];

/// Results for bundles of every length in one direction over one kind of session.
#[derive(Clone, Debug)]
pub struct Row {
    /// Name of the peer and of the kind of session.
    pub peer: &'static str,
    /// Side that opens the connection.
    pub caller: Caller,
    /// True if our node sends.
    pub we_send: bool,
    /// For each length, true if exactly the bytes sent were received.
    pub arrived: [bool; SIZES.len()],
}

impl Row {
    /// Cells before the results.
    fn head(&self) -> String {
        let caller = if self.caller == Caller::We { "Longwire" } else { "the peer" };
        let way = if self.we_send { "to the peer" } else { "to Longwire" };
        format!("| {} | {caller} | {way} |", self.peer)
    }

    fn line(&self) -> String {
        let cells = self.arrived.map(|arrived| if arrived { " yes |" } else { " no |" });
        self.head() + &cells.concat()
    }
}

/// Returns the results of this row in a page; `None` if the page has no such row.
pub fn expected(page: &str, row: &Row) -> Option<[bool; SIZES.len()]> {
    let line = page.lines().find(|line| line.starts_with(&row.head()))?;
    let mut cells = line[row.head().len()..].split('|').map(|cell| cell.trim() == "yes");
    Some(core::array::from_fn(|_| cells.next().unwrap_or(false)))
}

/// Returns the page with these rows of one kind of peer in place of its own; `order` lists all kinds.
pub fn with_rows(page: &str, order: &[&str], rows: &[Row], notes: &str) -> String {
    let mut lines: Vec<String> =
        page.lines().filter(|line| line.starts_with("| ")).map(str::to_owned).collect();
    lines.retain(|line| !rows.iter().any(|row| line.starts_with(&format!("| {} |", row.peer))));
    lines.extend(rows.iter().map(Row::line));
    let place = |line: &String| order.iter().position(|peer| line.starts_with(&format!("| {peer} |")));
    lines.retain(|line| place(line).is_some());
    lines.sort_by_key(place);
    let mut whole = PAGE_HEAD.to_owned();
    SIZES.iter().for_each(|(name, _)| whole += &format!(" {name} |"));
    whole += &format!("\n|---|---|---|{}\n", "---|".repeat(SIZES.len()));
    lines.iter().for_each(|line| whole += &format!("{line}\n"));
    whole + "\n" + notes
}

const PAGE_HEAD: &str = "\
# Interoperability

Bundles of random bytes over loopback sockets, one at a time. `yes`: the receiving application got exactly the bytes sent.
`./test` repeats this and fails if the result differs from this page; `./test interop --write` rewrites the page.

| peer | opens the connection | bundles |";
