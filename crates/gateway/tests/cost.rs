//! What one change costs, by how many routes there are.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

use std::time::{Duration, Instant};

use serde_json::json;
use watchkeeper_core::Key;
use watchkeeper_gateway::kinds::API_VERSION;
use watchkeeper_gateway::object::Input;
use watchkeeper_gateway::{Compiler, Settings};

fn route(number: usize, version: usize) -> Input {
    let rules = json!([{
        "matches": [{"path": {"prefix": format!("/team-{}/service-{number}", number % 50)}}],
        "filters": {"responseHeaders": {"set": {"x-version": version.to_string()}}},
        "backends": [{"name": format!("backend-{}", number % 100)}],
    }]);
    let object = json!({"apiVersion": API_VERSION, "kind": "GatewayRoute", "metadata": {"name": format!("route-{number}")}, "spec": {"rules": rules}});
    Input::read(object).unwrap().unwrap()
}

fn apply(compiler: &mut Compiler, input: Input) {
    let id = input.id.clone();
    compiler.apply(&(0, Key::new(None, &id.to_string())), &id, Some(input));
}

/// The median time of one change: the object is compiled, the table is cloned and taken, its reports are made.
fn cost(routes: usize) -> Duration {
    let mut compiler = Compiler::new(Settings::default());
    for number in 0..routes {
        apply(&mut compiler, route(number, 0));
    }
    compiler.take_touched();
    let mut published = compiler.table().clone();
    let mut times: Vec<Duration> = (0..1_000)
        .map(|turn| {
            let input = route(turn * 7919 % routes, turn + 1);
            let begin = Instant::now();
            apply(&mut compiler, input);
            published = compiler.table().clone();
            for id in compiler.take_touched() {
                assert!(compiler.report(&id).is_some());
            }
            begin.elapsed()
        })
        .collect();
    assert_eq!(published.routes().count(), routes);
    times.sort();
    times[times.len() / 2]
}

#[test]
#[ignore = "measures; for a release build on a quiet machine"]
fn a_change_costs_the_same_with_ten_thousand_routes_as_with_a_hundred() {
    let sizes = [100, 3_000, 10_000];
    let costs = sizes.map(cost);
    let exponent =
        (costs[2].as_secs_f64() / costs[0].as_secs_f64()).ln() / (sizes[2] as f64 / sizes[0] as f64).ln();
    println!("{sizes:?} routes: {costs:?}; exponent {exponent:.3}");
    assert!(exponent <= 0.1, "the exponent is {exponent:.3}");
}

/// The same without a clock to depend on: with a hundred times as many routes, a change may not take ten times as long.
#[test]
fn a_change_does_not_cost_what_all_routes_cost() {
    let (few, many) = (cost(100), cost(10_000));
    assert!(many < few * 10, "{few:?} with 100 routes, {many:?} with 10,000");
}
