//! A mail program, and the Maildirs that it reads.

use super::DEADLINE;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

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
        // What follows an address are parameters.
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
