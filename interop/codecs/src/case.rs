//! One bundle for each rule of RFC 9171: a violation of the rule, or a use of it to its limit.

use crate::tree::Item::{Array, Bytes, Chunked, Negative, Open, Simple, Tag, Unsigned, Wide};
use crate::tree::{Item, Tree};

/// Rule, and a bundle that tests it.
#[derive(Debug)]
pub struct Case {
    /// Name of the change to the valid bundle.
    pub name: &'static str,
    /// Clause of the rule.
    pub clause: &'static str,
    /// True if the changed bundle must be accepted.
    pub legal: bool,
    /// Makes the change.
    pub edit: fn(&mut Tree),
}

const fn illegal(name: &'static str, clause: &'static str, edit: fn(&mut Tree)) -> Case {
    Case { name, clause, legal: false, edit }
}

const fn legal(name: &'static str, clause: &'static str, edit: fn(&mut Tree)) -> Case {
    Case { name, clause, legal: true, edit }
}

/// Indices in the primary block.
const FLAGS: usize = 1;
const CRC_TYPE: usize = 2;
const DESTINATION: usize = 3;
const SOURCE: usize = 4;
const REPORT_TO: usize = 5;
const TIMESTAMP: usize = 6;
const LIFETIME: usize = 7;

/// Valid bundle with every block of RFC 9171, to which the cases apply their change.
pub fn sound() -> Tree {
    let primary = vec![
        Unsigned(7),
        Unsigned(0),
        Unsigned(2),
        ipn(2, 1),
        ipn(1, 5),
        ipn(1, 0),
        Array(vec![Unsigned(800_000_000_000), Unsigned(3)]),
        Unsigned(3_600_000),
        Bytes(vec![0; 4]),
    ];
    let bundle = Open(vec![
        Array(primary),
        block(6, 2, &dtn("//moon/")),
        block(7, 3, &Unsigned(5)),
        block(10, 4, &Array(vec![Unsigned(30), Unsigned(2)])),
        Array(vec![
            Unsigned(1),
            Unsigned(1),
            Unsigned(0),
            Unsigned(2),
            Bytes(b"a payload".to_vec()),
            Bytes(vec![0; 4]),
        ]),
    ]);
    Tree { bundle, behind: Vec::new(), wrong_crc: None }
}

fn ipn(node: u64, service: u64) -> Item {
    Array(vec![Unsigned(2), Array(vec![Unsigned(node), Unsigned(service)])])
}

fn dtn(ssp: &str) -> Item {
    Array(vec![Unsigned(1), Item::text(ssp)])
}

fn null() -> Item {
    Array(vec![Unsigned(1), Unsigned(0)])
}

fn block(block_type: u64, number: u64, content: &Item) -> Item {
    Array(vec![
        Unsigned(block_type),
        Unsigned(number),
        Unsigned(0),
        Unsigned(2),
        Bytes(content.to_bytes()),
        Bytes(vec![0; 4]),
    ])
}

fn set_content(tree: &mut Tree, block_type: u64, content: Item) {
    tree.block(block_type)[4] = Bytes(content.to_bytes());
}

/// Inserts a block before the payload block.
fn add(tree: &mut Tree, block: Item) {
    let blocks = tree.blocks();
    blocks.insert(blocks.len() - 1, block);
}

fn without_crc(block: &mut Vec<Item>, type_index: usize) {
    block[type_index] = Unsigned(0);
    block.pop();
}

fn make_fragment(tree: &mut Tree, offset: u64, total: u64) {
    let primary = tree.primary();
    primary[FLAGS] = Unsigned(1);
    primary.splice(LIFETIME + 1..LIFETIME + 1, [Unsigned(offset), Unsigned(total)]);
}

/// Cases of the outer structure.
const STRUCTURE: &[Case] = &[
    legal("nothing", "RFC 9171 4", |_| {}),
    illegal("the outer array has a length", "RFC 9171 4.1", |t| {
        t.bundle = Array(t.blocks().clone());
    }),
    illegal("a tag before the bundle", "RFC 9171 4.1", |t| {
        t.bundle = Tag(55799, Box::new(t.bundle.clone()));
    }),
    illegal("bytes after the bundle", "RFC 9171 4.1", |t| t.behind = vec![0]),
    illegal("no blocks at all", "RFC 9171 4.1", |t| t.blocks().clear()),
    illegal("a primary block only", "RFC 9171 4.1", |t| t.blocks().truncate(1)),
    illegal("no payload", "RFC 9171 4.1", |t| drop(t.blocks().pop())),
    illegal("the payload is not the last block", "RFC 9171 4.1", |t| t.blocks().swap(3, 4)),
    illegal("two payloads", "RFC 9171 4.1", |t| {
        let payload = t.blocks()[4].clone();
        add(t, payload);
    }),
    illegal("a second payload with another number", "RFC 9171 4.1", |t| {
        let mut payload = t.blocks()[4].clone();
        payload.items().expect("an array")[1] = Unsigned(9);
        add(t, payload);
    }),
    illegal("the payload block has number 2", "RFC 9171 4.1", |t| {
        t.blocks().remove(1);
        t.block(1)[1] = Unsigned(2);
    }),
    illegal("an extension block with number 0", "RFC 9171 4.1", |t| t.block(7)[1] = Unsigned(0)),
    illegal("an extension block with number 1", "RFC 9171 4.1", |t| t.block(7)[1] = Unsigned(1)),
    illegal("a block number twice", "RFC 9171 4.1", |t| t.block(7)[1] = Unsigned(4)),
    legal("block numbers without order", "RFC 9171 4.1", |t| {
        t.block(6)[1] = Unsigned(77);
        t.block(10)[1] = Unsigned(2);
    }),
    legal("a block number of 64 bits", "RFC 9171 4.1", |t| t.block(7)[1] = Unsigned(u64::MAX)),
    illegal("a number longer than needed", "RFC 9171 4.1", |t| {
        t.primary()[LIFETIME] = Wide(Box::new(Unsigned(3_600_000)));
    }),
    illegal("the version longer than needed", "RFC 9171 4.1", |t| {
        t.primary()[0] = Wide(Box::new(Unsigned(7)));
    }),
    illegal("the length of an array longer than needed", "RFC 9171 4.1", |t| {
        t.blocks()[2] = Wide(Box::new(t.blocks()[2].clone()));
    }),
    illegal("the primary block is an integer", "RFC 9171 4.3.1", |t| t.blocks()[0] = Unsigned(7)),
    illegal("a block is a byte string", "RFC 9171 4.3.2", |t| {
        t.blocks()[1] = Bytes(vec![1, 2, 3]);
    }),
];

/// Cases of the primary block.
const PRIMARY: &[Case] = &[
    illegal("version 6", "RFC 9171 4.3.1", |t| t.primary()[0] = Unsigned(6)),
    illegal("version 8", "RFC 9171 4.3.1", |t| t.primary()[0] = Unsigned(8)),
    illegal("a primary block without CRC", "RFC 9171 4.3.1", |t| without_crc(t.primary(), CRC_TYPE)),
    illegal("CRC type 3", "RFC 9171 4.2.1", |t| t.primary()[CRC_TYPE] = Unsigned(3)),
    illegal("a wrong CRC of the primary block", "RFC 9171 4.2.2", |t| t.wrong_crc = Some(0)),
    illegal("a CRC-32C of two bytes", "RFC 9171 4.2.2", |t| {
        *t.primary().last_mut().expect("a CRC") = Bytes(vec![0; 2]);
    }),
    illegal("a CRC as a number", "RFC 9171 4.2.2", |t| {
        *t.primary().last_mut().expect("a CRC") = Unsigned(0);
    }),
    illegal("a CRC without its type", "RFC 9171 4.3.1", |t| t.primary()[CRC_TYPE] = Unsigned(0)),
    illegal("a CRC type without the CRC", "RFC 9171 4.3.1", |t| drop(t.primary().pop())),
    illegal("an item too many", "RFC 9171 4.3.1", |t| t.primary().insert(8, Unsigned(0))),
    illegal("no lifetime", "RFC 9171 4.3.1", |t| drop(t.primary().remove(LIFETIME))),
    illegal("a negative lifetime", "RFC 9171 4.3.1", |t| t.primary()[LIFETIME] = Negative(5)),
    legal("a lifetime of zero", "RFC 9171 4.3.1", |t| t.primary()[LIFETIME] = Unsigned(0)),
    legal("a lifetime of 64 bits", "RFC 9171 4.3.1", |t| t.primary()[LIFETIME] = Unsigned(u64::MAX)),
    illegal("negative flags", "RFC 9171 4.2.3", |t| t.primary()[FLAGS] = Negative(0)),
    legal("reserved bundle flags", "RFC 9171 4.2.3", |t| t.primary()[FLAGS] = Unsigned(0x08 | 0x20_0000)),
    legal("a bundle flag of more than 21 bits", "RFC 9171 4.2.3", |t| {
        t.primary()[FLAGS] = Unsigned(1 << 40);
    }),
    illegal("an administrative record that asks for reports", "RFC 9171 4.2.3", |t| {
        t.primary()[FLAGS] = Unsigned(0x02 | 0x4000);
    }),
    illegal("a block of an administrative record asks for reports", "RFC 9171 4.2.4", |t| {
        t.primary()[FLAGS] = Unsigned(0x02);
        t.block(7)[2] = Unsigned(2);
    }),
    illegal("an anonymous bundle that asks for reports", "RFC 9171 4.2.3", |t| {
        t.primary()[SOURCE] = null();
        t.primary()[FLAGS] = Unsigned(0x04 | 0x2_0000);
    }),
    illegal("an anonymous bundle that may be fragmented", "RFC 9171 4.2.3", |t| {
        t.primary()[SOURCE] = null();
    }),
    legal("an anonymous bundle", "RFC 9171 4.2.3", |t| {
        t.primary()[SOURCE] = null();
        t.primary()[FLAGS] = Unsigned(0x04);
    }),
    illegal("a block of an anonymous bundle asks for reports", "RFC 9171 4.2.4", |t| {
        t.primary()[SOURCE] = null();
        t.primary()[FLAGS] = Unsigned(0x04);
        t.block(7)[2] = Unsigned(2);
    }),
    illegal("an anonymous fragment", "RFC 9171 4.2.3", |t| {
        make_fragment(t, 0, 100);
        t.primary()[SOURCE] = null();
        t.primary()[FLAGS] = Unsigned(0x05);
    }),
    legal("a fragment", "RFC 9171 4.3.1", |t| make_fragment(t, 10, 100)),
    legal("a fragment of a bundle that must not be fragmented", "RFC 9171 4.2.3", |t| {
        make_fragment(t, 10, 100);
        t.primary()[FLAGS] = Unsigned(0x05);
    }),
    legal("a fragment with all of the data", "RFC 9171 5.8", |t| make_fragment(t, 0, 9)),
    illegal("a fragment that ends after its application data unit", "RFC 9171 5.8", |t| {
        make_fragment(t, 95, 100)
    }),
    illegal("a fragment that begins after its application data unit", "RFC 9171 5.8", |t| {
        make_fragment(t, 200, 100)
    }),
    illegal("a fragment whose end is beyond 64 bits", "RFC 9171 5.8", |t| {
        make_fragment(t, u64::MAX, u64::MAX);
    }),
    illegal("a fragment without payload", "RFC 9171 5.8", |t| {
        make_fragment(t, 10, 100);
        t.block(1)[4] = Bytes(Vec::new());
    }),
    illegal("the fragment flag without the fields", "RFC 9171 4.3.1", |t| {
        t.primary()[FLAGS] = Unsigned(1);
    }),
    illegal("the fragment fields without the flag", "RFC 9171 4.3.1", |t| {
        make_fragment(t, 10, 100);
        t.primary()[FLAGS] = Unsigned(0);
    }),
    illegal("a creation timestamp of one item", "RFC 9171 4.2.7", |t| {
        t.primary()[TIMESTAMP] = Array(vec![Unsigned(5)]);
    }),
    illegal("a creation timestamp of three items", "RFC 9171 4.2.7", |t| {
        t.primary()[TIMESTAMP] = Array(vec![Unsigned(5); 3]);
    }),
    illegal("a creation timestamp that is a number", "RFC 9171 4.2.7", |t| {
        t.primary()[TIMESTAMP] = Unsigned(5);
    }),
    legal("times and numbers of 64 bits", "RFC 9171 4.2.7", |t| {
        t.primary()[TIMESTAMP] = Array(vec![Unsigned(u64::MAX); 2]);
    }),
    legal("no creation time, but an age", "RFC 9171 4.4.2", |t| {
        t.primary()[TIMESTAMP] = Array(vec![Unsigned(0), Unsigned(3)]);
    }),
    illegal("neither creation time nor age", "RFC 9171 4.4.2", |t| {
        t.primary()[TIMESTAMP] = Array(vec![Unsigned(0), Unsigned(3)]);
        t.blocks().remove(2);
    }),
];

/// Cases of endpoint identifiers.
const ENDPOINTS: &[Case] = &[
    legal("a dtn name", "RFC 9171 4.2.5.1.1", |t| t.primary()[DESTINATION] = dtn("//earth/in/box")),
    legal("a dtn group", "RFC 9171 4.2.5.1.1", |t| t.primary()[DESTINATION] = dtn("//earth/~all")),
    legal("the null endpoint as destination", "RFC 9171 4.2.5.1.1", |t| {
        t.primary()[DESTINATION] = null();
    }),
    legal("the null endpoint for reports", "RFC 9171 4.2.5.1.1", |t| t.primary()[REPORT_TO] = null()),
    illegal("none as text", "RFC 9171 4.2.5.1.1", |t| t.primary()[REPORT_TO] = dtn("none")),
    illegal("a dtn name without slashes before it", "RFC 9171 4.2.5.1.1", |t| {
        t.primary()[DESTINATION] = dtn("earth/in");
    }),
    illegal("a dtn name without a slash after it", "RFC 9171 4.2.5.1.1", |t| {
        t.primary()[DESTINATION] = dtn("//earth");
    }),
    illegal("a dtn node name with a blank", "RFC 9171 4.2.5.1.1", |t| {
        t.primary()[DESTINATION] = dtn("//the earth/in");
    }),
    illegal("a dtn demux with a blank", "RFC 9171 4.2.5.1.1", |t| {
        t.primary()[DESTINATION] = dtn("//earth/in box");
    }),
    illegal("a dtn name that is not UTF-8", "RFC 9171 4.2.5.1.1", |t| {
        t.primary()[DESTINATION] = Array(vec![Unsigned(1), Item::Text(b"//\xff\xfe/".to_vec())]);
    }),
    illegal("a dtn name as a byte string", "RFC 9171 4.2.5.1.1", |t| {
        t.primary()[DESTINATION] = Array(vec![Unsigned(1), Bytes(b"//earth/".to_vec())]);
    }),
    illegal("a dtn name that is a number other than zero", "RFC 9171 4.2.5.1.1", |t| {
        t.primary()[DESTINATION] = Array(vec![Unsigned(1), Unsigned(1)]);
    }),
    illegal("a group as source", "RFC 9171 4.3.1", |t| t.primary()[SOURCE] = dtn("//earth/~all")),
    legal("an ipn name of three elements", "RFC 9758 6.1", |t| {
        t.primary()[DESTINATION] =
            Array(vec![Unsigned(2), Array(vec![Unsigned(977_000), Unsigned(2), Unsigned(1)])]);
    }),
    legal("an allocator in an ipn name of two elements", "RFC 9758 6.1", |t| {
        t.primary()[DESTINATION] = ipn(977_000 << 32 | 2, 1);
    }),
    illegal("an allocator of more than 32 bits", "RFC 9758 6.3", |t| {
        t.primary()[DESTINATION] =
            Array(vec![Unsigned(2), Array(vec![Unsigned(1 << 32), Unsigned(2), Unsigned(1)])]);
    }),
    illegal("a node number of more than 32 bits in three elements", "RFC 9758 6.3", |t| {
        t.primary()[DESTINATION] =
            Array(vec![Unsigned(2), Array(vec![Unsigned(0), Unsigned(1 << 32), Unsigned(1)])]);
    }),
    legal("ipn:0.0", "RFC 9758 3.4.1", |t| t.primary()[REPORT_TO] = ipn(0, 0)),
    legal("ipn:0.7 is the null endpoint", "RFC 9758 5.2", |t| t.primary()[REPORT_TO] = ipn(0, 7)),
    illegal("the LocalNode as destination", "RFC 9758 5.4", |t| {
        t.primary()[DESTINATION] = ipn(0xffff_ffff, 1);
    }),
    legal("a service number of 64 bits", "RFC 9758 3.5", |t| {
        t.primary()[DESTINATION] = ipn(2, u64::MAX);
    }),
    illegal("an ipn name of one element", "RFC 9758 6", |t| {
        t.primary()[DESTINATION] = Array(vec![Unsigned(2), Array(vec![Unsigned(2)])]);
    }),
    illegal("an ipn name of four elements", "RFC 9758 6", |t| {
        t.primary()[DESTINATION] = Array(vec![Unsigned(2), Array(vec![Unsigned(2); 4])]);
    }),
    illegal("an ipn name as text", "RFC 9758 6", |t| {
        t.primary()[DESTINATION] = Array(vec![Unsigned(2), Item::text("2.1")]);
    }),
    illegal("scheme number 0", "RFC 9171 9.6", |t| {
        t.primary()[DESTINATION] = Array(vec![Unsigned(0), Unsigned(0)]);
    }),
    legal("an unknown scheme", "RFC 9171 4.2.5.1", |t| {
        t.primary()[DESTINATION] = Array(vec![Unsigned(77), Bytes(vec![1, 2, 3])]);
    }),
    illegal("an endpoint of three items", "RFC 9171 4.2.5.1", |t| {
        t.primary()[DESTINATION] = Array(vec![Unsigned(1), Unsigned(0), Unsigned(0)]);
    }),
    illegal("a text as endpoint", "RFC 9171 4.2.5.1", |t| {
        t.primary()[DESTINATION] = Item::text("dtn://earth/");
    }),
];

/// Cases of canonical blocks and their data.
const BLOCKS: &[Case] = &[
    legal("a payload of no bytes", "RFC 9171 4.3.2", |t| t.block(1)[4] = Bytes(Vec::new())),
    legal("blocks without CRC", "RFC 9171 4.3.2", |t| {
        [6, 7, 10, 1].into_iter().for_each(|block_type| without_crc(t.block(block_type), 3));
    }),
    legal("blocks with CRC-16", "RFC 9171 4.2.1", |t| {
        for block_type in [6, 7, 10, 1] {
            let block = t.block(block_type);
            (block[3], block[5]) = (Unsigned(1), Bytes(vec![0; 2]));
        }
    }),
    illegal("a wrong CRC of an extension block", "RFC 9171 4.2.2", |t| t.wrong_crc = Some(2)),
    illegal("a wrong CRC of the payload block", "RFC 9171 4.2.2", |t| t.wrong_crc = Some(4)),
    illegal("an extension block with CRC type 3", "RFC 9171 4.2.1", |t| t.block(7)[3] = Unsigned(3)),
    illegal("an extension block with a CRC and no type", "RFC 9171 4.3.2", |t| t.block(7)[3] = Unsigned(0)),
    illegal("a block with an item too many", "RFC 9171 4.3.2", |t| t.block(7).insert(4, Unsigned(0))),
    illegal("a block with an item too few", "RFC 9171 4.3.2", |t| drop(t.block(7).remove(2))),
    illegal("block data as text", "RFC 9171 4.3.2", |t| t.block(7)[4] = Item::text("\u{5}")),
    illegal("block data as a number", "RFC 9171 4.3.2", |t| t.block(7)[4] = Unsigned(5)),
    illegal("a payload as text", "RFC 9171 4.3.2", |t| t.block(1)[4] = Item::text("a payload")),
    illegal("a payload in chunks", "RFC 9171 4.3.2", |t| {
        t.block(1)[4] = Chunked(Box::new(Bytes(b"a payload".to_vec())));
    }),
    illegal("block type 0", "RFC 9171 9.1", |t| t.block(7)[0] = Unsigned(0)),
    legal("an unknown block type", "RFC 9171 4.3.2", |t| add(t, block(199, 9, &Simple(22)))),
    legal("a block type of 64 bits", "RFC 9171 4.3.2", |t| add(t, block(u64::MAX, 9, &Simple(22)))),
    legal("reserved block flags", "RFC 9171 4.2.4", |t| t.block(7)[2] = Unsigned(0x08 | 0x40)),
    legal("a block flag of more than 8 bits", "RFC 9171 4.2.4", |t| t.block(7)[2] = Unsigned(0x1_0000)),
    legal("unknown data requests deletion of the bundle", "RFC 9171 4.2.4", |t| {
        add(t, block(199, 9, &Simple(22)));
        t.block(199)[2] = Unsigned(4);
    }),
    illegal("two previous nodes", "RFC 9171 4.4.1", |t| add(t, block(6, 9, &dtn("//moon/")))),
    illegal("two ages", "RFC 9171 4.4.2", |t| add(t, block(7, 9, &Unsigned(5)))),
    illegal("two hop counts", "RFC 9171 4.4.3", |t| {
        add(t, block(10, 9, &Array(vec![Unsigned(30), Unsigned(2)])));
    }),
    illegal("the previous node is the null endpoint", "RFC 9171 4.4.1", |t| set_content(t, 6, null())),
    illegal("the previous node is a text", "RFC 9171 4.4.1", |t| {
        set_content(t, 6, Item::text("dtn://moon/"))
    }),
    illegal("an age that is text", "RFC 9171 4.4.2", |t| set_content(t, 7, Item::text("5"))),
    illegal("an age with trailing bytes", "RFC 9171 4.4.2", |t| t.block(7)[4] = Bytes(vec![5, 5])),
    illegal("an age of no bytes", "RFC 9171 4.4.2", |t| t.block(7)[4] = Bytes(Vec::new())),
    illegal("an age longer than needed", "RFC 9171 4.1", |t| {
        set_content(t, 7, Wide(Box::new(Unsigned(5))));
    }),
    legal("an age of 64 bits", "RFC 9171 4.4.2", |t| set_content(t, 7, Unsigned(u64::MAX))),
    illegal("a hop count of one item", "RFC 9171 4.4.3", |t| {
        set_content(t, 10, Array(vec![Unsigned(30)]));
    }),
    illegal("a hop limit of zero", "RFC 9171 4.4.3", |t| {
        set_content(t, 10, Array(vec![Unsigned(0), Unsigned(0)]));
    }),
    illegal("a hop limit of 256", "RFC 9171 4.4.3", |t| {
        set_content(t, 10, Array(vec![Unsigned(256), Unsigned(0)]));
    }),
    legal("a hop count beyond its limit", "RFC 9171 4.4.3", |t| {
        set_content(t, 10, Array(vec![Unsigned(30), Unsigned(31)]));
    }),
    legal("a hop count of 300", "RFC 9171 4.4.3", |t| {
        set_content(t, 10, Array(vec![Unsigned(30), Unsigned(300)]));
    }),
];

/// Returns all cases.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    [STRUCTURE, PRIMARY, ENDPOINTS, BLOCKS].into_iter().flatten()
}
