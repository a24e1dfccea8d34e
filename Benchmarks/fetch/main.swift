import LarkspurClient

let body = try await HTTPClient.shared.get(CommandLine.arguments[1]) { response in
  try await response.body.collect(upTo: 1 << 20)
}
print(body.count)
