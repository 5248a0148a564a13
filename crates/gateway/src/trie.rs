//! A persistent hash trie: a new version shares all but a path with the old one.
//!
//! Changing one entry copies at most one small node per level (five bits of the
//! hash each), so it costs the same with ten entries or a hundred thousand, and
//! readers of the old version notice nothing. The hash is keyed per process:
//! tenants choose host names, and must not choose collisions.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

/// Something that carries its own key.
pub trait Keyed {
    /// The key.
    fn key(&self) -> &str;
}

/// An immutable map from keys to shared values.
#[derive(Debug)]
pub struct Trie<V> {
    root: Node<V>,
    len: usize,
    hasher: RandomState,
}

#[derive(Debug)]
enum Node<V> {
    Leaf(Arc<V>),
    Branch(Arc<Branch<V>>),
    /// Values whose whole hashes are equal.
    Bucket(Arc<[Arc<V>]>),
}

#[derive(Debug)]
struct Branch<V> {
    /// Bit `n` is set if there is a child for digit `n`.
    present: u32,
    children: Box<[Node<V>]>,
}

/// Bits of the hash that one level consumes.
const DIGIT: u32 = 5;

// === impl Trie ===

impl<V: Keyed> Trie<V> {
    /// A trie with nothing in it.
    pub fn new() -> Self {
        Self {
            root: Node::empty(),
            len: 0,
            hasher: RandomState::new(),
        }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value for `key`.
    pub fn get(&self, key: &str) -> Option<&Arc<V>> {
        if self.len == 0 {
            return None;
        }
        let mut hash = self.hasher.hash_one(key);
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(value) => return (value.key() == key).then_some(value),
                Node::Bucket(values) => return values.iter().find(|value| value.key() == key),
                Node::Branch(branch) => {
                    node = branch.child(digit(hash))?;
                    hash >>= DIGIT;
                }
            }
        }
    }

    /// A version with `value` in the place of what had its key before.
    #[must_use]
    pub fn with(&self, value: Arc<V>) -> Self {
        let hash = self.hasher.hash_one(value.key());
        let (root, added) = self.root.with(value, hash, 0, &self.hasher);
        Self {
            root,
            len: self.len + usize::from(added),
            hasher: self.hasher.clone(),
        }
    }

    /// A version without `key`.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        let hash = self.hasher.hash_one(key);
        match self.root.without(key, hash) {
            Removal::Absent => self.clone(),
            Removal::Gone => Self {
                root: Node::empty(),
                len: 0,
                hasher: self.hasher.clone(),
            },
            Removal::Left(root) => {
                // The root stays a branch, so that every walk starts with one.
                let root = match root {
                    branch @ Node::Branch(_) => branch,
                    lone => Node::single(lone, &self.hasher),
                };
                Self {
                    root,
                    len: self.len - 1,
                    hasher: self.hasher.clone(),
                }
            }
        }
    }

    /// All values, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<V>> {
        let mut stack = vec![&self.root];
        let mut bucket: &[Arc<V>] = &[];
        std::iter::from_fn(move || {
            loop {
                if let Some((first, rest)) = bucket.split_first() {
                    bucket = rest;
                    return Some(first);
                }
                match stack.pop()? {
                    Node::Leaf(value) => return Some(value),
                    Node::Bucket(values) => bucket = values,
                    Node::Branch(branch) => stack.extend(branch.children.iter()),
                }
            }
        })
    }
}

impl<V: Keyed> Default for Trie<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> Clone for Trie<V> {
    fn clone(&self) -> Self {
        Self {
            root: self.root.clone(),
            len: self.len,
            hasher: self.hasher.clone(),
        }
    }
}

// === impl Node ===

/// What is left of a node after taking something out.
enum Removal<V> {
    Absent,
    Gone,
    Left(Node<V>),
}

impl<V> Clone for Node<V> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(value) => Self::Leaf(Arc::clone(value)),
            Self::Branch(branch) => Self::Branch(Arc::clone(branch)),
            Self::Bucket(values) => Self::Bucket(Arc::clone(values)),
        }
    }
}

impl<V: Keyed> Node<V> {
    fn empty() -> Self {
        Self::Branch(Arc::new(Branch {
            present: 0,
            children: Box::default(),
        }))
    }

    /// A root with one leaf or bucket.
    fn single(node: Self, hasher: &RandomState) -> Self {
        let key = match &node {
            Self::Leaf(value) => Some(value.key()),
            Self::Bucket(values) => values.first().map(|value| value.key()),
            Self::Branch(_) => None,
        };
        match key.map(|key| hasher.hash_one(key)) {
            Some(hash) => Self::branch(1 << digit(hash), vec![node]),
            None => node,
        }
    }

    fn branch(present: u32, children: Vec<Self>) -> Self {
        Self::Branch(Arc::new(Branch {
            present,
            children: children.into_boxed_slice(),
        }))
    }

    /// This node with `value`, and whether that made it larger. `hash` has lost
    /// `depth` digits already.
    fn with(&self, value: Arc<V>, hash: u64, depth: u32, hasher: &RandomState) -> (Self, bool) {
        match self {
            Self::Branch(branch) => branch.with(value, hash, depth, hasher),
            Self::Leaf(old) if old.key() == value.key() => (Self::Leaf(value), false),
            Self::Leaf(old) => {
                let other = shifted(hasher.hash_one(old.key()), depth);
                let old = Self::Leaf(Arc::clone(old));
                (Self::split(old, other, value, hash), true)
            }
            Self::Bucket(values) => {
                // Equal hashes are as good as never seen: what else ends up here
                // joins them, and a lookup compares keys anyway.
                let mut values: Vec<_> = values.iter().map(Arc::clone).collect();
                let place = values.iter().position(|old| old.key() == value.key());
                match place {
                    Some(place) => values[place] = value,
                    None => values.push(value),
                }
                (Self::Bucket(values.into()), place.is_none())
            }
        }
    }

    /// The smallest node that holds a leaf and a new value.
    fn split(old: Self, other: u64, value: Arc<V>, hash: u64) -> Self {
        if other == hash {
            let Self::Leaf(old) = old else { return old };
            return Self::Bucket([old, value].into());
        }
        let (left, right) = (digit(other), digit(hash));
        if left == right {
            let deeper = Self::split(old, other >> DIGIT, value, hash >> DIGIT);
            return Self::branch(1 << left, vec![deeper]);
        }
        let new = Self::Leaf(value);
        let children = if left < right {
            vec![old, new]
        } else {
            vec![new, old]
        };
        Self::branch(1 << left | 1 << right, children)
    }

    fn without(&self, key: &str, hash: u64) -> Removal<V> {
        match self {
            Self::Leaf(value) if value.key() == key => Removal::Gone,
            Self::Leaf(_) => Removal::Absent,
            Self::Bucket(values) => {
                let left: Vec<_> = values
                    .iter()
                    .filter(|value| value.key() != key)
                    .map(Arc::clone)
                    .collect();
                match left.len() {
                    len if len == values.len() => Removal::Absent,
                    0 => Removal::Gone,
                    1 => left
                        .into_iter()
                        .next()
                        .map_or(Removal::Gone, |value| Removal::Left(Self::Leaf(value))),
                    _ => Removal::Left(Self::Bucket(left.into())),
                }
            }
            Self::Branch(branch) => branch.without(key, hash),
        }
    }
}

// === impl Branch ===

impl<V: Keyed> Branch<V> {
    /// Where the child for a digit is, or would be.
    fn place(&self, digit: u32) -> usize {
        (self.present & ((1 << digit) - 1)).count_ones() as usize
    }

    fn child(&self, digit: u32) -> Option<&Node<V>> {
        if self.present & 1 << digit == 0 {
            return None;
        }
        self.children.get(self.place(digit))
    }

    fn with(&self, value: Arc<V>, hash: u64, depth: u32, hasher: &RandomState) -> (Node<V>, bool) {
        let digit = digit(hash);
        let place = self.place(digit);
        let mut children = Vec::with_capacity(self.children.len() + 1);
        children.extend(self.children.iter().cloned());
        let added = if let Some(child) = self.child(digit) {
            let (child, added) = child.with(value, hash >> DIGIT, depth + 1, hasher);
            children[place] = child;
            added
        } else {
            children.insert(place, Node::Leaf(value));
            true
        };
        (Node::branch(self.present | 1 << digit, children), added)
    }

    fn without(&self, key: &str, hash: u64) -> Removal<V> {
        let digit = digit(hash);
        let Some(child) = self.child(digit) else {
            return Removal::Absent;
        };
        let place = self.place(digit);
        let mut children = self.children.to_vec();
        match child.without(key, hash >> DIGIT) {
            Removal::Absent => return Removal::Absent,
            Removal::Left(child) => children[place] = child,
            Removal::Gone => {
                children.remove(place);
                if children.is_empty() {
                    return Removal::Gone;
                }
                let present = self.present & !(1 << digit);
                return Removal::Left(Self::collapsed(present, children));
            }
        }
        Removal::Left(Self::collapsed(self.present, children))
    }

    /// A branch, or its only child if that needs none: the shape of a trie
    /// depends on what is in it, not on how it came there.
    fn collapsed(present: u32, mut children: Vec<Node<V>>) -> Node<V> {
        match (children.pop(), children.is_empty()) {
            (Some(lone @ Node::Leaf(_)), true) => lone,
            (Some(last), _) => {
                children.push(last);
                Node::branch(present, children)
            }
            (None, _) => Node::empty(),
        }
    }
}

fn digit(hash: u64) -> u32 {
    u32::try_from(hash & 31).unwrap_or(0)
}

/// The hash without its first `depth` digits.
fn shifted(hash: u64, depth: u32) -> u64 {
    hash.checked_shr(depth * DIGIT).unwrap_or(0)
}

#[cfg(test)]
mod tests;
