//! Everything that a bundle protocol agent provides (RFC 9171 3.1).

use super::{AppIndication, AppRequest, ManagementIndication, ManagementRequest};
use crate::codec::variants;
use crate::engine::Service;

/// The services of a bundle protocol agent: [`App`](super::App) for applications and
/// [`Management`](super::Management) for the operator, whose messages have one order.
#[derive(Debug)]
pub enum Bpa {}

impl Service for Bpa {
    type Request = BpaRequest;
    type Indication = BpaIndication;
}

/// Requests of [`Bpa`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BpaRequest {
    /// Request of an application.
    App(AppRequest),
    /// Request of the operator.
    Manage(ManagementRequest),
}

/// Indications of [`Bpa`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BpaIndication {
    /// Indication for applications.
    App(AppIndication),
    /// Indication for the operator.
    Manage(ManagementIndication),
}

variants!(BpaRequest: App(AppRequest), Manage(ManagementRequest));
variants!(BpaIndication: App(AppIndication), Manage(ManagementIndication));
