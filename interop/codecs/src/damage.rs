//! Random damage to a bundle: a changed number, type, length, order or form. The CRCs are recomputed afterwards, so
//! that the verdict depends on the rule and not on the CRC.

use crate::tree::{Item, Tree};
use longwire_proto::rng::Rng;

/// Boundary values of numeric fields.
const BORDERS: [u64; 14] = [0, 1, 2, 3, 6, 7, 10, 23, 24, 0xff, 0x100, 0xffff_ffff, 0x1_0000_0000, u64::MAX];

/// Damages the bundle in one place.
pub fn damage(tree: &mut Tree, rng: &mut Rng) {
    // Earlier damage may have removed all blocks.
    if tree.bundle.items().is_none_or(|blocks| blocks.len() < 2) {
        return;
    }
    match rng.below(40) {
        0 => tree.behind = vec![rng.next_u32() as u8],
        1 => {
            let blocks = tree.blocks().len() as u64;
            tree.wrong_crc = Some(rng.below(blocks) as usize);
        }
        2 => tree.bundle = Item::Array(tree.blocks().clone()),
        3 => tree.bundle = Item::Tag(55799, Box::new(tree.bundle.clone())),
        4..16 => {
            // Damage within the data of one block.
            let blocks = &mut tree.blocks()[1..];
            let at = rng.below(blocks.len() as u64) as usize;
            damage_data(&mut blocks[at], rng);
        }
        16..22 => damage_items(tree.blocks(), rng),
        22..32 => damage_item(&mut tree.blocks()[0], rng),
        _ => {
            let blocks = tree.blocks();
            let at = rng.below(blocks.len() as u64) as usize;
            damage_item(&mut blocks[at], rng);
        }
    }
}

/// Damages block data, which are CBOR for the types known to all implementations.
fn damage_data(block: &mut Item, rng: &mut Rng) {
    let Some(items) = block.items() else { return };
    let known = matches!(items.first().and_then(Item::number), Some(6 | 7 | 10));
    match items.get_mut(4) {
        Some(Item::Bytes(data)) if known => {
            let Some(mut item) = Item::read(&mut &data[..]) else { return };
            damage_item(&mut item, rng);
            *data = item.to_bytes();
            if rng.chance(0.1) {
                data.push(0);
            }
        }
        Some(item) => damage_leaf(item, rng),
        None => {}
    }
}

fn damage_item(item: &mut Item, rng: &mut Rng) {
    match item {
        Item::Array(items) if !items.is_empty() && rng.chance(0.8) => {
            let at = rng.below(items.len() as u64) as usize;
            match rng.below(4) {
                0 => damage_items(items, rng),
                _ => damage_item(&mut items[at], rng),
            }
        }
        Item::Array(items) if rng.chance(0.5) => *item = Item::Open(core::mem::take(items)),
        item => damage_leaf(item, rng),
    }
}

/// Changes the order or the number of the items of an array.
fn damage_items(items: &mut Vec<Item>, rng: &mut Rng) {
    let count = items.len() as u64;
    if count == 0 {
        return;
    }
    let [at, other] = [(); 2].map(|()| rng.below(count) as usize);
    match rng.below(4) {
        0 => drop(items.remove(at)),
        1 => items.insert(other, items[at].clone()),
        2 => items.swap(at, other),
        _ => items.insert(at, Item::Unsigned(BORDERS[rng.below(14) as usize])),
    }
}

fn damage_leaf(item: &mut Item, rng: &mut Rng) {
    let old = item.clone();
    *item = match (rng.below(10), old) {
        (0, old) => Item::Wide(Box::new(old)),
        (1, old) => Item::Chunked(Box::new(old)),
        (2, old) if rng.chance(0.5) => Item::Tag(rng.below(100), Box::new(old)),
        (2, _) => Item::Simple(20 + rng.below(4) as u8),
        (3, _) => Item::Unsigned(BORDERS[rng.below(14) as usize]),
        (3..8, Item::Unsigned(number)) => Item::Unsigned(match rng.below(4) {
            0 => number.wrapping_add(1),
            1 => number.wrapping_sub(1),
            2 => number ^ 1 << rng.below(24),
            _ => BORDERS[rng.below(14) as usize],
        }),
        (8, Item::Unsigned(number)) => Item::Negative(number),
        (3..7, Item::Bytes(bytes)) => Item::Bytes(change(bytes, rng)),
        (7, Item::Bytes(bytes)) => Item::Text(bytes),
        (3..7, Item::Text(bytes)) => Item::Text(change(bytes, rng)),
        (7, Item::Text(bytes)) => Item::Bytes(bytes),
        (8, _) => Item::Array(Vec::new()),
        (_, old) => Item::Array(vec![old]),
    };
}

fn change(mut bytes: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    let at = rng.below(bytes.len() as u64 + 1) as usize;
    match rng.below(4) {
        0 => bytes.insert(at, rng.next_u32() as u8),
        1 => bytes.insert(at, b"/~%: 0"[rng.below(6) as usize]),
        _ if at == bytes.len() => drop(bytes.pop()),
        2 => drop(bytes.remove(at)),
        _ => bytes[at] ^= 1 << rng.below(8),
    }
    bytes
}
