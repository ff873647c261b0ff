//! A text that cannot be read whole: what is wrong with the rest is said all the same, and nothing that a lost line may
//! explain.

use super::*;

#[track_caller]
fn says(text: &str, expected: &[&str]) {
    let said = lines(load(text, &descriptions::catalogue()));
    let fronts: Vec<&str> = said.iter().map(|line| line.split(';').next().unwrap_or("")).collect();
    assert_eq!(fronts, expected, "about\n{text}");
}

#[test]
fn mistakes_of_grammar_and_of_meaning_are_said_at_once() {
    says(
        "link0 = ethernt over auto\narp over link0\nip = ipv4 over link0, arpp { adress = \"10.0.0.2/24\" }\ntcp over ip { msl = 7 parsecs }\n",
        &[
            "1:9: protocol `ethernt` is unknown",
            "3:1: `ip` (ipv4) lacks the option `address`: an address for each link, in their order",
            "3:23: no node is named `arpp`",
            "3:30: ipv4 has no option `adress`",
            "4:23: found `parsecs`",
        ],
    );
}

#[test]
fn what_a_lost_line_may_explain_is_not_said() {
    // The second line may have named `ip`, so nobody can say that it is missing.
    says("link0 = ethernet over auto\n= ipv4 over link0\ntcp over ip\n", &["2:1: found `=`"]);
    // The options that cannot be read may hold the address.
    says(
        "link0 = ethernet over auto\nip = ipv4 over link0 { address \"10.0.0.2/24\" }\n",
        &["2:32: found the text \"10.0.0.2/24\""],
    );
}
