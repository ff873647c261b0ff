//! The head of a request: its first line and its fields, read into a value that cannot contradict itself (RFC 9112).
//! What could be understood in two ways is refused, since an intermediary may have understood the other.

use super::FIELDS_MAX;
use std::fmt;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The file.
    Get,
    /// What GET would say, without the file.
    Head,
    /// Take this as the file (PUT), or take this (POST): the same here.
    Upload,
}

/// A request's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is asked for.
    pub method: Method,
    /// The names that lead to the file, each decoded; none of them empty, `.` or `..`, or with a slash or a NUL in it.
    pub path: Vec<String>,
    /// The bytes that follow the head.
    pub body_bytes: Option<u64>,
    /// The peer waits for `100 Continue` before it sends them.
    pub expects_continue: bool,
    /// The connection goes on after the answer.
    pub keep: bool,
}

/// A status: the number and its phrase.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Status(pub u16, pub &'static str);

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.0, self.1)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

/// What the server answers with (RFC 9110, section 15).
pub mod status {
    use super::Status;
    macro_rules! statuses {
        ($($name:ident $number:literal $phrase:literal)*) => { $(
            #[doc = concat!($phrase, ".")]
            pub const $name: Status = Status($number, $phrase);
        )* };
    }
    statuses! {
        OK 200 "OK"
        CREATED 201 "Created"
        BAD_REQUEST 400 "Bad Request"
        FORBIDDEN 403 "Forbidden"
        NOT_FOUND 404 "Not Found"
        METHOD_NOT_ALLOWED 405 "Method Not Allowed"
        REQUEST_TIMEOUT 408 "Request Timeout"
        LENGTH_REQUIRED 411 "Length Required"
        CONTENT_TOO_LARGE 413 "Content Too Large"
        EXPECTATION_FAILED 417 "Expectation Failed"
        FIELDS_TOO_LARGE 431 "Request Header Fields Too Large"
        INTERNAL 500 "Internal Server Error"
        NOT_IMPLEMENTED 501 "Not Implemented"
        VERSION 505 "HTTP Version Not Supported"
    }
}

/// Reads a head from the front of `bytes`: the request and the head's length, `None` if it is not complete, or the
/// status that refuses it.
pub fn parse(bytes: &[u8]) -> Result<Option<(Request, usize)>, Status> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(status::FIELDS_TOO_LARGE),
        Err(httparse::Error::Version) => return Err(status::VERSION),
        Err(_) => return Err(status::BAD_REQUEST),
    };
    let version_minor = request.version.ok_or(status::BAD_REQUEST)?;
    let fields = Fields::read(request.headers)?;
    // RFC 9112, section 3.2: a 1.1 request names its host, once.
    if fields.hosts > 1 || version_minor >= 1 && fields.hosts == 0 {
        return Err(status::BAD_REQUEST);
    }
    if fields.transfer_coding {
        // RFC 9112, section 6.1: with a length beside it, it is how requests are smuggled.
        let refusal = if fields.body_bytes.is_some() || version_minor == 0 {
            status::BAD_REQUEST
        } else {
            status::LENGTH_REQUIRED
        };
        return Err(refusal);
    }
    if fields.unknown_expectation {
        return Err(status::EXPECTATION_FAILED);
    }
    let method = match request.method.ok_or(status::BAD_REQUEST)? {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "PUT" | "POST" => Method::Upload,
        "DELETE" | "OPTIONS" | "PATCH" | "TRACE" | "CONNECT" => return Err(status::METHOD_NOT_ALLOWED),
        _ => return Err(status::NOT_IMPLEMENTED),
    };
    let keep = if version_minor == 0 { fields.keep_alive && !fields.close } else { !fields.close };
    let request = Request {
        method,
        path: path(request.path.ok_or(status::BAD_REQUEST)?)?,
        body_bytes: fields.body_bytes,
        expects_continue: fields.expects_continue && version_minor >= 1,
        keep,
    };
    Ok(Some((request, length)))
}

/// What the fields say, as far as this server listens.
#[derive(Default)]
struct Fields {
    hosts: usize,
    body_bytes: Option<u64>,
    transfer_coding: bool,
    expects_continue: bool,
    unknown_expectation: bool,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    fn read(headers: &[httparse::Header<'_>]) -> Result<Fields, Status> {
        let mut fields = Fields::default();
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            let tokens = || header.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            if is("host") {
                fields.hosts += 1;
            } else if is("transfer-encoding") {
                fields.transfer_coding = true;
            } else if is("content-length") {
                for token in tokens() {
                    let length = decimal(token).ok_or(status::BAD_REQUEST)?;
                    // RFC 9112, section 6.3: two different lengths are an attack or a mistake; the same twice is one.
                    if fields.body_bytes.replace(length).is_some_and(|before| before != length) {
                        return Err(status::BAD_REQUEST);
                    }
                }
            } else if is("expect") {
                let known = header.value.trim_ascii().eq_ignore_ascii_case(b"100-continue");
                (fields.expects_continue, fields.unknown_expectation) = (known, !known);
            } else if is("connection") {
                fields.close |= tokens().any(|token| token.eq_ignore_ascii_case(b"close"));
                fields.keep_alive |= tokens().any(|token| token.eq_ignore_ascii_case(b"keep-alive"));
            }
        }
        Ok(fields)
    }
}

/// A number in decimal digits and nothing else: no sign, no space.
fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The names on the way to a file, from a request's target: the path of an absolute URL or one that begins with a slash.
fn path(target: &str) -> Result<Vec<String>, Status> {
    let target = match target.split_once("://") {
        // RFC 9112, section 3.2.2: servers accept the absolute form too.
        Some((_, rest)) if !target.starts_with('/') => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => target,
    };
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let names = path.strip_prefix('/').ok_or(status::BAD_REQUEST)?;
    let mut segments = Vec::new();
    for name in names.split('/') {
        let name = decoded(name).ok_or(status::BAD_REQUEST)?;
        match name.as_str() {
            // An empty name is a slash at the end or twice in a row; one dot leads nowhere.
            "" | "." => {}
            // Never resolved, not even harmlessly: who sends one means to climb.
            ".." => return Err(status::FORBIDDEN),
            name if name.contains(['/', '\0']) => return Err(status::BAD_REQUEST),
            _ => segments.push(name),
        }
    }
    Ok(segments)
}

/// A name with its percent signs resolved (RFC 3986, section 2.1); `None` if that is not text.
fn decoded(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || (rest.next()? as char).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        // Two digits below 16 make a byte.
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(head: &str) -> Status {
        parse(head.as_bytes()).expect_err(head)
    }

    fn accepted(head: &str) -> Request {
        let (request, length) = parse(head.as_bytes()).expect(head).expect("the head is complete");
        assert_eq!(length, head.len());
        request
    }

    #[test]
    fn a_browsers_request_is_understood() {
        let request = accepted("GET /a%20b/c.html?x=../y HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, foo\r\n\r\n");
        assert_eq!(
            (request.method, request.path.as_slice()),
            (Method::Get, ["a b", "c.html"].map(String::from).as_slice())
        );
        assert!(request.keep && !request.expects_continue && request.body_bytes.is_none());
        assert!(!accepted("HEAD / HTTP/1.0\r\n\r\n").keep);
        assert!(accepted("GET / HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\n").keep);
        assert!(!accepted("GET / HTTP/1.1\r\nhost:\r\nconnection: CLOSE\r\n\r\n").keep);
        let upload =
            accepted("PUT http://h/x HTTP/1.1\r\nHost: h\r\nContent-Length: 7, 7\r\nExpect: 100-continue\r\n\r\n");
        assert_eq!((upload.method, upload.body_bytes, upload.expects_continue), (Method::Upload, Some(7), true));
        assert_eq!(upload.path, ["x"]);
        assert_eq!(parse(b"GET / HTTP/1.1\r\nHost: x\r\n").expect("nothing wrong yet"), None);
    }

    #[test]
    fn climbing_paths_are_refused_however_they_are_written() {
        for target in ["/../etc/passwd", "/a/../b", "/%2e%2e/x", "/.%2E", "/a/%2e./", "http://h/../x"] {
            let head = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
            assert_eq!(refused(&head), status::FORBIDDEN, "{target}");
        }
        for target in ["/a%2fb", "/a%00", "/%zz", "/%4", "/%ff", "x", "*"] {
            let head = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
            assert_eq!(refused(&head), status::BAD_REQUEST, "{target}");
        }
    }

    #[test]
    fn what_could_mean_two_things_is_refused() {
        for (fields, expected) in [
            ("", status::BAD_REQUEST),
            ("Host: a\r\nHost: b\r\n", status::BAD_REQUEST),
            ("Host: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n", status::BAD_REQUEST),
            ("Host: a\r\nContent-Length: +1\r\n", status::BAD_REQUEST),
            ("Host: a\r\nContent-Length: 18446744073709551616\r\n", status::BAD_REQUEST),
            ("Host: a\r\nContent-Length : 1\r\n", status::BAD_REQUEST),
            ("Host: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n", status::BAD_REQUEST),
            ("Host: a\r\nTransfer-Encoding: chunked\r\n", status::LENGTH_REQUIRED),
            ("Host: a\r\nExpect: 200-ok\r\n", status::EXPECTATION_FAILED),
        ] {
            assert_eq!(refused(&format!("PUT /x HTTP/1.1\r\n{fields}\r\n")), expected, "{fields:?}");
        }
        assert_eq!(refused("BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n"), status::NOT_IMPLEMENTED);
        assert_eq!(refused("DELETE /x HTTP/1.1\r\nHost: x\r\n\r\n"), status::METHOD_NOT_ALLOWED);
        assert_eq!(refused("GET / HTTP/2.0\r\nHost: x\r\n\r\n"), status::VERSION);
        let many = "x: y\r\n".repeat(FIELDS_MAX + 1);
        assert_eq!(refused(&format!("GET / HTTP/1.1\r\n{many}\r\n")), status::FIELDS_TOO_LARGE);
    }
}
