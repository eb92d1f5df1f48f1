use super::*;

const INSTANCE: &str = "Dire Wolf on \u{1b}hut";

fn name(labels: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Name(labels.iter().map(|label| label.as_bytes().to_vec()).collect()).write(&mut bytes);
    bytes
}

fn record(name: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).expect("it is short");
    let class = if kind == PTR { INTERNET } else { INTERNET | CACHE_FLUSH };
    [name, &kind.to_be_bytes(), &class.to_be_bytes(), &[0, 0, 0, 10], &length.to_be_bytes(), data].concat()
}

/// An answer with these records, and with the question as answers to one-shot queries have it.
fn answer(records: &[Vec<u8>]) -> Vec<u8> {
    let count = u8::try_from(records.len()).expect("they are few");
    let question = [&name(&["_kiss-tnc", "_tcp", "local"])[..], &[0, 12, 0, 1]].concat();
    [&[0, 0, 0x84, 0, 0, 1, 0, count, 0, 0, 0, 0][..], &question, &records.concat()].concat()
}

/// Pointer to the name of the question (RFC 1035 4.1.4).
const SERVICE: [u8; 2] = [0xc0, 12];

fn instance() -> Vec<u8> {
    let label = [&[u8::try_from(INSTANCE.len()).expect("it is short")], INSTANCE.as_bytes()].concat();
    [&label[..], &SERVICE].concat()
}

fn pointer() -> Vec<u8> {
    record(&SERVICE, PTR, &instance())
}

fn service() -> Vec<u8> {
    record(&instance(), SRV, &[&[0, 0, 0, 0, 0x1f, 0x41][..], &name(&["hut", "local"])].concat())
}

fn host(kind: u16, address: &[u8]) -> Vec<u8> {
    record(&name(&["HUT", "local"]), kind, address)
}

/// Result of a search with a responder on loopback that sends these messages, and the number of questions that it gets.
fn found(messages: &[Vec<u8>]) -> (Vec<Announced>, usize) {
    let [responder, socket] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a socket"));
    let [to, from] = [&responder, &socket].map(|socket| socket.local_addr().expect("it has one"));
    // The messages wait for the program, so that no time of an answer matters.
    for message in messages {
        responder.send_to(message, from).expect("loopback takes it");
    }
    let found = ask(&socket, to, Duration::ZERO);
    responder.set_nonblocking(true).expect("a socket can be");
    let mut buffer = [0; MESSAGE_BYTES_MAX];
    let queries = std::iter::from_fn(|| responder.recv_from(&mut buffer).ok());
    (found, queries.count())
}

fn tnc(address: &str) -> Vec<Announced> {
    vec![Announced { name: "Dire Wolf on _hut".into(), address: address.parse().expect("an address") }]
}

#[test]
fn a_tnc_that_announces_itself_is_found() {
    let v6 = [0x20, 0x01, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
    let link_local = [&[0xfe, 0x80][..], &[0; 13], &[7]].concat();
    let all = answer(&[pointer(), service(), host(AAAA, &v6), host(A, &[192, 0, 2, 7])]);
    assert_eq!(found(&[b"nonsense".to_vec(), all]), (tnc("192.0.2.7:8001"), 1));
    let newer = answer(&[pointer(), service(), host(AAAA, &link_local), host(AAAA, &v6)]);
    assert_eq!(found(&[newer]), (tnc("[2001:db8::7]:8001"), 1));
    assert_eq!(found(&[]), (vec![], ROUNDS), "nobody answers");
}

#[test]
fn records_that_an_answer_leaves_out_are_asked_for() {
    let mut answers = Answers::default();
    let mut asked = Vec::new();
    for record in [pointer(), service(), host(A, &[192, 0, 2, 7])] {
        asked.extend(answers.questions().into_iter().map(|(name, kind)| (name.shown(), kind)));
        answers.read(&answer(&[record])).expect("it is valid");
    }
    let expected = [("_kiss-tnc", PTR), ("Dire Wolf on _hut", SRV), ("hut", A)];
    assert_eq!(asked, expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert!(answers.questions().is_empty());
    assert_eq!(answers.announced(), tnc("192.0.2.7:8001"));
}

#[test]
fn any_bytes_are_read_or_refused() {
    let whole = answer(&[pointer(), service(), host(A, &[192, 0, 2, 7])]);
    for end in 0..whole.len() {
        let mut answers = Answers::default();
        assert_eq!(answers.read(&whole[..end]), None, "{end}");
        assert!(answers.announced().is_empty());
        for byte in [0, 1, 0x3f, 0x40, 0xc0, 0xff] {
            let mut changed = whole.clone();
            changed[end] = byte;
            let _ = Answers::default().read(&changed);
        }
    }
    // A name that points to itself, and one that never ends.
    assert!(Name::read(&[0xc0, 0], &mut 0).is_none());
    assert!(Name::read(&[1, b'a', 0xc0, 0], &mut 0).is_none());
    let mut answers = Answers::default();
    for number in 0..100 {
        let _ = answers.read(&answer(&[host(A, &[192, 0, 2, number])]));
    }
    assert_eq!(answers.hosts.len(), RECORDS_MAX);
}
