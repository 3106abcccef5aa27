//! The source of HTTP holds the contract of a source.

use std::time::Duration;

use watchkeeper_core::Source;
use watchkeeper_core::contract::{World, check};
use watchkeeper_sources::http::{Http, Pages, Waiting};

use crate::service::Service;

struct Shop {
    service: Service,
    http: Http,
}

impl World for Shop {
    fn source(&self) -> impl Source {
        self.http.clone()
    }

    async fn put(&self, name: &str, value: u64) {
        self.service.put(name, value);
    }

    async fn delete(&self, name: &str) {
        self.service.remove(name);
    }

    async fn expire(&self) -> bool {
        false
    }

    async fn corrupt(&self, name: &str) -> bool {
        self.service.corrupt(name);
        true
    }

    async fn cut(&self) -> bool {
        self.service.lock().cut = true;
        true
    }

    async fn mend(&self) {
        self.service.lock().cut = false;
    }
}

#[tokio::test]
async fn the_source_of_http_holds_the_contract_however_it_learns_of_changes() {
    for way in 0..5 {
        let service = Service::start().await;
        let http =
            Http::get(&service.url("/items")).items("/items").key("/id").interval(Duration::from_millis(10));
        let http = match way {
            0 => http,
            1 => {
                service.lock().page = Some(2);
                http.pages(Pages::Link)
            }
            2 => http.waiting(Waiting::Prefer(Duration::from_secs(60))),
            3 => http.waiting(Waiting::Index {
                header: "x-index".into(),
                parameter: "index".into(),
                wait: Duration::from_secs(60),
            }),
            _ => http.events(&service.url("/events")).interval(Duration::from_secs(600)),
        };
        let kept = check(&Shop { service, http }).await.unwrap();
        assert_eq!(kept.len(), 6, "{kept:?}");
    }
}
