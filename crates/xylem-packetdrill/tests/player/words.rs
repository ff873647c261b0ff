//! The values that stand in scripts: numbers, names that C has for numbers, `...`, lists in brackets and structs in braces.

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Number(i64),
    /// A name of C's, or several joined by `|`.
    Names(Vec<String>),
    Text(String),
    /// `...`: whatever is usual there.
    Usual,
    List(Vec<Value>),
    Struct(Vec<(String, Value)>),
}

/// Names and their numbers.
const NAMES: &[(&str, i32)] = &[
    ("AF_INET", libc::AF_INET),
    ("AF_INET6", libc::AF_INET6),
    ("SOCK_STREAM", libc::SOCK_STREAM),
    ("SOCK_DGRAM", libc::SOCK_DGRAM),
    ("IPPROTO_TCP", libc::IPPROTO_TCP),
    ("IPPROTO_UDP", libc::IPPROTO_UDP),
    ("SOL_SOCKET", libc::SOL_SOCKET),
    ("SOL_TCP", libc::IPPROTO_TCP),
    ("IPPROTO_IP", libc::IPPROTO_IP),
    ("SO_REUSEADDR", libc::SO_REUSEADDR),
    ("SO_ERROR", libc::SO_ERROR),
    ("SO_LINGER", libc::SO_LINGER),
    ("SO_RCVBUF", libc::SO_RCVBUF),
    ("SO_SNDBUF", libc::SO_SNDBUF),
    ("SO_KEEPALIVE", libc::SO_KEEPALIVE),
    ("TCP_NODELAY", libc::TCP_NODELAY),
    ("TCP_CORK", libc::TCP_CORK),
    ("TCP_MAXSEG", libc::TCP_MAXSEG),
    ("TCP_KEEPIDLE", libc::TCP_KEEPIDLE),
    ("TCP_KEEPINTVL", libc::TCP_KEEPINTVL),
    ("TCP_KEEPCNT", libc::TCP_KEEPCNT),
    ("TCP_SYNCNT", libc::TCP_SYNCNT),
    ("TCP_USER_TIMEOUT", libc::TCP_USER_TIMEOUT),
    ("TCP_DEFER_ACCEPT", libc::TCP_DEFER_ACCEPT),
    ("TCP_CONGESTION", libc::TCP_CONGESTION),
    ("TCP_FASTOPEN", libc::TCP_FASTOPEN),
    ("IP_TOS", libc::IP_TOS),
    ("IP_TTL", libc::IP_TTL),
    ("MSG_PEEK", libc::MSG_PEEK),
    ("MSG_OOB", libc::MSG_OOB),
    ("MSG_MORE", libc::MSG_MORE),
    ("MSG_DONTWAIT", libc::MSG_DONTWAIT),
    ("MSG_NOSIGNAL", libc::MSG_NOSIGNAL),
    ("MSG_FASTOPEN", libc::MSG_FASTOPEN),
    ("F_GETFL", libc::F_GETFL),
    ("F_SETFL", libc::F_SETFL),
    ("O_RDWR", libc::O_RDWR),
    ("O_NONBLOCK", libc::O_NONBLOCK),
    ("SHUT_RD", libc::SHUT_RD),
    ("SHUT_WR", libc::SHUT_WR),
    ("SHUT_RDWR", libc::SHUT_RDWR),
    ("SIOCINQ", libc::FIONREAD as i32),
    ("SIOCOUTQ", libc::TIOCOUTQ as i32),
    ("POLLIN", libc::POLLIN as i32),
    ("POLLOUT", libc::POLLOUT as i32),
    ("POLLERR", libc::POLLERR as i32),
    ("POLLHUP", libc::POLLHUP as i32),
    ("POLLRDHUP", libc::POLLRDHUP as i32),
    ("EPOLL_CTL_ADD", libc::EPOLL_CTL_ADD),
    ("EPOLLIN", libc::EPOLLIN),
    ("EPOLLOUT", libc::EPOLLOUT),
    ("EPOLLET", libc::EPOLLET),
];

/// Names of errors and their numbers.
pub const ERRORS: &[(&str, i32)] = &[
    ("EAGAIN", libc::EAGAIN),
    ("EINPROGRESS", libc::EINPROGRESS),
    ("EALREADY", libc::EALREADY),
    ("EISCONN", libc::EISCONN),
    ("ENOTCONN", libc::ENOTCONN),
    ("ECONNRESET", libc::ECONNRESET),
    ("ECONNREFUSED", libc::ECONNREFUSED),
    ("ETIMEDOUT", libc::ETIMEDOUT),
    ("EPIPE", libc::EPIPE),
    ("EINVAL", libc::EINVAL),
    ("EBADF", libc::EBADF),
];

impl Value {
    /// Its number; names are joined as C joins flags.
    pub fn number(&self) -> Result<i64, String> {
        let of = |name: &String| {
            let known = NAMES.iter().chain(ERRORS).find(|(known, _)| known == name);
            known.map(|(_, number)| i64::from(*number)).ok_or_else(|| format!("`{name}` has no number here"))
        };
        match self {
            Value::Number(number) => Ok(*number),
            Value::Names(names) => names.iter().map(of).try_fold(0, |all, one| one.map(|one| all | one)),
            other => Err(format!("expected a number, got {other:?}")),
        }
    }

    /// The member of a struct.
    pub fn member(&self, name: &str) -> Result<i64, String> {
        let Value::Struct(members) = self else { return Err(format!("expected a struct, got {self:?}")) };
        let member = members.iter().find(|(known, _)| known == name);
        member.map_or(Ok(0), |(_, value)| value.number())
    }
}

/// Reads values front to back.
pub struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Reader<'a> {
        Reader { rest: text }
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a str {
        self.rest.trim_start()
    }

    /// Takes `text` if it comes next.
    pub fn take(&mut self, text: &str) -> bool {
        match self.rest().strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        self.rest = &rest[end..];
        &rest[..end]
    }

    /// Values between commas, up to `close`.
    pub fn list(&mut self, close: &str) -> Result<Vec<Value>, String> {
        let mut values = Vec::new();
        while !self.take(close) {
            values.push(self.value()?);
            if !self.take(",") && !self.rest().starts_with(close) {
                return Err(format!("expected `,` or `{close}` at `{}`", self.rest()));
            }
        }
        Ok(values)
    }

    pub fn value(&mut self) -> Result<Value, String> {
        if self.take("...") {
            return Ok(Value::Usual);
        }
        if self.take("[") {
            return Ok(Value::List(self.list("]")?));
        }
        if self.take("{") {
            return self.members();
        }
        if self.take("\"") {
            let (text, rest) = self.rest.split_once('"').ok_or("a text without an end")?;
            self.rest = rest;
            return Ok(Value::Text(text.to_owned()));
        }
        let word = self.word();
        if let Some(number) = parse(word) {
            return Ok(Value::Number(number));
        }
        if word.is_empty() {
            return Err(format!("expected a value at `{}`", self.rest()));
        }
        let mut names = vec![word.to_owned()];
        while self.take("|") {
            names.push(self.word().to_owned());
        }
        Ok(Value::Names(names))
    }

    /// `name=value` between commas, or values alone, whose places name them.
    fn members(&mut self) -> Result<Value, String> {
        let mut members = Vec::new();
        while !self.take("}") {
            let before = self.rest;
            let name = self.word();
            let name = if self.take("=") {
                name.to_owned()
            } else {
                self.rest = before;
                members.len().to_string()
            };
            members.push((name, self.value()?));
            if !self.take(",") && !self.rest().starts_with('}') {
                return Err(format!("expected `,` or `}}` at `{}`", self.rest()));
            }
        }
        Ok(Value::Struct(members))
    }
}

fn parse(word: &str) -> Option<i64> {
    match word.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}
