//! The C program that calls the library, as a child process that is told what to do, a line each.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// See the module's text. The child ends with it.
pub struct Driver {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

/// What came of a call.
#[derive(Debug)]
pub struct Outcome {
    pub result: i64,
    pub errno: i32,
    /// When it returned, in microseconds of the library's clock.
    pub ended: i64,
    /// What stands in each place that was handed over to be filled.
    pub rooms: Vec<Vec<u8>>,
}

/// A packet that left.
pub struct Left {
    pub time: i64,
    pub packet: Vec<u8>,
}

/// The library, where cargo has put it for this test.
pub fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    let folder = test.parent().expect("it lies in a folder");
    let places = [folder.join("libxylem_packetdrill.so"), folder.join("../libxylem_packetdrill.so")];
    places.into_iter().find(|place| place.exists()).expect("cargo builds the library before its tests")
}

/// The C program, compiled once for each test program.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/player/driver.c");
        let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("driver-{}", std::process::id()));
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg(&source);
        compiler.args(["-ldl", "-lpthread"]);
        let status = compiler.status().expect("a C compiler is there, as the README asks");
        assert!(status.success(), "the C compiler does not agree with the interface");
        program
    })
}

/// Whether nothing can be played here, said on standard error; where CI is set that is a failure.
pub fn is_unable(test: &str) -> bool {
    if Command::new("cc").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return false;
    }
    assert!(std::env::var_os("CI").is_none(), "{test} could not run: no C compiler");
    let _ = std::io::stderr().write_all(format!("SKIPPED: {test}: no C compiler\n").as_bytes());
    true
}

impl Driver {
    /// A run with these flags and, if they are in a file, these settings by name.
    pub fn new(flags: &str, settings: Option<&Path>) -> Driver {
        let mut command = Command::new(program());
        command.arg(library()).arg(flags).stdin(Stdio::piped()).stdout(Stdio::piped()).env_remove("PD_SYSCTL");
        if let Some(settings) = settings {
            command.env("PD_SYSCTL", settings);
        }
        let mut child = command.spawn().expect("the driver starts");
        let to = child.stdin.take().expect("it was asked for");
        let from = BufReader::new(child.stdout.take().expect("it was asked for"));
        Driver { child, to, from }
    }

    /// Says a line and hears the answer.
    pub fn say(&mut self, line: &str) -> String {
        writeln!(self.to, "{line}").expect("the driver listens");
        let mut answer = String::new();
        self.from.read_line(&mut answer).expect("the driver answers in text");
        assert!(!answer.is_empty(), "the driver died of `{}`", &line[..line.len().min(200)]);
        answer.trim_end().to_owned()
    }

    pub fn now(&mut self) -> i64 {
        number(&self.say("now"))
    }

    /// Waits until then, by the library's clock.
    pub fn until(&mut self, time: i64) -> i64 {
        number(&self.say(&format!("until {time}")))
    }

    /// A packet arrives.
    pub fn send(&mut self, packet: &[u8]) -> i64 {
        number(&self.say(&format!("in {}", hex(packet))))
    }

    /// The next packet that leaves.
    pub fn receive(&mut self) -> Option<Left> {
        let answer = self.say("out");
        let words: Vec<&str> = answer.split(' ').collect();
        assert_eq!(words[0], "0", "netdev_receive failed");
        let packet = from_hex(words.get(3).copied().unwrap_or_default());
        assert_eq!(packet.len(), words[1].parse().expect("a length"));
        (!packet.is_empty()).then(|| Left { time: number(words[2]), packet })
    }

    /// A call that comes back.
    pub fn call(&mut self, words: &str) -> Outcome {
        outcome(&self.say(&format!("call {words}")))
    }

    /// A call in another thread: `blocked` once that sleeps in the kernel, `done` if it has come back already.
    pub fn block(&mut self, words: &str) -> String {
        self.say(&format!("block {words}"))
    }

    /// Waits for that call, which must come back.
    pub fn join(&mut self) -> Outcome {
        outcome(&self.say("join"))
    }

    /// The result of a call without results in memory; `Err` with its errno.
    pub fn result(&mut self, words: &str) -> Result<i64, i32> {
        let outcome = self.call(words);
        if outcome.result < 0 { Err(outcome.errno) } else { Ok(outcome.result) }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It ends when its input does; should it hang, it is ended.
        let _killed = self.child.kill();
        let _status = self.child.wait();
    }
}

fn number(text: &str) -> i64 {
    text.parse().unwrap_or_else(|_| panic!("expected a number of the driver, got `{text}`"))
}

fn outcome(answer: &str) -> Outcome {
    let words: Vec<&str> = answer.split(' ').collect();
    Outcome {
        result: number(words[0]),
        errno: number(words[1]) as i32,
        ended: number(words[2]),
        rooms: words[3..].iter().map(|word| from_hex(word)).collect(),
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn from_hex(text: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal digits");
    (0..text.len()).step_by(2).map(digits).collect()
}
