//! Rules between the security blocks of a bundle (RFC 9172 3.2, 3.6 to 3.9, 5.2), and changes that keep them.

use super::block::{SecurityBlock, TARGETS_MAX};
use super::canonical::{self, PAYLOAD_BLOCK, PRIMARY_BLOCK, Scope};
use super::signature::PublicKey;
use super::{Fault, confidentiality, integrity};
use crate::bp::{Block, BlockFlags, BlockType, CrcType, Eid, Head};
use std::collections::BTreeSet;

/// Security service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Integrity: block integrity blocks.
    Integrity,
    /// Confidentiality: block confidentiality blocks.
    Confidentiality,
}

impl Service {
    /// Type of the security blocks of this service.
    pub const fn block_type(self) -> BlockType {
        match self {
            Service::Integrity => BlockType::BlockIntegrity,
            Service::Confidentiality => BlockType::BlockConfidentiality,
        }
    }

    const fn of(block_type: BlockType) -> Option<Self> {
        match block_type {
            BlockType::BlockIntegrity => Some(Service::Integrity),
            BlockType::BlockConfidentiality => Some(Service::Confidentiality),
            _ => None,
        }
    }
}

/// Outcome of one security operation, which counts as if it were alone in its block (RFC 9172 5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Security source: the node whose key was used. That it may speak for the source of the bundle is not said.
    pub source: Eid,
    /// Number of the security block.
    pub block: u64,
    /// Block number of the target.
    pub target: u64,
    /// Public key in the block, if the operation has one. After success it is the one that is known of the security source,
    /// or its first.
    pub public_key: Option<PublicKey>,
    /// The operation has succeeded, or the reason why it has not.
    pub outcome: Result<(), Fault>,
}

/// Checks all rules between the security blocks of a bundle. Encrypted blocks are not read.
///
/// # Errors
/// Fails with the first violated rule.
pub fn check(head: &Head) -> Result<(), Fault> {
    let mut operations = BTreeSet::new();
    for block in &head.blocks {
        let Some(service) = Service::of(block.block_type) else { continue };
        if service == Service::Integrity && head.is_encrypted(block.number) {
            continue;
        }
        for operation in SecurityBlock::from_bytes(&block.data)?.operations {
            check_target(head, service, operation.target)?;
            if !operations.insert((service, operation.target)) {
                return Err(Fault::RepeatedOperation(operation.target));
            }
            if service == Service::Confidentiality {
                check_flags(block.flags, operation.target)?;
            }
        }
    }
    Ok(())
}

/// The targets that a service may have (RFC 9172 3.7, 3.8).
fn check_target(head: &Head, service: Service, target: u64) -> Result<(), Fault> {
    let is_allowed = match (service, target) {
        (Service::Integrity, PRIMARY_BLOCK) | (_, PAYLOAD_BLOCK) => true,
        (Service::Confidentiality, PRIMARY_BLOCK) => false,
        (_, number) => match Service::of(canonical::find(head, number)?.block_type) {
            None => true,
            Some(Service::Integrity) => service == Service::Confidentiality,
            Some(Service::Confidentiality) => false,
        },
    };
    if is_allowed { Ok(()) } else { Err(Fault::ForbiddenTarget(target)) }
}

/// The flags of a block confidentiality block (RFC 9172 3.8).
fn check_flags(flags: BlockFlags, target: u64) -> Result<(), Fault> {
    let is_kept = target != PAYLOAD_BLOCK || flags.contains(BlockFlags::REPLICATE);
    if is_kept && !flags.contains(BlockFlags::DISCARD) { Ok(()) } else { Err(Fault::ForbiddenFlags) }
}

/// Fails if the bundle has no such operation. An encrypted block integrity block does not count: its targets cannot be read.
///
/// # Errors
/// Fails with [`Fault::MissingOperation`].
pub fn require(head: &Head, service: Service, target: u64) -> Result<(), Fault> {
    let is_there = readable(head, service).any(|(_, block)| block.targets(target));
    if is_there { Ok(()) } else { Err(Fault::MissingOperation) }
}

/// Number of the block that has this operation, as [`require`] finds it; `None` without one.
pub fn find(head: &Head, service: Service, target: u64) -> Option<(u64, SecurityBlock)> {
    readable(head, service).find(|(_, block)| block.targets(target))
}

/// Security blocks of a service that can be decoded and are not encrypted, with their numbers.
pub(super) fn readable(head: &Head, service: Service) -> impl Iterator<Item = (u64, SecurityBlock)> {
    let blocks = head.blocks.iter().filter(move |block| block.block_type == service.block_type());
    let blocks = blocks.filter(|block| !head.is_encrypted(block.number));
    blocks.filter_map(|block| Some((block.number, SecurityBlock::from_bytes(&block.data).ok()?)))
}

impl SecurityBlock {
    /// True if the block has an operation with this target.
    pub(super) fn targets(&self, target: u64) -> bool {
        self.operations.iter().any(|operation| operation.target == target)
    }
}

/// Fails if the rules do not allow these new operations.
pub(super) fn check_addition(head: &Head, service: Service, targets: &[u64]) -> Result<(), Fault> {
    check_whole(head)?;
    if targets.is_empty() || targets.len() > TARGETS_MAX {
        return Err(Fault::TargetCount);
    }
    for (index, &target) in targets.iter().enumerate() {
        check_target(head, service, target)?;
        if targets[..index].contains(&target) || require(head, service, target).is_ok() {
            return Err(Fault::RepeatedOperation(target));
        }
        if head.is_encrypted(target) {
            return Err(Fault::EncryptedTarget(target));
        }
    }
    Ok(())
}

/// Fails if the bundle is a fragment, or if its security blocks break a rule.
pub(super) fn check_whole(head: &Head) -> Result<(), Fault> {
    if head.primary.fragment.is_some() { Err(Fault::Fragment) } else { check(head) }
}

/// Fails if a security operation of another block covers the primary block, or may do so.
pub(super) fn check_primary_is_free(head: &Head) -> Result<(), Fault> {
    let covers = |block: &Block| {
        let Some(service) = Service::of(block.block_type) else { return false };
        let Ok(security) = SecurityBlock::from_bytes(&block.data) else { return true };
        if head.is_encrypted(block.number) {
            return true;
        }
        let scope = match service {
            Service::Integrity => integrity::scope(&security),
            Service::Confidentiality => confidentiality::scope(&security),
        };
        let is_covered = scope.is_none_or(|scope| scope.contains(Scope::PRIMARY_BLOCK));
        is_covered && security.operations.iter().any(|operation| operation.target != PRIMARY_BLOCK)
    };
    if head.blocks.iter().any(covers) { Err(Fault::CoveredPrimaryBlock) } else { Ok(()) }
}

/// Adds a security block behind those that the bundle has, before all other blocks.
pub(super) fn insert(head: &mut Head, block: Block) {
    let is_other = |block: &Block| Service::of(block.block_type).is_none();
    let place = head.blocks.iter().position(is_other).unwrap_or(head.blocks.len());
    head.blocks.insert(place, block);
}

/// Removes an operation, and its block if that was the only one.
pub(super) fn remove_operation(head: &mut Head, block: u64, target: u64) {
    let Some(index) = head.blocks.iter().position(|other| other.number == block) else { return };
    let Ok(mut security) = SecurityBlock::from_bytes(&head.blocks[index].data) else { return };
    security.operations.retain(|operation| operation.target != target);
    if security.operations.is_empty() {
        head.blocks.remove(index);
    } else {
        head.blocks[index].data = security.to_bytes();
    }
}

/// Gives blocks a CRC of this type whose operations were removed, unless other ones protect them (RFC 9173 3.8.2, 4.8.2).
pub(super) fn restore_crc(head: &mut Head, targets: &[u64], crc: CrcType) -> Result<(), Fault> {
    for &target in targets {
        let services = [Service::Integrity, Service::Confidentiality];
        if crc == CrcType::None || services.iter().any(|service| require(head, *service, target).is_ok()) {
            continue;
        }
        if target == PRIMARY_BLOCK {
            check_primary_is_free(head)?;
        }
        canonical::set_crc(head, target, crc);
    }
    Ok(())
}

/// Removes an extension block that cannot be decrypted or is altered, and all security operations on it (RFC 9172 5.1.1).
/// Returns false for the primary block and the payload block: then the bundle must be deleted.
pub fn discard(head: &mut Head, target: u64) -> bool {
    if matches!(target, PRIMARY_BLOCK | PAYLOAD_BLOCK) {
        return false;
    }
    for service in [Service::Integrity, Service::Confidentiality] {
        let blocks: Vec<u64> = readable(head, service)
            .filter(|(_, block)| block.targets(target))
            .map(|(number, _)| number)
            .collect();
        blocks.into_iter().for_each(|block| remove_operation(head, block, target));
    }
    head.blocks.retain(|block| block.number != target);
    true
}
