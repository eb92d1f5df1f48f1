//! A mail program, and the Maildirs that it reads.

use super::DEADLINE;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

/// Connection of a mail program to a node.
pub(crate) struct MailProgram {
    stream: BufReader<TcpStream>,
}

impl MailProgram {
    pub(crate) fn connect(at: SocketAddr) -> MailProgram {
        let stream = TcpStream::connect(at).expect("the node listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        let mut program = MailProgram { stream: BufReader::new(stream) };
        let greeting = program.reply();
        assert!(greeting.starts_with("220 "), "{greeting}");
        assert!(program.say("EHLO localhost").contains("250-PIPELINING\n"));
        program
    }

    /// Returns the next reply, all lines of it.
    pub(crate) fn reply(&mut self) -> String {
        let mut reply = String::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("a reply");
            let is_last = line.as_bytes().get(3) != Some(&b'-');
            reply.push_str(&line.replace("\r\n", "\n"));
            if is_last {
                return reply;
            }
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).expect("the node reads");
    }

    /// Sends a command and returns the reply.
    pub(crate) fn say(&mut self, command: &str) -> String {
        self.write(format!("{command}\r\n").as_bytes());
        self.reply()
    }

    /// Submits a message, and returns the reply to it or to the first command that was refused.
    pub(crate) fn submit(&mut self, from: &str, to: &[&str], message: &str) -> String {
        self.say("RSET");
        let mut commands = vec![format!("MAIL FROM:<{from}> SIZE={}", message.len())];
        // The words behind an address are parameters.
        commands.extend(to.iter().map(|to| match to.split_once(' ') {
            Some((to, parameters)) => format!("RCPT TO:<{to}> {parameters}"),
            None => format!("RCPT TO:<{to}>"),
        }));
        commands.push("DATA".to_owned());
        for command in commands {
            let reply = self.say(&command);
            if !reply.starts_with('2') && !reply.starts_with("354") {
                return reply;
            }
        }
        let mut content = bytes::BytesMut::new();
        longwire_proto::smtp::put_content(message.replace('\n', "\r\n").as_bytes(), &mut content);
        self.write(&content);
        self.reply()
    }
}

/// Messages in a Maildir, in the order of their names.
pub(crate) fn messages(maildir: &Path) -> Vec<String> {
    let entries = fs::read_dir(maildir.join("new")).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// Python's mail program and its reader of Maildirs.
const PYTHON: &str = r#"
import mailbox, smtplib, sys
from email.message import EmailMessage
from email import policy
port, mode, length, folder = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
data = bytes(i * i * 7 // 3 % 256 for i in range(length))
if mode == "send":
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "alice@alice", "bob@bob", "Photo \u00fc"
    mail.set_content("See the attachment.\n.\n")
    mail.add_attachment(data, maintype="image", subtype="jpeg", filename="photo.jpg")
    with smtplib.SMTP("127.0.0.1", port) as smtp:
        smtp.send_message(mail, rcpt_options=["NOTIFY=SUCCESS,FAILURE"])
else:
    parse = lambda file: __import__("email").message_from_binary_file(file, policy=policy.default)
    [mail] = mailbox.Maildir(folder, factory=parse, create=False)
    if mode == "read":
        [attachment] = mail.iter_attachments()
        assert attachment.get_filename() == "photo.jpg" and attachment.get_content() == data
        assert mail["Subject"] == "Photo \u00fc", mail["Subject"]
        print("read", mail["Received"])
    else:
        assert mail.get_content_type() == "multipart/report", mail
        text, status, header = mail.iter_parts()
        fields = status.get_payload()
        assert fields[1]["Action"] == "delivered" and fields[1]["Final-Recipient"] == "rfc822; bob@bob"
        print(mail["Subject"])
"#;

/// Runs it: `send` submits a message with an attachment of this length, `read` compares the one in a Maildir with it, and `receipt` reads its
/// receipt there. Returns what it prints; `None` without Python.
pub(crate) fn python(port: u16, mode: &str, length: usize, folder: &Path) -> Option<String> {
    let mut command = Command::new("python3");
    command
        .args(["-c", PYTHON, &port.to_string(), mode, &length.to_string()])
        .arg(folder)
        .stdin(Stdio::null());
    let Ok(output) = command.output() else {
        eprintln!("skipped: no python3");
        return None;
    };
    assert!(output.status.success(), "{mode}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
