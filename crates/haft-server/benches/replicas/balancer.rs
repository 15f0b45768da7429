//! A plain load balancer: each connection goes to the next replica that accepts it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Longest wait for a replica to accept a connection.
const CONNECT_MAX: Duration = Duration::from_secs(1);

/// A running balancer. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Balancer {
    pub(crate) port: u16,
    _accepting: JoinSet<()>,
}

impl Balancer {
    pub(crate) async fn start(replicas: Vec<SocketAddr>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, replicas.into()));
        Ok(Self { port, _accepting: accepting })
    }
}

async fn accept(listener: TcpListener, replicas: Arc<[SocketAddr]>) {
    let next = Arc::new(AtomicUsize::new(0));
    let mut connections = JoinSet::new();
    while let Ok((mut client, _)) = listener.accept().await {
        let (next, replicas) = (Arc::clone(&next), Arc::clone(&replicas));
        while connections.try_join_next().is_some() {}
        connections.spawn(async move {
            for _ in 0..replicas.len() {
                let replica = replicas[next.fetch_add(1, Ordering::Relaxed) % replicas.len()];
                if let Ok(Ok(mut replica)) = timeout(CONNECT_MAX, TcpStream::connect(replica)).await
                {
                    // Either side may end; the other one then sees it.
                    let _ = copy_bidirectional(&mut client, &mut replica).await;
                    return;
                }
            }
        });
    }
}
