// Loads the URL that is its argument, and prints the length of the body.
fn main() {
    let url = std::env::args().nth(1).expect("a URL").parse().expect("a URL");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let body = runtime.block_on(async move {
        let response = hyper::Client::new().get(url).await.expect("a response");
        hyper::body::to_bytes(response.into_body()).await.expect("a body")
    });
    println!("{}", body.len());
}
