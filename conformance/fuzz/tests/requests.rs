//! Requests that were changed at random get an answer, and never one of 500 that the real server does not give.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

use std::path::Path;
use std::time::Instant;

use futures_util::StreamExt;
use watchkeeper_fuzz::{
    Corpus, Finding, Known, Local, Protocol, Remote, Scenario, Server, Tally, cut, panics, run, seconds,
    variable,
};

/// How many scenarios run on one server before the next one is started.
const BATCH: u64 = 400;
/// How many of them at a time: some wait for versions that never come.
const AT_A_TIME: usize = 12;
/// More findings than these are not worth printing.
const ENOUGH: usize = 40;

/// How many seeds a usual run tries.
const USUAL: u64 = 2_800;

fn namespace(seed: u64, run: u32) -> String {
    format!("fuzz-{:08x}-{run:02x}", seed as u32)
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_requests_are_answered_and_none_with_500() {
    panics();
    let corpus = Corpus::read().unwrap();
    if let Some(seed) = variable("SEED") {
        return replay(&corpus, seed.parse().unwrap()).await;
    }
    let known = Known::read();
    let deadline = Instant::now() + seconds(55);
    let mut seed: u64 = variable("START").map_or(1, |text| text.parse().unwrap());
    let (mut tally, mut findings) = (Tally::default(), Vec::new());
    // A usual run tries the same seeds on every machine, however quick it is; who asks for more seconds gets more seeds.
    let last = if variable("SECONDS").is_some() { u64::MAX } else { seed + USUAL };
    while Instant::now() < deadline && seed < last && findings.len() < ENOUGH {
        let server = Local::start().await.unwrap();
        let seeds = seed..seed + BATCH;
        let scenarios = futures_util::stream::iter(seeds.clone())
            .take_while(|_| std::future::ready(Instant::now() < deadline))
            .map(|seed| {
                let (corpus, server) = (&corpus, &server);
                async move {
                    let scenario = Scenario::generate(corpus, seed, &namespace(seed, 0));
                    let mut heard = Vec::new();
                    run(server, &scenario, usize::MAX, |place, request, answer| {
                        heard.push((place, request.clone(), answer.clone()));
                    })
                    .await;
                    (seed, scenario.class, heard)
                }
            })
            .buffer_unordered(AT_A_TIME);
        let mut scenarios = std::pin::pin!(scenarios);
        while let Some((seed, class, heard)) = scenarios.next().await {
            for (place, request, answer) in heard {
                if let Some(what) = tally.judge(class, &request, &answer) {
                    findings.push(Finding { seed, place, what, request });
                }
            }
        }
        server.stop().await;
        for what in panics() {
            let what = format!("a panic in a task, in this scenario or one of the {BATCH} after it: {what}");
            findings.push(Finding { seed: seeds.start, place: 0, what, request: Default::default() });
        }
        seed += BATCH;
        match variable("PEER") {
            Some(peer) => findings = not_as_the_peer(&corpus, findings, &known, Path::new(&peer)).await,
            None => findings.retain(|finding| !is_known(finding, &known)),
        }
    }
    println!("seeds up to {seed}\n{tally}");
    for finding in &findings {
        println!("{finding}");
    }
    assert!(findings.is_empty(), "{} findings, see above", findings.len());
    assert!(tally.total() > 300, "only {} requests were sent", tally.total());
    assert!(tally.depth() > 60.0, "only {:.0} % came to a resource", tally.depth());
}

/// The findings whose answer of 500 the real server does not give in the same state. Where an earlier answer was another one
/// already, the state is not the same, and the list of known answers decides.
async fn not_as_the_peer(
    corpus: &Corpus,
    findings: Vec<Finding>,
    known: &Known,
    peer: &Path,
) -> Vec<Finding> {
    let mut left = Vec::new();
    for mut finding in findings {
        if !finding.what.starts_with("500: ") || finding.what.contains(" (the real server: ") {
            left.push(finding);
            continue;
        }
        let (ours, real) = both(corpus, finding.seed, finding.place + 1, peer).await;
        let is_same_state = ours.iter().zip(&real).take(finding.place).all(|(ours, real)| ours.0 == real.0);
        let (code, said) = real.last().cloned().unwrap_or_default();
        // Node ports are of the whole cluster: another namespace of the real server may have one.
        let is_same_state = is_same_state && !said.contains("provided port is already allocated");
        match code {
            500 => println!("500 on both: {} | {said}", finding.what),
            // The peer was too busy to say.
            504 => println!("500 here, too late there: {}", finding.what),
            _ if is_known(&finding, known) && !is_same_state => {
                println!("500 in another state: {}", finding.what);
            }
            code => {
                finding.what += &format!(" (the real server: {code} {said})");
                left.push(finding);
            }
        }
    }
    left
}

fn is_known(finding: &Finding, known: &Known) -> bool {
    finding.what.strip_prefix("500: ").is_some_and(|message| known.has(message))
}

/// The codes and messages of our server, made anew, and of the real one for the first requests of a scenario.
async fn both(
    corpus: &Corpus,
    seed: u64,
    count: usize,
    peer: &Path,
) -> (Vec<(u16, String)>, Vec<(u16, String)>) {
    // Whatever an earlier run left there is not in the way.
    let scenario = Scenario::generate(corpus, seed, &namespace(seed, std::process::id() % 256));
    let (local, remote) = (Local::start().await.unwrap(), Remote::new(peer, Protocol::One).await.unwrap());
    let mut answers = [Vec::new(), Vec::new()];
    for (answers, server) in answers.iter_mut().zip([&local as &dyn Server, &remote]) {
        run(server, &scenario, count, |_, _, answer| {
            answers.push(match answer {
                Ok(answer) => (answer.code, answer.message()),
                Err(broken) => (0, broken.to_string()),
            });
        })
        .await;
    }
    local.stop().await;
    let [ours, real] = answers;
    (ours, real)
}

/// Tells where the codes differ from those of the real server for the first time in a scenario. It judges nothing: much of it
/// is known, and some is chance.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real server, WATCHKEEPER_FUZZ_PEER"]
async fn codes_beside_the_real_server() {
    let peer = variable("PEER").unwrap();
    let corpus = Corpus::read().unwrap();
    let deadline = Instant::now() + seconds(100);
    let first: u64 = variable("START").map_or(1, |text| text.parse().unwrap());
    let (mut same, mut others) = (0, std::collections::BTreeMap::<_, Vec<String>>::new());
    for seed in first.. {
        if Instant::now() > deadline {
            break;
        }
        let (ours, real) = both(&corpus, seed, usize::MAX, Path::new(&peer)).await;
        let pairs = ours.into_iter().zip(real).enumerate();
        match pairs.clone().find(|(_, (ours, real))| ours.0 != real.0) {
            None => same += pairs.count(),
            Some((place, (ours, real))) => {
                same += place;
                let example = format!("seed {seed}, request {place}: {} | {}", ours.1, real.1);
                others.entry((ours.0, real.0)).or_default().push(example);
            }
        }
    }
    println!("{same} answers have the same code");
    for ((ours, real), examples) in others {
        println!("ours {ours}, real {real}: {} scenarios", examples.len());
        examples.iter().for_each(|example| println!("    {}", cut(example.as_bytes(), 600)));
    }
}

/// One scenario with all that is said.
async fn replay(corpus: &Corpus, seed: u64) {
    let scenario = Scenario::generate(corpus, seed, &namespace(seed, std::process::id() % 256));
    let local = Local::start().await.unwrap();
    let remote = match variable("PEER") {
        Some(peer) => Some(Remote::new(Path::new(&peer), Protocol::One).await.unwrap()),
        None => None,
    };
    let mut failed = Vec::new();
    for (name, server) in
        [("ours", Some(&local as &dyn Server)), ("real", remote.as_ref().map(|remote| remote as _))]
    {
        let Some(server) = server else { continue };
        run(server, &scenario, usize::MAX, |place, request, answer| {
            println!("--- {name} {place}: {request}");
            match answer {
                Ok(answer) => println!(">>> {} {}", answer.code, cut(&answer.body, 1000)),
                Err(broken) => println!(">>> {broken}"),
            }
            if name == "ours"
                && let Some(what) = Tally::default().judge(scenario.class, request, answer)
            {
                failed.push(format!("request {place}: {what}"));
            }
        })
        .await;
    }
    local.stop().await;
    failed.extend(panics());
    assert!(failed.is_empty(), "{failed:#?}");
}
