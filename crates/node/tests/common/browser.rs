//! Chromium without a window, driven over the DevTools protocol: JSON documents over two pipes, each followed by a zero byte
//! (`--remote-debugging-pipe`). It shows errors of the page, and ends with the test.

#![allow(dead_code, reason = "each test file uses a part of it")]

use super::common::{DEADLINE, Place};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Names under which systems have the browser.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Size of the window, pixels, and whether it is that of a phone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size(pub(crate) u32, pub(crate) u32, pub(crate) bool);

pub(crate) const PHONE: Size = Size(390, 844, true);
pub(crate) const DESKTOP: Size = Size(1280, 800, false);

/// A browser with one page.
pub(crate) struct Browser {
    process: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    next: u64,
    session: Option<String>,
    /// Errors of the page and refused requests, as the browser reports them.
    pub(crate) errors: Vec<String>,
    /// Words of errors that the test provokes.
    pub(crate) provoked: Vec<&'static str>,
    profile: Place,
}

/// The right to run browsers: one test at a time, so that they do not slow each other down. `None` if no browser is installed, which
/// is said.
pub(crate) fn alone() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    if program().is_none() {
        println!("skipped: needs chromium (Debian package chromium)");
        return None;
    }
    // A test that has failed leaves nothing behind.
    Some(ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

fn program() -> Option<&'static str> {
    let path = std::env::var_os("PATH")?;
    PROGRAMS.into_iter().find(|name| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}

impl Browser {
    pub(crate) fn open(size: Size) -> Browser {
        let profile = Place::new("browser");
        // The two pipes are the standard input and output of the shell, which the browser gets as descriptors 3 and 4. Its sandbox
        // does not run as root.
        let line = "exec \"$0\" --headless=new --no-sandbox --disable-gpu --no-first-run --disable-dev-shm-usage \
                    --disable-background-networking --disable-component-update --remote-debugging-pipe \
                    --user-data-dir=\"$1\" about:blank 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null";
        let mut process = Command::new("sh")
            .args(["-c", line, program().expect("it is installed")])
            .arg(&profile.0)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let commands = process.stdin.take().expect("a pipe");
        let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
        let (tell, messages) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { return };
                if tell.send(value).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let (session, errors, provoked) = (None, Vec::new(), Vec::new());
        let mut browser =
            Browser { process, commands, messages, next: 0, session, errors, provoked, profile };
        browser.add_tab(size);
        browser
    }

    /// Opens another tab, which commands then go to, and returns the one before.
    pub(crate) fn add_tab(&mut self, size: Size) -> Option<String> {
        let before = self.session.take();
        let page = self.command("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        let attached = self.command("Target.attachToTarget", attach);
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "DOM", "Accessibility"] {
            self.command(&format!("{domain}.enable"), json!({}));
        }
        // Each tab behaves as if it were in front.
        self.command("Emulation.setFocusEmulationEnabled", json!({"enabled": true}));
        self.resize(size);
        before
    }

    /// Sends the next commands to another tab, and returns the one before.
    pub(crate) fn switch_to(&mut self, tab: Option<String>) -> Option<String> {
        std::mem::replace(&mut self.session, tab)
    }

    pub(crate) fn resize(&mut self, Size(width, height, mobile): Size) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
        self.command("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Carries out a command and returns its result.
    #[track_caller]
    pub(crate) fn command(&mut self, method: &str, parameters: Value) -> Value {
        self.ask(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    #[track_caller]
    fn ask(&mut self, method: &str, parameters: Value) -> Result<Value, String> {
        self.next += 1;
        let id = self.next;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).expect("the browser reads");
        let until = Instant::now() + DEADLINE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let message = self.messages.recv_timeout(left).expect("the browser answers in time");
            if message["id"] == id {
                let error = &message["error"];
                return if error.is_null() { Ok(message["result"].clone()) } else { Err(error.to_string()) };
            }
            self.keep_error(&message);
        }
    }

    fn keep_error(&mut self, message: &Value) {
        let parameters = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.errors.push(parameters.to_string()),
            Some("Log.entryAdded") if parameters["entry"]["level"] == "error" => {
                let entry = parameters["entry"].to_string();
                // The page asks for bundles that the node may have forwarded already, and for a list that not every node keeps.
                let is_asked_for = ["/bundles/", "/heard"].iter().any(|path| entry.contains(path));
                let is_provoked = self.provoked.iter().any(|words| entry.contains(words));
                if !(is_provoked || entry.contains("404") && is_asked_for) {
                    self.errors.push(entry);
                }
            }
            _ => {}
        }
    }

    /// Evaluates an expression of the page; a promise is awaited.
    #[track_caller]
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        self.try_to_evaluate(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    #[track_caller]
    fn try_to_evaluate(&mut self, expression: &str) -> Result<Value, String> {
        let parameters = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let result = self.ask("Runtime.evaluate", parameters)?;
        match &result["exceptionDetails"] {
            Value::Null => Ok(result["result"]["value"].clone()),
            exception => Err(exception.to_string()),
        }
    }

    /// Waits until an expression is true, looking after each frame. It fails to be evaluated while one document replaces another.
    #[track_caller]
    pub(crate) fn wait(&mut self, expression: &str) {
        let until = Instant::now() + DEADLINE;
        loop {
            let script = format!(
                "new Promise((resolve) => {{ let frames = 60; const look = () => {{ if ({expression}) resolve(true); \
                 else if (frames-- > 0) requestAnimationFrame(look); else resolve(false); }}; look(); }})"
            );
            if self.try_to_evaluate(&script) == Ok(Value::Bool(true)) {
                return;
            }
            if Instant::now() >= until {
                let text = self.evaluate("document.body.innerText");
                panic!("not true in time: {expression}\nthe page shows: {text}\nerrors: {:?}", self.errors);
            }
        }
    }

    /// Opens an address.
    #[track_caller]
    pub(crate) fn go(&mut self, address: &str) {
        self.command("Page.navigate", json!({"url": address}));
        self.wait("document.readyState === 'complete' && document.querySelector('#tabs a') !== null");
    }

    /// Presses a key, by its name and code as a keyboard sends them.
    pub(crate) fn press(&mut self, key: &str, code: u32) {
        let text = if key == "Enter" {
            json!("\r")
        } else if key == " " {
            json!(" ")
        } else {
            Value::Null
        };
        let shift = key == "Shift+Tab";
        let key = if shift { "Tab" } else { key };
        let mut event = json!({"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code});
        event["modifiers"] = json!(if shift { 8 } else { 0 });
        if !text.is_null() {
            event["text"] = text;
        }
        self.command("Input.dispatchKeyEvent", event);
        let event = json!({"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": code});
        self.command("Input.dispatchKeyEvent", event);
    }

    /// Types a text into the element with the focus.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.command("Input.insertText", json!({"text": text}));
    }

    /// Picture of the page as it is, into the folder that `LONGWIRE_PICTURES` names, for people.
    pub(crate) fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("LONGWIRE_PICTURES") else { return };
        let picture = self.command("Page.captureScreenshot", json!({"format": "png"}));
        let data = picture["data"].as_str().expect("a picture");
        let path = std::path::Path::new(&folder).join(name);
        std::fs::write(path, base64(data)).expect("the folder can be written");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its processes end together; those that end last may still write into the folder.
        if let Some(group) = rustix::process::Pid::from_raw(self.process.id() as i32) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.process.wait();
        let mut tries = 10_000;
        while self.profile.0.exists() && tries > 0 {
            let _ = std::fs::remove_dir_all(&self.profile.0);
            std::thread::yield_now();
            tries -= 1;
        }
    }
}

/// Decodes base64 (RFC 4648 4).
fn base64(text: &str) -> Vec<u8> {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.bytes().filter_map(|byte| alphabet.iter().position(|known| *known == byte));
    let (mut out, mut held, mut bits) = (Vec::new(), 0_usize, 0);
    for digit in digits {
        held = (held << 6 | digit) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((held >> bits) as u8);
        }
    }
    out
}
