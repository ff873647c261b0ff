//! What `xylem serve` is asked to serve: `SERVICE@PORT`, the last `@` before the port, so that a directory may have one in
//! its name. Wrong wishes are all said at once.

use crate::http::Http;
use crate::http::site::Directory;
use crate::services::echo::Echo;
use crate::services::iperf3::Iperf3;
use crate::services::small::{Chargen, Daytime, Discard};
use crate::services::{DatagramService, Service};
use std::fmt;
use std::sync::Arc;

/// What there is.
const SERVICES: &str = "echo, discard, daytime, chargen, iperf3, http=DIR or http+put=DIR";

/// One service at one port.
#[derive(Clone)]
pub struct Wish {
    /// As it was written, without the port.
    pub what: String,
    /// The port.
    pub port: u16,
    /// The service for connections.
    pub service: Arc<dyn Service>,
    /// The service for datagrams, where there is one.
    pub datagrams: Option<Arc<dyn DatagramService>>,
}

impl Wish {
    /// Reads one wish.
    ///
    /// # Errors
    /// What was expected, what stands there, and the mend.
    pub fn read(text: &str) -> Result<Wish, String> {
        let Some((what, port)) = text.rsplit_once('@') else {
            return Err(format!("service `{text}`: expected SERVICE@PORT, got no `@`; write `{text}@PORT`"));
        };
        let port = match port.parse::<u16>() {
            Ok(port) if port > 0 => port,
            _ => {
                return Err(format!(
                    "service `{text}`: expected a port of 1 to 65535 after the last `@`, got `{port}`"
                ));
            }
        };
        let mut datagrams: Option<Arc<dyn DatagramService>> = None;
        let service: Arc<dyn Service> = match what.split_once('=') {
            None => match what {
                "echo" => {
                    datagrams = Some(Arc::new(Echo));
                    Arc::new(Echo)
                }
                "discard" => Arc::new(Discard),
                "daytime" => Arc::new(Daytime),
                "chargen" => Arc::new(Chargen),
                "iperf3" => Arc::new(Iperf3::default()),
                "http" | "http+put" => {
                    return Err(format!("service `{text}`: expected a directory, got none; write `{what}=DIR@{port}`"));
                }
                _ => return Err(format!("service `{text}`: expected {SERVICES}, got `{what}`")),
            },
            Some((kind @ ("http" | "http+put"), folder)) => {
                let site = Directory::open(folder, kind == "http+put").map_err(|error| {
                    format!("service `{text}`: expected a directory that can be read, got `{folder}`: {error}")
                })?;
                Arc::new(Http::new(Arc::new(site)))
            }
            Some((kind, _)) => return Err(format!("service `{text}`: expected {SERVICES}, got `{kind}=`")),
        };
        Ok(Wish { what: what.into(), port, service, datagrams })
    }

    /// Reads all of them.
    ///
    /// # Errors
    /// Everything that is wrong, a line each.
    pub fn read_all(texts: &[String]) -> Result<Vec<Wish>, Vec<String>> {
        let (mut wishes, mut wrong): (Vec<Wish>, Vec<String>) = (Vec::new(), Vec::new());
        for text in texts {
            match Wish::read(text) {
                Ok(wish) => match wishes.iter().find(|other| other.port == wish.port) {
                    Some(other) => wrong.push(format!(
                        "service `{text}`: expected a port of its own, got {}, which `{other}` has; choose another port",
                        wish.port
                    )),
                    None => wishes.push(wish),
                },
                Err(error) => wrong.push(error),
            }
        }
        if wrong.is_empty() { Ok(wishes) } else { Err(wrong) }
    }
}

impl fmt::Display for Wish {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.what, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        Wish::read(text).err().unwrap_or_else(|| panic!("{text} was taken"))
    }

    #[test]
    fn services_are_read_and_the_last_at_sign_is_the_ports() {
        let folder = tempfile::Builder::new().prefix("with@sign").tempdir().expect("a directory");
        let text = format!("http={}@80", folder.path().display());
        let wish = Wish::read(&text).expect("the directory is there");
        assert_eq!((wish.port, wish.to_string(), wish.datagrams.is_some()), (80, text, false));
        assert!(Wish::read("echo@7").expect("there is an echo").datagrams.is_some());
    }

    #[test]
    fn what_is_wrong_says_what_was_expected_and_what_stands_there() {
        for (text, words) in [
            ("echo", ["SERVICE@PORT", "echo@PORT"]),
            ("echo@", ["1 to 65535", "``"]),
            ("echo@0", ["1 to 65535", "`0`"]),
            ("echo@65536", ["1 to 65535", "`65536`"]),
            ("ecko@7", ["echo, discard", "`ecko`"]),
            ("http@80", ["a directory", "http=DIR@80"]),
            ("http=/no/such@80", ["a directory", "/no/such"]),
            ("ftp=/@21", ["http=DIR", "`ftp=`"]),
        ] {
            let error = wrong(text);
            assert!(words.iter().all(|word| error.contains(word)), "{text}: {error}");
        }
        let texts = ["echo@7", "nothing", "discard@7"].map(String::from);
        let wrong = Wish::read_all(&texts).err().expect("two of three are wrong");
        assert!(wrong.len() == 2 && wrong[1].contains("`echo@7` has"), "{wrong:?}");
    }
}
