//! Texts that are no graph: what is said about each mistake, and where, to the letter.

use super::says;
use crate::file::*;

#[test]
fn lines_that_begin_oddly() {
    says(
        r##"= ethernet over auto
"link0" over auto
: x
"##,
        &[
            r##"1:1: found `=`; expected a name, `place`, `demux`, `data` or `device`; mend: begin the line with one"##,
            r##"2:1: found the text "link0"; expected a name, `place`, `demux`, `data` or `device`; mend: begin the line with one"##,
            r##"3:1: found `:`; expected a name, `place`, `demux`, `data` or `device`; mend: begin the line with one"##,
        ],
    );
}

#[test]
fn nodes_without_protocols() {
    says(
        r##"link0 =
link0 = "ethernet"
link0 = ethernet = ethernet
"##,
        &[
            r##"1:8: found the end of the line; expected the name of a protocol; mend: write the name"##,
            r##"2:9: found the text "ethernet"; expected the name of a protocol; mend: write the name"##,
            r##"3:18: found `=`; expected the end of the line; mend: remove it, or begin a new line"##,
        ],
    );
}

#[test]
fn over_is_missing_or_misspelt() {
    says(
        r##"udp ip
udp ovre ip
udp auto { checksum = true }
"##,
        &[
            r##"1:5: found `ip`; expected `over`, `{` or the end of the line; mend: write `over ip`"##,
            r##"2:5: found `ovre`; expected `over`, `{` or the end of the line; mend: write `over`"##,
            r##"3:5: found `auto`; expected `over`, `{` or the end of the line; mend: write `over auto`"##,
        ],
    );
}

#[test]
fn lowers_are_missing() {
    says(
        r##"udp over
udp over {
}
udp over ip,
udp over ip icmp
udp over ip, "x"
"##,
        &[
            r##"1:9: found the end of the line; expected the name of a lower node or a device; mend: write the name"##,
            r##"2:10: found `{`; expected the name of a lower node or a device; mend: write the name"##,
            r##"4:13: found the end of the line; expected the name of a lower node or a device; mend: write the name"##,
            r##"5:13: found `icmp`; expected `,`, `{` or the end of the line; mend: write `,` between lowers"##,
            r##"6:14: found the text "x"; expected the name of a lower node or a device; mend: write the name"##,
        ],
    );
}

#[test]
fn names_that_cannot_be() {
    says(
        r##"0link over auto
lïnk over auto
a.b = ethernet over auto
abcdefghijklmnopqrstuvwxyzabcdefg over auto
"##,
        &[
            r##"1:1: `0link` cannot be the name of a node or protocol; expected an ASCII letter or `_`, then letters, digits, `_` or `-`; mend: rename it"##,
            r##"2:1: `lïnk` cannot be the name of a node or protocol; expected an ASCII letter or `_`, then letters, digits, `_` or `-`; mend: rename it"##,
            r##"3:1: `a.b` cannot be the name of a node or protocol; expected an ASCII letter or `_`, then letters, digits, `_` or `-`; mend: rename it"##,
            r##"4:1: `abcdefghijklmnopqrstuvwxyzabcdefg` cannot be the name of a node or protocol; expected at most 32 characters; mend: shorten it"##,
        ],
    );
}

#[test]
fn reserved_names() {
    says(
        r##"tap = ethernet over auto
over = ethernet over auto
place = ethernet over auto
demux over auto
auto over tap
"##,
        &[
            r##"1:1: a node cannot be named `tap`, a word of the graph language; expected any other name; mend: name it `tap0`"##,
            r##"2:1: a node cannot be named `over`, a word of the graph language; expected any other name; mend: name it `over0`"##,
            r##"3:1: a node cannot be named `place`, a word of the graph language; expected any other name; mend: name it `place0`"##,
            r##"4:7: found `over`; expected `=`; mend: write `demux = …`; a node cannot be named `demux`"##,
            r##"5:1: a node cannot be named `auto`, a word of the graph language; expected any other name; mend: name it `auto0`"##,
        ],
    );
}

#[test]
fn options() {
    says(
        r##"udp over ip { checksum }
udp over ip { checksum = }
udp over ip { = true }
udp over ip { checksum = true ttl = 3 }
udp over ip { checksum = true "x" }
udp over ip { checksum = true,, ttl = 3 }
udp over ip { checksum = { a = 1 } }
udp over ip { ttl = 3 } }
udp over ip { ttl = 3 } over
"##,
        &[
            r##"1:24: found `}`; expected `=` and a value; mend: write `checksum = …`"##,
            r##"2:26: found `}`; expected a text in quotes, a word, a number, a duration or a size; mend: give `checksum` a value, or remove it"##,
            r##"3:15: found `=`; expected the name of an option; mend: write the name"##,
            r##"4:31: found `ttl`; expected `,`, `}` or the end of the line; mend: write `,` between options"##,
            r##"5:31: found the text "x"; expected `,`, `}` or the end of the line; mend: write `,` between options"##,
            r##"6:31: found `,`; expected the name of an option; mend: write the name"##,
            r##"7:26: found `{`; expected a text in quotes, a word, a number, a duration or a size; mend: give `checksum` a value, or remove it"##,
            r##"7:36: found `}`; expected the end of the line; mend: remove it, or begin a new line"##,
            r##"8:25: found `}`; expected the end of the line; mend: remove it, or begin a new line"##,
            r##"9:25: found `over`; expected the end of the line; mend: remove it, or begin a new line"##,
        ],
    );
}

#[test]
fn values() {
    says(
        r##"a over ip { x = 99999999999999999999 }
a over ip { x = 1.5s }
a over ip { x = 64KB }
a over ip { x = 3parsecs }
a over ip { x = 10.0.0.2/24 }
a over ip { x = 02:00:00:00:00:01 }
a over ip { x = fd00::1, y = 3 }
a over ip { x = größe }
"##,
        &[
            r##"1:17: `99999999999999999999` does not fit; expected a number below 2^63, or below 2^64 with a unit; mend: lower it"##,
            r##"2:17: `1.5s` has a fraction; expected a whole number; mend: use a smaller unit: 1500ms for 1.5 s"##,
            r##"3:17: `64KB` has the unknown unit `KB`; expected ns, us, ms, s, min, h, B, kB, KiB, MB, MiB, GB or GiB; mend: write kB for 1000 bytes or KiB for 1024"##,
            r##"4:17: `3parsecs` has the unknown unit `parsecs`; expected ns, us, ms, s, min, h, B, kB, KiB, MB, MiB, GB or GiB; mend: use one of these units"##,
            r##"5:17: `10.0.0.2/24` is neither a number nor a plain word; expected a text in quotes; mend: put the whole value in quotes"##,
            r##"6:17: `02:…` is neither a number nor a plain word; expected a text in quotes; mend: put the whole value in quotes"##,
            r##"7:17: `fd00:…` is neither a number nor a plain word; expected a text in quotes; mend: put the whole value in quotes"##,
            r##"8:17: `größe` is neither a number nor a plain word; expected a text in quotes; mend: put the whole value in quotes"##,
        ],
    );
}

#[test]
fn several_options_of_one_node() {
    says(
        r##"a over ip {
    x = 1.5s
    y
    z = 5
    w = 64KB, v = 3, u
}
"##,
        &[
            r##"2:9: `1.5s` has a fraction; expected a whole number; mend: use a smaller unit: 1500ms for 1.5 s"##,
            r##"3:6: found the end of the line; expected `=` and a value; mend: write `y = …`"##,
            r##"5:9: `64KB` has the unknown unit `KB`; expected ns, us, ms, s, min, h, B, kB, KiB, MB, MiB, GB or GiB; mend: write kB for 1000 bytes or KiB for 1024"##,
            r##"5:23: found the end of the line; expected `=` and a value; mend: write `u = …`"##,
        ],
    );
}

#[test]
fn braces_that_are_never_closed() {
    says(
        r##"tcp over ip { msl = 30s
udp over ip
place app : tcp
"##,
        &[r##"1:13: the options that begin here have no end; expected `}`; mend: write `}` after the last option"##],
    );
}

#[test]
fn braces_open_at_the_end() {
    says(
        r##"tcp over ip { msl = 30s,
"##,
        &[r##"1:13: the options that begin here have no end; expected `}`; mend: write `}` after the last option"##],
    );
}

#[test]
fn a_line_that_fails_takes_its_options_along() {
    says(
        r##"tcp ovr ip {
    msl = 30s
}
udp ovr ip
"##,
        &[
            r##"1:5: found `ovr`; expected `over`, `{` or the end of the line; mend: write `over`"##,
            r##"4:5: found `ovr`; expected `over`, `{` or the end of the line; mend: write `over`"##,
        ],
    );
}

#[test]
fn a_line_that_fails_with_open_options_does_not_take_the_next_nodes_along() {
    says(
        "tcp ovr ip {\n    msl = 30s\n0udp over ip\nplace ap : tcp",
        &[
            r##"1:5: found `ovr`; expected `over`, `{` or the end of the line; mend: write `over`"##,
            r##"3:1: `0udp` cannot be the name of a node or protocol; expected an ASCII letter or `_`, then letters, digits, `_` or `-`; mend: rename it"##,
            r##"4:7: found `ap`; expected `app`, `server` or `processor`; mend: write `app`"##,
        ],
    );
}

#[test]
fn texts() {
    says(
        r##"a over ip { x = "abc }
a over ip { x = "a\qb\u{110000}" }
a over ip { x = "a", y = 5 } ; z
"##,
        &[
            r##"1:17: the text that begins here has no end on its line; expected a closing `"`; mend: write `"` at its end, and `\n` for a line end inside it"##,
            r##"2:19: this `\` does not begin a known escape; expected `\"`, `\\`, `\n`, `\t`, `\r` or `\u{…}` with one to six hexadecimal digits; mend: write `\\` for the character itself"##,
            r##"2:22: this `\` does not begin a known escape; expected `\"`, `\\`, `\n`, `\t`, `\r` or `\u{…}` with one to six hexadecimal digits; mend: write `\\` for the character itself"##,
            r##"3:30: `;` means nothing outside quotes; expected a word, a number, a text in quotes, or one of `=` `,` `:` `{` `}` `#`; mend: remove it, or put the text it belongs to in quotes"##,
        ],
    );
}

#[test]
fn places() {
    says(
        r##"place
place ap : a
place app
place app a b
place app :
place app : a, b
place app : 7
"##,
        &[
            r##"1:6: found the end of the line; expected `app`, `server` or `processor`; mend: write one of these"##,
            r##"2:7: found `ap`; expected `app`, `server` or `processor`; mend: write `app`"##,
            r##"3:10: found the end of the line; expected `:`; mend: write `place app : name name`"##,
            r##"4:11: found `a`; expected `:`; mend: write `place app : name name`"##,
            r##"5:12: found the end of the line; expected the names of nodes; mend: name the nodes to place, or remove the line"##,
            r##"6:14: found `,`; expected the names of nodes; mend: write spaces, not `,`, between the names"##,
            r##"7:13: `7` cannot be the name of a node; expected an ASCII letter or `_`, then letters, digits, `_` or `-`; mend: rename it"##,
        ],
    );
}

#[test]
fn choices() {
    says(
        r##"demux
demux = 
demux = layerd
data = quick
device = eth0
device = tapp
demux = "layered"
"##,
        &[
            r##"1:6: found the end of the line; expected `=`; mend: write `demux = …`; a node cannot be named `demux`"##,
            r##"2:9: found the end of the line; expected `layered`, `integrated`, `kernel` or `direct`; mend: write one of these"##,
            r##"3:9: found `layerd`; expected `layered`, `integrated`, `kernel` or `direct`; mend: write `layered`"##,
            r##"4:8: found `quick`; expected `layered` or `integrated`; mend: write one of these"##,
            r##"5:10: found `eth0`; expected `auto`, `xdp`, `tap`, `packet`, `ring`, `wire` or `pcap`; mend: write one of these"##,
            r##"6:10: found `tapp`; expected `auto`, `xdp`, `tap`, `packet`, `ring`, `wire` or `pcap`; mend: write `tap`"##,
            r##"7:9: found the text "layered"; expected `layered`, `integrated`, `kernel` or `direct`; mend: write one of these"##,
        ],
    );
}

#[test]
fn a_choice_said_twice() {
    says(
        r##"demux = layered
demux = kernel
"##,
        &[r##"2:1: `demux` is chosen a second time; expected one `demux = …` line; mend: remove one of them"##],
    );
}

/// The first problem of a text, which must not parse.
fn first_problem(text: &str) -> String {
    parse(text).expect_err("the text breaks a limit")[0].to_string()
}

#[test]
fn limits_are_said() {
    let long = " ".repeat(TEXT_BYTES_MAX + 1);
    assert_eq!(
        first_problem(&long),
        "1:1: the file has 1048577 bytes; expected at most 1048576 bytes; mend: split the graph"
    );
    assert!(parse(&long[..TEXT_BYTES_MAX]).is_ok());

    let nodes = |count: usize| (0..count).map(|node| format!("n{node} = p\n")).collect::<String>();
    assert!(parse(&nodes(NODES_MAX)).is_ok());
    assert_eq!(
        first_problem(&nodes(NODES_MAX + 1)),
        "257:1: more than 256 nodes; expected at most 256; mend: split the graph"
    );

    let lowers = |count: usize| format!("p over {}", vec!["a"; count].join(", "));
    assert!(parse(&lowers(LOWERS_MAX)).is_ok());
    assert_eq!(
        first_problem(&lowers(LOWERS_MAX + 1)),
        "1:200: more than 64 lowers of one node; expected at most 64; mend: split the graph"
    );

    let options = |count: usize| format!("p {{ {} }}", vec!["a = 1"; count].join(", "));
    assert!(parse(&options(OPTIONS_MAX)).is_ok());
    assert_eq!(
        first_problem(&options(OPTIONS_MAX + 1)),
        "1:453: more than 64 options of one node; expected at most 64; mend: split the graph"
    );

    let places = |count: usize| format!("place app : {}", vec!["a"; count].join(" "));
    assert!(parse(&places(NODES_MAX)).is_ok());
    assert_eq!(
        first_problem(&places(NODES_MAX + 1)),
        "1:525: more than 256 placed nodes; expected at most 256; mend: split the graph"
    );

    let value = |bytes: usize| format!("p {{ a = \"{}\" }}", "x".repeat(bytes));
    assert!(parse(&value(VALUE_BYTES_MAX)).is_ok());
    assert_eq!(
        first_problem(&value(VALUE_BYTES_MAX + 1)),
        "1:9: the text that begins here has 4097 bytes; expected at most 4096 bytes; mend: shorten it"
    );
}
