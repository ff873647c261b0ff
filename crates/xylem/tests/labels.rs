//! TCP meets its RFCs, and where it does is written down: each rule of `docs/rfc/*.toml` is named in the code that meets it
//! and in a test that fails without it, or has a reason why not. The check is shown to see what it is there for.

mod rfc_tables;

use rfc_tables::items::{Item, item};
use rfc_tables::labels::{Label, TCP, in_heading, in_line};
use rfc_tables::places::{Kind, Place, in_rust, in_script};
use rfc_tables::rules::Rules;
use rfc_tables::{page, places, root, rules};
use std::collections::BTreeSet;

#[test]
fn every_rule_has_its_code_its_test_or_its_reason() {
    let problems = page::problems(&rules::all(), &places::all());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_pages_are_what_the_tree_says() {
    let (all, places) = (rules::all(), places::all());
    let pages = all.iter().map(|rules| page::page(rules, &places)).chain([page::contents(&all, &places)]);
    let is_stale = |(name, text): &(String, String)| {
        std::fs::read_to_string(root().join("docs/rfc").join(name)).unwrap_or_default() != *text
    };
    let stale: Vec<String> = pages.filter(is_stale).map(|(name, _)| name).collect();
    assert!(stale.is_empty(), "docs/rfc: {stale:?} are stale; write them with `{}`", page::COMMAND);
}

fn names(line: &str) -> Vec<String> {
    in_line(line).into_iter().map(|label| label.to_string()).collect()
}

#[test]
fn labels_are_found_in_one_spelling() {
    assert_eq!(
        names("// RFC 9293, MUST-12, SHLD-3 (MAY-1; REC-1)."),
        ["RFC 9293 MUST-12", "RFC 9293 SHLD-3", "RFC 9293 MAY-1", "RFC 9293 REC-1"]
    );
    assert_eq!(
        names("/// (RFC 6298 5.3; RFC 5961 3.2-1, RFC 8985 7.4.2.)"),
        ["RFC 6298 5.3", "RFC 5961 3.2-1", "RFC 8985 7.4.2"]
    );
    assert_eq!(names("RFC 6298, section 5.3; RFC 1122 4.2; NOT-MUST-1; MUST-; RFC 6298 says 1 s"), [""; 0]);
    assert_eq!(in_heading("9293 MUST-5"), Some(Label::new(TCP, "MUST-5")));
    assert_eq!(in_heading("6675 4-IsLost"), Some(Label::new(6675, "4-IsLost")));
    assert_eq!((in_heading("9293 3.10.7.4"), in_heading("2018 3")), (None, None));
}

const SAMPLE: &str = "//! MUST-1.

/// Far above.
pub const LIMIT: u32 = 1; // MUST-2

/// A thing (MUST-3).
pub struct Thing {
    /// MUST-4
    pub field: u32,
}

impl<T> Trait for Thing {
    /// MUST-5.
    fn verb(
        &mut self,
        many: u32,
    ) -> u32 {
        let inner = |x| {
            // MUST-6
            x
        };
        if many > 0 {
            1
        } else {
            inner(2) // MUST-7
        }
    }
}

#[cfg(test)]
mod tests {
    /// MUST-8.
    #[test]
    fn shows_it() {
        fn inside() {
            assert!(true, \"MUST-9\");
        }
    }

    /// MUST-10.
    fn is_no_test() {}
}
";

#[test]
fn a_place_is_the_item_around_it_or_below_its_comment() {
    let found: Vec<(String, String, Kind)> =
        in_rust("crates/x/src/a.rs", SAMPLE).into_iter().map(|it| (it.label.name, it.item, it.kind)).collect();
    let expected = [
        ("MUST-1", "", Kind::Code),
        ("MUST-2", "LIMIT", Kind::Code),
        ("MUST-3", "Thing", Kind::Code),
        ("MUST-4", "Thing::field", Kind::Code),
        ("MUST-5", "Thing::verb", Kind::Code),
        ("MUST-6", "Thing::verb", Kind::Code),
        ("MUST-7", "Thing::verb", Kind::Code),
        ("MUST-8", "shows_it", Kind::Test),
        ("MUST-9", "shows_it", Kind::Test),
        ("MUST-10", "is_no_test", Kind::Mention),
    ];
    assert_eq!(found, expected.map(|(label, item, kind)| (label.to_owned(), item.to_owned(), kind)));
    let lines: Vec<&str> = SAMPLE.lines().collect();
    assert_eq!(item(&lines, 0), Item { name: String::new(), is_test: false });
}

/// What the check says of one rule of RFC 9293 where these texts are all there is.
fn judged(rule: &str, code: &str, script: &str) -> Vec<String> {
    let list = format!("rfc = 6298\ntitle = \"x\"\n[[group]]\ntitle = \"y\"\nrules = [{rule}]");
    let mut found: BTreeSet<Place> = in_rust("crates/x/src/a.rs", code).into_iter().collect();
    found.extend(in_script("tests/wire/a.wire", script));
    page::problems(&[Rules::parse(&list).expect("a list")], &found)
}

#[test]
fn the_check_sees_what_is_missing() {
    let must = r#"{ label = "5.3", level = "MUST", asks = "the timer begins anew." }"#;
    let should = r#"{ label = "5.3", level = "SHOULD", asks = "x" }"#;
    let code = "/// RFC 6298 5.3.\nfn timer() {}";
    let script = "rfc: 6298 5.3";
    assert_eq!(judged(must, code, script), [""; 0]);
    assert_eq!(judged(must, "", script), ["RFC 6298 5.3 has no place in code: it asks that the timer begins anew."]);
    assert_eq!(judged(must, code, "").len(), 1, "no test");
    assert_eq!(judged(should, code, "").len(), 1, "no test");
    assert_eq!(judged(&should.replace("SHOULD", "MAY"), "", ""), [""; 0]);
    assert_eq!(judged(must, code, &format!("{script}\nxylem: skip because of this")).len(), 1, "not for our TCP");
    assert_eq!(
        judged(must, "// RFC 6298 5.9\nfn timer() { /* RFC 6298 5.3 */ }", script),
        ["crates/x/src/a.rs: RFC 6298 5.9 is in no list of docs/rfc"]
    );
    let excepted = |reason: &str| must.replace(" }", &format!(", exception = \"{reason}\" }}"));
    assert_eq!(judged(&excepted("other hosts do not do it either"), "", ""), [""; 0]);
    assert_eq!(judged(&excepted("no"), "", ""), ["RFC 6298 5.3: the exception gives no reason"]);
    assert_eq!(judged(&format!("{must}, {must}"), code, script), ["RFC 6298 5.3 is listed twice"]);
}

#[test]
fn no_label_of_tcp_can_be_left_out() {
    let list = "rfc = 9293\ntitle = \"x\"\n[[group]]\ntitle = \"y\"\nrules = [{ label = \"MUST-1\", asks = \"x\" }]";
    let problems = Rules::parse(list).expect("a list").problems();
    assert_eq!(problems.len(), 118);
    assert!(problems.contains(&"RFC 9293 SHLD-31 is not listed".to_owned()));
}
