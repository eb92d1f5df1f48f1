//! Lists of repair requests of limited length (RFC 5740 4.3.1).

use super::symbols::SymbolSet;
use super::wire::{FecScheme, Levels, PayloadId, RepairForm, RepairItem, RepairRequest};

/// Repair requests for a message, in ascending order, no longer than a limit.
#[derive(Debug)]
pub(super) struct RequestList {
    requests: Vec<RepairRequest>,
    bytes_left: usize,
    is_full: bool,
}

/// An object, and the format of the identifiers of its symbols.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectId {
    pub(super) scheme: FecScheme,
    pub(super) object: u16,
}

impl RequestList {
    pub(super) fn new(bytes_max: usize) -> Self {
        RequestList { requests: Vec::new(), bytes_left: bytes_max, is_full: false }
    }

    /// Requests that did not fit were omitted.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn into_requests(self) -> Vec<RepairRequest> {
        self.requests
    }

    /// Adds one item, or both ends of a range, unless something before it did not fit.
    fn push(&mut self, levels: Levels, items: &[RepairItem]) {
        let form = if items.len() == 2 { RepairForm::Ranges } else { RepairForm::Items };
        let continues = self.requests.last().is_some_and(|last| last.form == form && last.levels == levels);
        let length: usize = items.iter().map(|item| RepairRequest::item_bytes(item.scheme)).sum();
        let needed = length + if continues { 0 } else { RepairRequest::HEADER_BYTES };
        if self.is_full || needed > self.bytes_left {
            self.is_full = true;
            return;
        }
        self.bytes_left -= needed;
        if !continues {
            self.requests.push(RepairRequest { form, levels, items: Vec::new() });
        }
        let last = self.requests.last_mut().expect("it was pushed");
        last.items.extend_from_slice(items);
    }

    /// Adds whole objects, from the first to the last.
    pub(super) fn objects(&mut self, scheme: FecScheme, first: u16, last: u16) {
        let item = |object| RepairItem { scheme, object, id: PayloadId::default() };
        if first == last {
            self.push(Levels::OBJECT, &[item(first)]);
        } else {
            self.push(Levels::OBJECT, &[item(first), item(last)]);
        }
    }

    /// Adds the NORM_INFO message of an object.
    pub(super) fn info(&mut self, of: ObjectId) {
        let item = RepairItem { scheme: of.scheme, object: of.object, id: PayloadId::default() };
        self.push(Levels::INFO, &[item]);
    }

    /// Adds whole blocks, from the first to the last; `block_symbols` returns their numbers of source symbols.
    pub(super) fn blocks(&mut self, of: ObjectId, first: u32, last: u32, block_symbols: impl Fn(u32) -> u16) {
        let item = |block| {
            let id = PayloadId { block, block_symbols: block_symbols(block), symbol: 0 };
            RepairItem { scheme: of.scheme, object: of.object, id }
        };
        if first == last {
            self.push(Levels::BLOCK, &[item(first)]);
        } else {
            self.push(Levels::BLOCK, &[item(first), item(last)]);
        }
    }

    /// Adds symbols of a block.
    pub(super) fn symbols(&mut self, of: ObjectId, block: u32, block_symbols: u16, symbols: &SymbolSet) {
        let item = |symbol| {
            let id = PayloadId { block, block_symbols, symbol };
            RepairItem { scheme: of.scheme, object: of.object, id }
        };
        for (first, last) in symbols.runs() {
            if last - first < 2 {
                (first..=last).for_each(|symbol| self.push(Levels::SEGMENT, &[item(symbol)]));
            } else {
                self.push(Levels::SEGMENT, &[item(first), item(last)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: ObjectId = ObjectId { scheme: FecScheme::SmallBlock, object: 18 };

    fn set(symbols: &[u16]) -> SymbolSet {
        let mut set = SymbolSet::EMPTY;
        symbols.iter().for_each(|symbol| {
            set.insert(*symbol);
        });
        set
    }

    /// The second example of RFC 5740 4.3.1, apart from its combined levels.
    #[test]
    fn runs_of_symbols_are_ranges_and_others_are_items() {
        let mut list = RequestList::new(1_000);
        list.symbols(OF, 6, 32, &set(&[5, 6, 7, 8, 9, 10]));
        let next = ObjectId { object: 19, ..OF };
        list.info(next);
        list.symbols(next, 1, 32, &set(&[3, 7, 8]));
        list.symbols(next, 2, 32, &set(&[0]));
        list.blocks(next, 3, 9, |_| 32);
        list.objects(OF.scheme, 20, 20);
        let shape = |request: &RepairRequest| (request.form, request.levels, request.items.len());
        let requests = list.into_requests();
        assert_eq!(
            requests.iter().map(shape).collect::<Vec<_>>(),
            [
                (RepairForm::Ranges, Levels::SEGMENT, 2),
                (RepairForm::Items, Levels::INFO, 1),
                (RepairForm::Items, Levels::SEGMENT, 4),
                (RepairForm::Ranges, Levels::BLOCK, 2),
                (RepairForm::Items, Levels::OBJECT, 1),
            ]
        );
        let symbols = |at: usize| requests[at].items.iter().map(|item| item.id.symbol).collect::<Vec<_>>();
        assert_eq!((symbols(0), symbols(2)), (vec![5, 10], vec![3, 7, 8, 0]));
    }

    #[test]
    fn what_does_not_fit_is_omitted_with_all_after_it() {
        // Two items of 12 octets after a header of 4.
        let mut list = RequestList::new(28);
        list.symbols(OF, 6, 32, &set(&[1, 3]));
        assert!(!list.is_full());
        list.symbols(OF, 7, 32, &set(&[1]));
        assert!(list.is_full());
        assert_eq!(list.into_requests().len(), 1);
        let mut short = RequestList::new(20);
        short.blocks(OF, 0, 4, |_| 32);
        short.info(OF);
        assert!(
            short.is_full() && short.into_requests().is_empty(),
            "an INFO of a later object would overtake it"
        );
    }
}
