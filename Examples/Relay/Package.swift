// swift-tools-version: 6.2
// A server that relays requests to an upstream. A package of its own, because Larkspur has no dependency.

import PackageDescription

let package = Package(
  name: "relay",
  dependencies: [
    .package(name: "larkspur", path: "../.."),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0"),
    .package(url: "https://github.com/apple/swift-async-algorithms", from: "1.0.0"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.0.0"),
  ],
  targets: [
    .executableTarget(
      name: "Relay",
      dependencies: [
        .product(name: "LarkspurClient", package: "larkspur"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "AsyncAlgorithms", package: "swift-async-algorithms"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
      ])
  ]
)
