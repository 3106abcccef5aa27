//! What it costs to follow changes and to tell handlers of them.

use watchkeeper_bench_report::{Row, Samples, Target, Unit};
use watchkeeper_bench_target::Result;

use super::footprint::{Mode, informer};
use crate::bench::Bench;
use crate::child::{Programs, Side};
use crate::server::{Population, Server, Which};

const GROUP: &str = "informers";

/// Who is told of a change.
#[derive(Clone, Copy)]
struct Audience {
    handlers: usize,
    spec: bool,
    target: Option<f64>,
}

impl Bench {
    /// Changes per CPU second, with several audiences.
    pub(crate) async fn events(&mut self, which: Which) {
        let count = if which == Which::Ours { self.size.changes } else { self.size.slow_changes };
        let mut audiences = vec![
            Audience { handlers: 1, spec: false, target: Some(3.0) },
            Audience { handlers: 10, spec: false, target: Some(3.0) },
        ];
        if which == Which::Ours {
            audiences.push(Audience { handlers: 1, spec: true, target: None });
            audiences.push(Audience { handlers: 10, spec: true, target: None });
        }
        for audience in audiences {
            let Audience { handlers, spec, target } = audience;
            let what = format!(
                "changes of 1.1 kB custom resources followed per CPU second, {handlers} {}{}, from {}",
                if handlers == 1 { "handler" } else { "handlers" },
                if spec { " that read the spec" } else { "" },
                which.name()
            );
            eprintln!("measuring: {what}");
            let rows = self.rates(which, audience, count).await.map(|(ours, peer)| {
                let row =
                    Row::new(GROUP, &what, Unit::Rate, ours).beside(Mode::peer("dynamic").title(), peer);
                vec![match target {
                    Some(times) => row.aims(Target::TimesBetter(times)),
                    None => row,
                }]
            });
            self.add(GROUP, vec![what], rows);
        }
    }

    async fn rates(&mut self, which: Which, audience: Audience, count: usize) -> Result<(Samples, Samples)> {
        let (rounds, all) = (self.size.rounds, Population::step(self.size, 0));
        let (server, programs) = self.parts(which).await?;
        let (mut ours, mut peer) = (Samples::default(), Samples::default());
        for _ in 0..rounds {
            ours.push(rate(server, programs, Mode::ours("packed"), &all, audience, count).await?);
            peer.push(rate(server, programs, Mode::peer("dynamic"), &all, audience, count).await?);
        }
        Ok((ours, peer))
    }
}

async fn rate(
    server: &mut Server,
    programs: &Programs,
    mode: Mode,
    all: &Population,
    audience: Audience,
    count: usize,
) -> Result<f64> {
    let kubeconfig = server.target.kubeconfig().to_owned();
    let mut child = informer(programs, &kubeconfig, mode, all, audience.handlers, audience.spec).await?;
    child.ask("start").await?;
    // What a collection after the sync would cost is not the cost of the changes.
    let before = child.ask("heap").await?;
    let changes = server.change(all, count, None).await?;
    let after = child.ask(&format!("reach {}", changes.newest())).await?;
    let delivered = after.events - before.events;
    if mode.side == Side::Peer && delivered < (count * audience.handlers) as u64 {
        return Err(format!("only {delivered} events of {count} changes were delivered").into());
    }
    Ok(count as f64 / ((after.cpu - before.cpu) / 1e9))
}
