use super::*;

fn uid(number: usize) -> String {
    format!("uid-{number}")
}

fn key(number: usize) -> String {
    format!("/registry/core/configmaps/default/{number}")
}

/// An object with these owners, each of which it blocks, that is deleted in the foreground or not at all.
fn facts(number: usize, owners: &[usize], is_deleting: bool) -> Facts {
    let owner = |owner: &usize| OwnerReference {
        uid: uid(*owner),
        block_owner_deletion: true,
        ..OwnerReference::default()
    };
    Facts {
        uid: uid(number),
        owners: owners.iter().map(owner).collect(),
        finalizers: is_deleting.then(|| FOREGROUND.to_owned()).into_iter().collect(),
        is_deleting,
    }
}

/// A graph of objects that name the one before as their owner and begin to wait in this order. Returns the cost.
fn chain(order: &[usize]) -> usize {
    let mut graph = Graph::default();
    let owners = |number: usize| number.checked_sub(1).into_iter().collect::<Vec<_>>();
    for number in 0..order.len() {
        graph.put(&key(number), &facts(number, &owners(number), false));
    }
    for number in order {
        graph.put(&key(*number), &facts(*number, &owners(*number), true));
        let is_last = *number == order.len() - 1;
        let expected = if is_last { Waits::Nothing } else { Waits::Dependents };
        assert_eq!(graph.waits_for(&key(*number)), expected);
    }
    graph.cost.get()
}

#[test]
fn a_long_chain_costs_little_in_whatever_order_it_begins_to_wait() {
    let length = 4_000;
    let mut order: Vec<usize> = (0..length).collect();
    assert!(chain(&order) <= 8 * length, "from the top: {}", chain(&order));
    order.reverse();
    assert!(chain(&order) <= 8 * length, "from the bottom: {}", chain(&order));
    // As in a merge sort, at worst.
    fastrand::Rng::with_seed(7).shuffle(&mut order);
    assert!(chain(&order) <= 8 * length * 12, "at random: {}", chain(&order));
}

#[test]
fn an_owner_that_waits_for_thousands_costs_nothing_each_time_it_changes() {
    let (mut graph, count) = (Graph::default(), 5_000);
    graph.put(&key(0), &facts(0, &[], true));
    for number in 1..=count {
        graph.put(&key(number), &facts(number, &[0], true));
    }
    let before = graph.cost.get();
    for _ in 0..count {
        graph.put(&key(0), &facts(0, &[], true));
        assert_eq!(graph.waits_for(&key(0)), Waits::Dependents);
    }
    assert_eq!(graph.cost.get(), before);
    // And each of its dependents, once.
    assert!(before <= 8 * count, "{before}");
}

#[test]
fn whoever_closes_a_circle_waits_for_itself_until_it_is_broken() {
    for last in 0..3 {
        let mut graph = Graph::default();
        let owners = |number: usize| [(number + 2) % 3];
        for number in 0..3 {
            graph.put(&key(number), &facts(number, &owners(number), number != last));
            assert_ne!(graph.waits_for(&key(number)), Waits::Itself);
        }
        graph.put(&key(last), &facts(last, &owners(last), true));
        assert_eq!(graph.waits_for(&key(last)), Waits::Itself);
        assert_eq!(graph.waits_for(&key(last)), Waits::Itself, "however often one asks");
        // Another member lets go of its owner.
        let other = (last + 1) % 3;
        graph.put(&key(other), &facts(other, &[], true));
        assert_ne!(graph.waits_for(&key(last)), Waits::Itself);
        // And takes it again.
        graph.put(&key(other), &facts(other, &owners(other), true));
        assert_eq!(graph.waits_for(&key(other)), Waits::Itself);
    }
}

#[test]
fn an_owner_is_released_by_the_last_that_blocks_it() {
    let mut graph = Graph::default();
    graph.put(&key(0), &facts(0, &[], true));
    for number in 1..3 {
        graph.put(&key(number), &facts(number, &[0], false));
    }
    assert_eq!(graph.waits_for(&key(0)), Waits::Dependents);
    assert!(graph.remove(&key(1), &facts(1, &[0], false)).is_empty());
    assert_eq!(graph.remove(&key(2), &facts(2, &[0], false)), [Box::<str>::from(key(0))]);
    assert_eq!(graph.waits_for(&key(0)), Waits::Nothing);
}
