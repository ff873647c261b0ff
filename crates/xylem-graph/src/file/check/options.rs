//! Options: each is described, said once, of its kind and within its limits; what is required is there.

use super::{Site, called};
use crate::file::description::Description;
use crate::file::graph::{Node, Setting};
use crate::file::nearest::{nearest, one_of};
use crate::file::option::{Misfit, OptionKind, Presence};
use crate::file::problem::Problem;
use crate::file::token::shortened;
use crate::file::value::Value;

pub(super) fn check(site: &Site<'_>, problems: &mut Vec<Problem>) {
    said(site, problems);
    for (node, description) in site.described_nodes() {
        missing(node, description, problems);
    }
}

/// What the options that are there say.
pub(super) fn said(site: &Site<'_>, problems: &mut Vec<Problem>) {
    for (node, description) in site.described_nodes() {
        for (index, setting) in node.options.iter().enumerate() {
            if node.options[..index].iter().any(|before| before.name == setting.name) {
                problems.push(twice(node, setting));
            }
            problems.extend(misfit(description, setting));
        }
    }
}

fn twice(node: &Node, setting: &Setting) -> Problem {
    Problem::new(
        setting.name.position,
        format!("{} has the option `{}` twice", called(node), setting.name.value),
        "each option once",
        "remove one of them",
    )
}

fn misfit(description: &Description, setting: &Setting) -> Option<Problem> {
    let (name, value) = (&setting.name.value, &setting.value.value);
    let Some(option) = description.option(name) else {
        let names = || description.options.iter().map(|option| option.name);
        let mend = nearest(name, names()).map_or("remove it".to_owned(), |near| format!("write `{near}`"));
        let what = format!("{} has no option `{name}`", description.name);
        return Some(Problem::new(setting.name.position, what, one_of(names()), mend));
    };
    let misfit = option.kind.accepts(value).err()?;
    let what = match misfit {
        Misfit::Kind => format!("`{name}` cannot be {}", shortened(&value.to_string())),
        Misfit::Range => format!("`{name}` is out of range with {}", shortened(&value.to_string())),
    };
    Some(Problem::new(setting.value.position, what, option.kind.expected(), mend(misfit, &option.kind, value)))
}

fn mend(misfit: Misfit, kind: &OptionKind, value: &Value) -> String {
    if misfit == Misfit::Range {
        return "write a value within the range".to_owned();
    }
    let bare = value.text().and_then(|text| Value::from_word(text).ok());
    if bare.is_some_and(|bare| bare.text().is_none() && kind.accepts(&bare).is_ok()) {
        return "remove the quotes".to_owned();
    }
    match (kind, value) {
        (OptionKind::List(each), _) => mend(misfit, each, value),
        (OptionKind::Choice(words), Value::Text(text)) => match nearest(text, words.iter().copied()) {
            Some(near) => format!("write `{near}`"),
            None => "write one of these".to_owned(),
        },
        (OptionKind::Cidr, Value::Text(text)) if !text.contains('/') => "add the prefix length, such as /24".to_owned(),
        (OptionKind::Duration { .. }, Value::Integer(number)) => {
            format!("add the unit, such as {number}ms or {number}s")
        }
        (OptionKind::Bool, _) => "write one of these, without quotes".to_owned(),
        _ => "write such a value".to_owned(),
    }
}

pub(super) fn missing(node: &Node, description: &Description, problems: &mut Vec<Problem>) {
    for option in description.options {
        if matches!(option.presence, Presence::Required) && node.option(option.name).is_none() {
            problems.push(Problem::new(
                node.name.position,
                format!("{} lacks the option `{}`: {}", called(node), option.name, option.summary),
                option.kind.expected(),
                format!("add `{{ {} = … }}`", option.name),
            ));
        }
    }
}
