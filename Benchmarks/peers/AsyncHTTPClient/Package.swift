// swift-tools-version: 6.2
// The async-http-client peer of the benchmarks. A package of its own, because Larkspur's package has no dependency.

import PackageDescription

let settings: [SwiftSetting] = [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]

let package = Package(
  name: "AsyncHTTPClientPeer",
  products: [
    .executable(name: "async-http-client", targets: ["Client"]),
    .executable(name: "async-http-client-fetch", targets: ["Fetch"]),
  ],
  dependencies: [
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.30.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.30.0"),
  ],
  targets: [
    // A link to Benchmarks/usage.
    .target(name: "BenchmarkUsage", swiftSettings: settings),
    .executableTarget(
      name: "Client",
      dependencies: [
        "BenchmarkUsage", .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ],
      swiftSettings: settings),
    .executableTarget(
      name: "Fetch", dependencies: [.product(name: "AsyncHTTPClient", package: "async-http-client")],
      swiftSettings: settings),
  ]
)
