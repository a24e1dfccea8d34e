// The hyper peer: hyper's own client on tokio, one task for each connection; only http, because hyper has no TLS.
//
// Called as PROGRAM WORKLOAD HOST PORT REQUESTS. The whole contract is in Benchmarks/README.md.

use hyper::{body::HttpBody, client::HttpConnector, Client, Uri};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{mpsc, Arc};
use std::time::{Duration, Instant};

#[derive(Clone, Copy)]
struct Workload {
    path: &'static str,
    body_bytes: u64,
    connections: usize,
    is_paced: bool,
}

fn workload(name: &str) -> Option<Workload> {
    let (path, body_bytes, connections, is_paced) = match name {
        "serial-tiny" => ("/tiny", 13, 1, false),
        "concurrent-tiny" => ("/tiny", 13, 64, false),
        "concurrent-100k" => ("/100k", 100 << 10, 64, false),
        "download-1g" => ("/1g", 1 << 30, 1, false),
        "latency-tiny" => ("/tiny", 13, 64, true),
        _ => return None,
    };
    Some(Workload { path, body_bytes, connections, is_paced })
}

async fn load(client: &Client<HttpConnector>, url: &Uri, expected: u64) {
    let mut response = client.get(url.clone()).await.expect("a response");
    let mut received = 0;
    while let Some(piece) = response.body_mut().data().await {
        received += piece.expect("a piece of the body").len() as u64;
    }
    assert!(response.status() == 200 && received == expected);
}

fn run(runtime: &tokio::runtime::Runtime, client: &Client<HttpConnector>, url: &Uri, work: Workload, requests: i64) {
    let left = Arc::new(AtomicI64::new(requests));
    let tasks: Vec<_> = (0..work.connections)
        .map(|_| {
            let (client, url, left) = (client.clone(), url.clone(), left.clone());
            runtime.spawn(async move {
                while left.fetch_sub(1, Ordering::Relaxed) > 0 {
                    load(&client, &url, work.body_bytes).await;
                }
            })
        })
        .collect();
    for task in tasks {
        runtime.block_on(task).expect("a complete task");
    }
}

// Begins the requests at a fixed rate, each in a task, from this thread: tokio's timers are exact to a millisecond.
fn run_paced(
    runtime: &tokio::runtime::Runtime,
    client: &Client<HttpConnector>,
    url: &Uri,
    work: Workload,
    requests: i64,
) -> Vec<u64> {
    let rate: u64 = std::env::var("RATE").expect("RATE").parse().expect("RATE");
    let (sender, receiver) = mpsc::channel();
    let start = Instant::now();
    for number in 0..requests as u64 {
        let due = Duration::from_nanos(number * (1_000_000_000 / rate));
        std::thread::sleep(due.saturating_sub(start.elapsed()));
        let (client, url, sender) = (client.clone(), url.clone(), sender.clone());
        runtime.spawn(async move {
            load(&client, &url, work.body_bytes).await;
            let _ = sender.send((start.elapsed() - due).as_micros() as u64);
        });
    }
    drop(sender);
    let latencies: Vec<u64> = receiver.iter().collect();
    assert!(latencies.len() as i64 == requests);
    latencies
}

fn kib_after(path: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(path).expect("a file of proc");
    let line = text.lines().find(|line| line.starts_with(name)).expect("a line");
    line.split_whitespace().nth(1).expect("a number").parse().expect("a number")
}

fn cpu_microseconds() -> u64 {
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    let seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec;
    (seconds * 1_000_000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) as u64
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let Some(work) = workload(&arguments[1]) else {
        println!("{{\"unsupported\":true}}");
        return;
    };
    let requests: i64 = arguments[4].parse().expect("a number of requests");
    let url: Uri = format!("http://{}:{}{}", arguments[2], arguments[3], work.path).parse().expect("a URL");
    // As many threads as processors: one, because the comparison pins the client to a core.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let client: Client<HttpConnector> = {
        let _context = runtime.enter();
        Client::builder().pool_max_idle_per_host(work.connections).build_http()
    };
    let measured = |count: i64| -> Vec<u64> {
        if work.is_paced {
            return run_paced(&runtime, &client, &url, work, count);
        }
        run(&runtime, &client, &url, work, count);
        Vec::new()
    };
    measured((requests / 10).min(1000));
    let (cpu, start) = (cpu_microseconds(), Instant::now());
    let mut latencies = measured(requests);
    let (cpu, wall) = (cpu_microseconds() - cpu, start.elapsed().as_micros());
    print!(
        "{{\"requests\":{requests},\"cpu_us\":{cpu},\"wall_us\":{wall},\"bytes\":{},\"peak_rss_kib\":{}",
        requests as u64 * work.body_bytes,
        kib_after("/proc/self/status", "VmHWM:")
    );
    if work.is_paced {
        latencies.sort_unstable();
        for (name, thousandths) in [("p50", 500), ("p99", 990), ("p999", 999)] {
            print!(",\"{name}_us\":{}", latencies[(latencies.len() * thousandths - 1) / 1000]);
        }
    }
    println!("}}");
}
