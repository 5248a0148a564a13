//! Pieces of Common Expression Language that several rules share.

/// A DNS name in lower case, no wildcard, no port. `{0}` is an expression of type string.
pub(super) fn dns_name(value: &str) -> String {
    format!("{value}.matches('^{NAME}$') && {value}.size() <= 253 && !isIP({value})")
}

/// A DNS name, perhaps with `:port`.
pub(super) fn dns_name_and_port(value: &str) -> String {
    format!(
        "{value}.matches('^{NAME}(:[1-9][0-9]{{0,4}})?$') && !isIP({value}.split(':')[0]) && \
         ({value}.split(':').size() < 2 || int({value}.split(':')[1]) <= 65535)"
    )
}

/// A field that is there in both or in neither, and the same.
pub(super) fn unchanged(field: &str) -> String {
    format!(
        "has(self.{field}) == has(oldSelf.{field}) && \
         (!has(self.{field}) || self.{field} == oldSelf.{field})"
    )
}

/// True when the optional list has this for all its elements.
pub(super) fn all(list: &str, element: &str, condition: &str) -> String {
    format!("!has(self.{list}) || self.{list}.all({element}, {condition})")
}

/// True when no two elements of the optional list have the same `key`, an expression of `x`.
pub(super) fn unique(list: &str, key: &str) -> String {
    let other = key.replace('x', "y");
    format!("!has(self.{list}) || self.{list}.all(x, self.{list}.exists_one(y, {other} == {key}))")
}

/// The ranges in effect: the plural field, or the singular one, or the default.
pub(super) fn ranges(owner: &str, many: &str, one: &str, default: &str) -> String {
    format!(
        "(has({owner}.{many}) && {owner}.{many}.size() > 0 ? {owner}.{many} : \
         [has({owner}.{one}) ? {owner}.{one} : '{default}'])"
    )
}

pub(super) const NAME: &str =
    "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*";

/// An argument that is a flag, and not the end of flags or a value on its own.
pub(super) const FLAG: &str = "x.matches('^--?[a-zA-Z]')";
