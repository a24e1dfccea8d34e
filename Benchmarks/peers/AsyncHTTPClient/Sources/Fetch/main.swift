import AsyncHTTPClient

let request = HTTPClientRequest(url: CommandLine.arguments[1])
let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
let body = try await response.body.collect(upTo: 1 << 20)
print(body.readableBytes)
