//! To which item of a Rust file a line belongs: the function around it, or the thing its comment describes. It goes by
//! the indentation, on which `rustfmt` can be relied, and needs no grammar of the language.

/// What a line stands for.
#[derive(Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name, behind that of the type it belongs to; empty for the whole file.
    pub name: String,
    /// It is a test, or stands in one.
    pub is_test: bool,
}

/// The item of line `index`.
pub fn item(lines: &[&str], index: usize) -> Item {
    let line = lines[index].trim_start();
    if line.starts_with("//!") {
        return Item { name: String::new(), is_test: false };
    }
    let described = line.starts_with("//").then(|| (index..lines.len()).find(|at| !is_preface(lines[*at]))).flatten();
    let is_text = line.starts_with("///");
    if let Some(at) = described.filter(|at| is_text || declared(lines[*at]).is_some()) {
        return named(lines, at, member(lines[at]));
    }
    let own = declared(lines[index]).map(|(_, name)| name);
    named(lines, index, own)
}

/// A comment, an attribute, or nothing.
fn is_preface(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with("//") || line.starts_with("#[")
}

/// The item that line `at` declares or stands in, with what stands around it.
fn named(lines: &[&str], at: usize, own: Option<&str>) -> Item {
    let mut names: Vec<&str> = own.into_iter().collect();
    let mut is_test = own.is_some() && is_test_at(lines, at);
    let mut indent = depth(lines[at]);
    for before in (0..at).rev() {
        let line = lines[before];
        if line.trim().is_empty() || depth(line) >= indent {
            continue;
        }
        // A signature of several lines ends at the depth at which it began.
        let is_end = line.trim_start().starts_with([')', '}', ']']);
        indent = depth(line) + usize::from(is_end);
        match declared(line) {
            Some(("mod", _)) | None => {}
            // Of functions inside functions the outermost is the test.
            Some(("fn", name)) => {
                is_test |= is_test_at(lines, before);
                if is_test {
                    names.clear();
                }
                names.push(name);
            }
            Some((_, name)) => names.push(name),
        }
    }
    names.reverse();
    Item { name: names.join("::"), is_test }
}

/// Whether the function that line `at` declares has the attribute.
fn is_test_at(lines: &[&str], at: usize) -> bool {
    let above = lines[..at].iter().rev().take_while(|line| is_preface(line) && !line.trim().is_empty());
    above.map(|line| line.trim()).any(|line| line.starts_with("#[") && line.ends_with("test]"))
}

fn depth(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The kind and name of what the line declares.
fn declared(line: &str) -> Option<(&'static str, &str)> {
    let mut rest = line.trim_start();
    if let Some(end) = rest.strip_prefix("pub(").and_then(|rest| rest.find(") ").map(|end| &rest[end + 2..])) {
        rest = end;
    }
    for word in ["pub ", "unsafe ", "async "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    rest = rest.strip_prefix("const fn ").map_or(rest, |_| &rest["const ".len()..]);
    for kind in ["fn", "struct", "enum", "trait", "mod", "const", "static", "type"] {
        if let Some(name) = rest.strip_prefix(kind).and_then(|rest| rest.strip_prefix(' ')) {
            return Some((kind, word(name)));
        }
    }
    let implements = rest.strip_prefix("impl").filter(|rest| rest.starts_with([' ', '<']))?;
    let whom = implements.trim_end_matches('{').trim();
    let whom = whom.rsplit(" for ").next().unwrap_or(whom);
    let whom = whom.strip_prefix('<').and_then(|rest| rest.split_once("> ")).map_or(whom, |(_, whom)| whom);
    Some(("impl", word(whom)))
}

/// The name that a comment above the line describes: an item's, a field's or a variant's.
fn member(line: &str) -> Option<&str> {
    if let Some((_, name)) = declared(line) {
        return Some(name);
    }
    let rest = line.trim_start();
    let rest = rest.strip_prefix("pub ").unwrap_or(rest);
    Some(word(rest)).filter(|name| !name.is_empty())
}

/// The identifier at the front.
fn word(text: &str) -> &str {
    let end = text.find(|letter: char| !(letter.is_alphanumeric() || letter == '_')).unwrap_or(text.len());
    &text[..end]
}
