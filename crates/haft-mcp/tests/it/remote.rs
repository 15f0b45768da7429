//! The suite over the transports that are made of HTTP requests.

use haft_mcp::transport::HttpOptions;
use testkit::fixture::Running;

fn options(server: &Running) -> HttpOptions {
    HttpOptions {
        url: server.url.parse().unwrap(),
        shown: server.url.clone(),
        headers: Vec::new(),
        connect_timeout: testkit::DEADLINE,
        timeout: testkit::DEADLINE,
        sse_read_timeout: testkit::DEADLINE,
        terminate_on_close: true,
        authorizer: None,
    }
}

mod http {
    use haft_mcp::transport::HttpConnector;
    use serde_json::Value;
    use testkit::fixture::{Fixture, Transport};

    use crate::suite::Served;

    suite!(serve);

    fn serve(scenario: &Value) -> Served {
        let server = Fixture::serve(Transport::Http, scenario);
        Served::new(HttpConnector::new(super::options(&server)).unwrap(), Some(server))
    }
}

mod sse {
    use haft_mcp::transport::SseConnector;
    use serde_json::Value;
    use testkit::fixture::{Fixture, Transport};

    use crate::suite::Served;

    suite!(serve);

    fn serve(scenario: &Value) -> Served {
        let server = Fixture::serve(Transport::Sse, scenario);
        Served::new(SseConnector::new(super::options(&server)).unwrap(), Some(server))
    }
}
