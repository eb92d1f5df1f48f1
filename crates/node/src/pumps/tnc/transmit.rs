//! An identification through a TNC, for programs without an event loop: does the TNC key its transmitter?

use super::{Driver, TncAddress, TncEngine};
use bytes::Bytes;
use longwire_proto::ax25::{Callsign, Frame, Modulo};
use longwire_proto::controller::{self, ChannelParameters};
use longwire_proto::service::{FramesIndication, FramesRequest, Shares};
use longwire_proto::{agwpe, kiss};
use std::io;
use std::time::Duration;

/// Token of the frame.
const TOKEN: u64 = 1;

/// Report of a TNC about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransmissionReport {
    /// In KISS mode: the frame has left. Of an AGWPE server: no frame waits on the port any more.
    Transmitted,
    /// The AGWPE server reports that the frame still waits for a clear channel.
    Waits,
    /// The TNC has the frame and reports nothing: it cannot, or the channel is busy.
    Nothing,
}

/// Sends an identification (a UI frame to `ID`, AX.25 4.3.3.6) with a text over the first port of a TNC, and returns the report of the
/// TNC. **It keys the transmitter.** In KISS mode a frame without text that asks for the report goes ahead, because a TNC without
/// acknowledgement mode may drop it.
///
/// # Errors
/// Fails if the system provides no event loop, or the line cannot be opened, is lost, or does not accept the frame within `limit`.
pub fn identify(
    own: Callsign,
    text: &'static str,
    place: &TncAddress,
    channel: ChannelParameters,
    limit: Duration,
) -> io::Result<TransmissionReport> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let plain = Frame::identification(own);
    let probe = plain.to_bytes(Modulo::Eight);
    let frame = Frame { information: Bytes::from_static(text.as_bytes()), ..plain }.to_bytes(Modulo::Eight);
    let controller = controller::Config { channel, ..controller::Config::default() };
    let engine = match place {
        TncAddress::Kiss(_) => TncEngine::kiss(kiss::Config::default(), controller, Some(probe)),
        TncAddress::Agwpe(_) => TncEngine::agwpe(agwpe::Config::default(), controller),
    };
    runtime.block_on(async {
        let mut driver = Driver::new(engine, place.line().clone());
        let mut is_sent = false;
        match tokio::time::timeout(limit, transmit(&mut driver, frame, &mut is_sent)).await {
            Ok(ended) => ended,
            Err(_) if driver.engine().waits() => Ok(TransmissionReport::Waits),
            Err(_) if is_sent => Ok(TransmissionReport::Nothing),
            Err(_) => Err(io::Error::other("no answer")),
        }
    })
}

async fn transmit(
    driver: &mut Driver<TncEngine>,
    frame: Bytes,
    is_sent: &mut bool,
) -> io::Result<TransmissionReport> {
    let mut has_left = false;
    driver.request(FramesRequest::Join).map_err(io::Error::other)?;
    loop {
        match driver.step().await {
            Some(FramesIndication::Carrier(true)) => {
                driver.request(FramesRequest::Seize).map_err(io::Error::other)?;
            }
            Some(FramesIndication::Room(room)) if room > 0 && !*is_sent => {
                *is_sent = true;
                let (bytes, shares) = (frame.clone(), Shares::default());
                let frame = FramesRequest::Frame { bytes, token: Some(TOKEN), last: true, shares };
                driver.request(frame).map_err(io::Error::other)?;
            }
            Some(FramesIndication::Transmitted(TOKEN)) => has_left = true,
            _ => {}
        }
        if driver.lost() > 0 {
            return Err(io::Error::other(driver.engine().why_down().unwrap_or("connection lost")));
        }
        let is_reported = match driver.engine() {
            TncEngine::Kiss(tnc) => tnc.acknowledges(),
            TncEngine::Agwpe(raw) => Some(raw.counters().unanswered == 0),
        };
        if has_left && let Some(is_reported) = is_reported {
            return Ok(match is_reported {
                true => TransmissionReport::Transmitted,
                false => TransmissionReport::Nothing,
            });
        }
    }
}
