//! CBOR items as a tree, and bundles made of them. Any structure can be built, including invalid ones.

use longwire_proto::codec::crc::{crc16_x25, crc32c};

/// CBOR item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Unsigned integer.
    Unsigned(u64),
    /// Negative integer: -1 minus this value.
    Negative(u64),
    /// Byte string.
    Bytes(Vec<u8>),
    /// Text string, UTF-8 or not.
    Text(Vec<u8>),
    /// Array of definite length.
    Array(Vec<Item>),
    /// Array of indefinite length.
    Open(Vec<Item>),
    /// Tag before an item.
    Tag(u64, Box<Item>),
    /// Simple value below 24.
    Simple(u8),
    /// Integer or string whose head is one size longer than needed.
    Wide(Box<Item>),
    /// String of indefinite length, in two chunks.
    Chunked(Box<Item>),
    /// Verbatim bytes.
    Raw(Vec<u8>),
}

use Item::{Array, Bytes, Chunked, Negative, Open, Raw, Simple, Tag, Text, Unsigned, Wide};

impl Item {
    /// Makes a text string.
    pub fn text(text: &str) -> Item {
        Text(text.as_bytes().to_vec())
    }

    /// Reads one item of the kinds above from the front; chunks, maps and floats are not supported.
    pub fn read(input: &mut &[u8]) -> Option<Item> {
        let &first = input.first()?;
        let (major, short) = (first >> 5, first & 0x1f);
        let size = match short {
            24..=27 => 1 << (short - 24),
            _ => 0,
        };
        let argument = if size == 0 {
            u64::from(short)
        } else {
            input.get(1..=size)?.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
        };
        *input = &input[1 + size..];
        let string = |input: &mut &[u8]| {
            let (string, rest) = input.split_at_checked(argument as usize)?;
            *input = rest;
            Some(string.to_vec())
        };
        match (major, short) {
            (4, 31) => {
                let mut items = Vec::new();
                while *input.first()? != 0xff {
                    items.push(Item::read(input)?);
                }
                *input = &input[1..];
                Some(Open(items))
            }
            (_, 28..) => None,
            (0, _) => Some(Unsigned(argument)),
            (1, _) => Some(Negative(argument)),
            (2, _) => string(input).map(Bytes),
            (3, _) => string(input).map(Text),
            (4, _) => (0..argument).map(|_| Item::read(input)).collect::<Option<_>>().map(Array),
            (6, _) => Some(Tag(argument, Box::new(Item::read(input)?))),
            (7, ..24) => Some(Simple(short)),
            _ => None,
        }
    }

    /// Returns the items of an array of either kind.
    pub fn items(&mut self) -> Option<&mut Vec<Item>> {
        match self {
            Array(items) | Open(items) => Some(items),
            Tag(_, item) => item.items(),
            _ => None,
        }
    }

    /// Returns the number; `None` for other kinds.
    pub fn number(&self) -> Option<u64> {
        match self {
            Unsigned(number) => Some(*number),
            Wide(item) | Tag(_, item) => item.number(),
            _ => None,
        }
    }

    /// Appends the encoded item.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Unsigned(number) => head(0, *number, 0, out),
            Negative(number) => head(1, *number, 0, out),
            Bytes(bytes) => string(2, bytes, 0, out),
            Text(bytes) => string(3, bytes, 0, out),
            Array(items) => {
                head(4, items.len() as u64, 0, out);
                items.iter().for_each(|item| item.write(out));
            }
            Open(items) => {
                out.push(0x9f);
                items.iter().for_each(|item| item.write(out));
                out.push(0xff);
            }
            Tag(number, item) => {
                head(6, *number, 0, out);
                item.write(out);
            }
            Simple(value) => out.push(0xe0 | value),
            Wide(item) => match &**item {
                Unsigned(number) => head(0, *number, 1, out),
                Bytes(bytes) => string(2, bytes, 1, out),
                Text(bytes) => string(3, bytes, 1, out),
                Array(items) => {
                    head(4, items.len() as u64, 1, out);
                    items.iter().for_each(|item| item.write(out));
                }
                other => other.write(out),
            },
            Chunked(item) => match &**item {
                Bytes(bytes) => chunks(2, bytes, out),
                Text(bytes) => chunks(3, bytes, out),
                other => other.write(out),
            },
            Raw(bytes) => out.extend_from_slice(bytes),
        }
    }

    /// Returns the encoded item.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

/// Appends a head, `wider` sizes longer than the shortest form.
fn head(major: u8, argument: u64, wider: usize, out: &mut Vec<u8>) {
    let shortest = match argument {
        0..=23 => 0,
        24..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 3,
        _ => 4,
    };
    match (shortest + wider).min(4) {
        0 => out.push(major << 5 | argument as u8),
        size => {
            out.push(major << 5 | (23 + size as u8));
            out.extend_from_slice(&argument.to_be_bytes()[8 - (1 << (size - 1))..]);
        }
    }
}

fn string(major: u8, bytes: &[u8], wider: usize, out: &mut Vec<u8>) {
    head(major, bytes.len() as u64, wider, out);
    out.extend_from_slice(bytes);
}

fn chunks(major: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(major << 5 | 0x1f);
    let (first, second) = bytes.split_at(bytes.len() / 2);
    string(major, first, 0, out);
    string(major, second, 0, out);
    out.push(0xff);
}

/// Bundle as a tree: the outer array, with the blocks as arrays.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Outer array.
    pub bundle: Item,
    /// Bytes after the bundle.
    pub behind: Vec<u8>,
    /// Index of the block whose CRC is made wrong.
    pub wrong_crc: Option<usize>,
}

impl Tree {
    /// Reads a bundle that an implementation has written.
    ///
    /// # Panics
    /// Panics if the bytes are not such a bundle.
    pub fn read(mut bytes: &[u8]) -> Tree {
        let bundle = Item::read(&mut bytes).expect("a bundle is CBOR");
        assert!(bytes.is_empty(), "a bundle and nothing else");
        Tree { bundle, behind: Vec::new(), wrong_crc: None }
    }

    /// Returns the blocks, the primary block first.
    pub fn blocks(&mut self) -> &mut Vec<Item> {
        self.bundle.items().expect("a bundle is an array")
    }

    /// Returns the items of the primary block.
    pub fn primary(&mut self) -> &mut Vec<Item> {
        self.blocks()[0].items().expect("a block is an array")
    }

    /// Returns the items of the first block of this type.
    pub fn block(&mut self, block_type: u64) -> &mut Vec<Item> {
        let mut blocks =
            self.blocks()[1..].iter_mut().map(|block| block.items().expect("a block is an array"));
        blocks.find(|items| items[0].number() == Some(block_type)).expect("the bundle has this block")
    }

    /// Returns the bytes of the bundle, with correct CRCs in all blocks that have a field of the length of their CRC
    /// type.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut tree = self.clone();
        let wrong = self.wrong_crc;
        if let Some(blocks) = tree.bundle.items() {
            for (index, block) in blocks.iter_mut().enumerate() {
                put_crc(block, if index == 0 { 2 } else { 3 }, wrong == Some(index));
            }
        }
        let mut out = tree.bundle.to_bytes();
        out.extend_from_slice(&self.behind);
        out
    }
}

/// Computes the CRC of a block over its actual bytes, and sets it.
fn put_crc(block: &mut Item, type_index: usize, wrong: bool) {
    let crc_type = block.items().and_then(|items| items.get(type_index)).and_then(Item::number);
    let bytes = match crc_type {
        Some(1) => 2,
        Some(2) => 4,
        _ => return,
    };
    let Some(field) = field(block, bytes) else { return };
    field.fill(0);
    let encoded = block.to_bytes();
    let value = match bytes {
        2 => u32::from(crc16_x25(&encoded)),
        _ => crc32c(&encoded),
    };
    let value = if wrong { value ^ 1 } else { value };
    let field = self::field(block, bytes).expect("it was there a moment ago");
    field.copy_from_slice(&value.to_be_bytes()[4 - bytes..]);
}

/// Returns the CRC field: the last item, if it is a byte string of this length.
fn field(block: &mut Item, bytes: usize) -> Option<&mut Vec<u8>> {
    let last = block.items()?.last_mut()?;
    let last = match last {
        Wide(item) | Chunked(item) | Tag(_, item) => item,
        item => item,
    };
    match last {
        Bytes(field) if field.len() == bytes => Some(field),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::bp::generate::Generator;
    use longwire_proto::rng::Rng;

    #[test]
    fn a_bundle_as_a_tree_is_the_same_bundle() {
        for seed in 0..500 {
            let bytes = Generator::new(Rng::new(seed)).bundle().to_bytes();
            assert_eq!(Tree::read(&bytes).to_bytes(), bytes, "seed {seed}");
        }
    }
}
