//! A call to a station whose AX.25 is Dire Wolf's own.

use crate::common::DEADLINE;
use crate::direwolf::{Air, OURS, Rig, THEIRS, is_installed};
use bytes::Bytes;
use longwire_node::tnc::{Call, CallEvent, TEXTS_MAX, texts};
use longwire_proto::controller::ChannelParameters;
use longwire_proto::service::CloseReason;

#[tokio::test]
async fn a_station_of_dire_wolf_is_called_and_answers() {
    if !is_installed() {
        return;
    }
    let rig = Rig::start("call", Air { rate_bps: 9600, window: 4, destroyed_percent: 0, digipeater: false });
    let mut theirs = rig.user(1, THEIRS).await;
    let call = Call {
        own: OURS.parse().unwrap(),
        peer: THEIRS.parse().unwrap(),
        path: Vec::new(),
        place: rig.kiss(0).parse().unwrap(),
        port: 0,
        channel: ChannelParameters { rate_bps: 9600, ..ChannelParameters::default() },
        retries: 10,
    };
    let (sender, input) = texts(TEXTS_MAX);
    let operator = tokio::task::spawn_blocking(move || {
        let mut sender = Some(sender);
        let mut heard = String::new();
        let end = call.run(input, |event| {
            if let CallEvent::Received(bytes) = event {
                heard += &String::from_utf8_lossy(&bytes);
                if heard.ends_with("BBS> ")
                    && let Some(sender) = sender.take()
                {
                    // The call runs on this thread, which must not wait for it. The input ends with this line.
                    let told = std::thread::spawn(move || sender.send(Bytes::from_static(b"HELP\r")));
                    assert!(told.join().unwrap());
                }
            }
            Ok(())
        });
        (heard, end.unwrap())
    });
    let story = async {
        theirs.called().await?;
        theirs.send(b"Welcome\rBBS> ").await;
        let line = theirs.receive(5).await?;
        theirs.closed().await?;
        Ok::<_, String>(line)
    };
    let line = tokio::time::timeout(DEADLINE, story).await.unwrap().unwrap();
    assert_eq!(line, b"HELP\r");
    let (heard, end) = operator.await.unwrap();
    assert_eq!(heard, "Welcome\rBBS> ");
    assert_eq!((end.was_connected, end.reason, end.unsent), (true, Some(CloseReason::Finished), 0));
}
