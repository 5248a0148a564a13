//! The trie against a map that is surely right.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, PartialEq, Eq)]
struct Entry(String, u32);

impl Keyed for Entry {
    fn key(&self) -> &str {
        &self.0
    }
}

fn contents(trie: &Trie<Entry>) -> BTreeMap<String, u32> {
    trie.iter()
        .map(|entry| (entry.0.clone(), entry.1))
        .collect()
}

#[test]
fn an_empty_trie_has_nothing() {
    let trie = Trie::<Entry>::new();
    assert!(trie.get("a").is_none() && trie.is_empty());
    assert!(trie.without("a").is_empty());
}

#[test]
fn values_with_equal_hashes_live_side_by_side() {
    // Real collisions can't be made on purpose, so the nodes are built by hand.
    let leaf = |key: &str| Arc::new(Entry(key.into(), 0));
    let node = Node::split(Node::Leaf(leaf("a")), 7, leaf("b"), 7);
    assert!(matches!(&node, Node::Bucket(values) if values.len() == 2));
    let (node, added) = node.with(leaf("c"), 7, 13, &RandomState::new());
    assert!(added);
    let Removal::Left(node) = node.without("a", 7) else {
        panic!("two are left")
    };
    let Removal::Left(node) = node.without("b", 7) else {
        panic!("one is left")
    };
    assert!(matches!(node, Node::Leaf(value) if value.0 == "c"));
}

proptest! {
    #[test]
    fn behaves_like_a_map_and_old_versions_stay(
        steps in proptest::collection::vec((0_u32..300, any::<bool>(), any::<u32>()), 1..400)
    ) {
        let mut model = BTreeMap::new();
        let mut trie = Trie::new();
        let mut old = Vec::new();
        for (number, (key, insert, value)) in steps.into_iter().enumerate() {
            if number % 50 == 0 {
                old.push((trie.clone(), model.clone()));
            }
            let key = format!("t{key}.example.com");
            if insert {
                trie = trie.with(Arc::new(Entry(key.clone(), value)));
                model.insert(key.clone(), value);
            } else {
                trie = trie.without(&key);
                model.remove(&key);
            }
            prop_assert_eq!(trie.get(&key).map(|entry| entry.1), model.get(&key).copied());
            prop_assert_eq!(trie.len(), model.len());
        }
        old.push((trie, model));
        for (trie, model) in old {
            prop_assert_eq!(contents(&trie), model);
        }
    }
}
